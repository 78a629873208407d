//! Handshakes that are half open, beyond those that have a connection: bounded, whoever sends SYNs.
//!
//! Where there is no room for one more, [`CHOICES`] of them are drawn at random, and the oldest of these is removed. No
//! other host can foresee which. After k further SYNs an entry is still there with a probability of about
//! 1 - (k / [`ROOM`])^[`CHOICES`]. At 100,000 per second, 20,000 come during a round trip of 200 ms: one handshake in a
//! million is lost.

use crate::four_tuple::FourTuple;
use crate::settings::TcpSettings;
use crate::subflow::half_open::{CompactEnds, HalfOpen, Offer};
use anabranch_units::{Instant, Rng};
use anabranch_wire::Segment;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most entries. They take 10 MiB, and 12 MiB at worst, with every node of the maps half empty.
const ROOM: usize = 49_152;
/// Entries of which the oldest is given up for a new one.
const CHOICES: usize = 16;
/// Number of entries above which time no longer repeats SYN/ACKs: whoever forges SYNs makes others suffer from
/// the answers, and an honest peer repeats its SYN.
const CROWD: usize = 4096;

/// Why an answer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// No SYN/ACK is due.
    No,
    /// A SYN came.
    Asked,
    /// Time passed.
    Overdue,
}

#[derive(Debug)]
struct Entry {
    half: HalfOpen,
    due: Due,
    /// When to repeat it, or to give it up.
    deadline: Instant,
}

/// Names an entry as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u32);

/// Handshakes that wait for their third ACK.
#[derive(Debug)]
pub(super) struct SynQueue {
    places: Vec<Option<Entry>>,
    free: Vec<Place>,
    by_ends: BTreeMap<CompactEnds, Place>,
    timers: BTreeSet<(Instant, Place)>,
    /// The first of them, stored because every packet reads it.
    next: Instant,
    /// Entries to be answered. Some may be gone.
    due: VecDeque<Place>,
    /// The random stream that draws the entries of which one is removed.
    lots: Option<Rng>,
}

impl Default for SynQueue {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            by_ends: BTreeMap::new(),
            timers: BTreeSet::new(),
            next: Instant::MAX,
            due: VecDeque::new(),
            lots: None,
        }
    }
}

impl SynQueue {
    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.by_ends.is_empty()
    }

    fn at(&mut self, place: Place) -> Option<&mut Entry> {
        self.places.get_mut(place.0 as usize)?.as_mut()
    }

    /// The handshake on `tuple`.
    pub fn find(&self, tuple: FourTuple) -> Option<(Place, &HalfOpen)> {
        let place = *self.by_ends.get(&CompactEnds::from(tuple))?;
        let entry = self.places.get(place.0 as usize)?.as_ref()?;
        Some((place, &entry.half))
    }

    /// Takes a handshake in, to be answered. There is none between its ends.
    pub fn insert(&mut self, rng: &Rng, half: HalfOpen) {
        debug_assert!(!self.by_ends.contains_key(&half.ends()), "a handshake takes another's place");
        if self.by_ends.len() >= ROOM {
            self.make_room(rng);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            if self.places.len() == self.places.capacity() {
                self.places.reserve_exact(self.places.len().clamp(1, ROOM - self.places.len()));
            }
            self.places.push(None);
            Place(self.places.len() as u32 - 1)
        });
        self.by_ends.insert(half.ends(), place);
        let entry = Entry { half, due: Due::No, deadline: Instant::MAX };
        self.places[place.0 as usize] = Some(entry);
        self.demand(place, Due::Asked);
    }

    /// The oldest of some that lots are cast for goes. Every place is taken.
    fn make_room(&mut self, rng: &Rng) {
        let lots = self.lots.get_or_insert_with(|| rng.fork("half-open"));
        let drawn = (0..CHOICES).map(|_| lots.below(ROOM as u64) as u32);
        let since = |place: &u32| self.places[*place as usize].as_ref().map_or(Instant::ZERO, |entry| entry.half.since);
        if let Some(oldest) = drawn.min_by_key(since) {
            self.remove(Place(oldest));
        }
    }

    /// The peer's SYN came again: `without` if it no longer requests MPTCP.
    pub fn ask_again(&mut self, place: Place, syn: &Segment, without: bool) {
        self.answer_again(place);
        let Some(Entry { half, .. }) = self.at(place) else { return };
        half.on_syn_again(syn);
        if let Offer::Capable { bare, .. } = &mut half.offer {
            *bare = without;
        }
    }

    /// Marks the entry at `place` as one to be answered again.
    pub fn answer_again(&mut self, place: Place) {
        self.demand(place, Due::Asked);
    }

    fn demand(&mut self, place: Place, why: Due) {
        let Some(entry) = self.at(place) else { return };
        if core::mem::replace(&mut entry.due, why) == Due::No {
            self.due.push_back(place);
        }
    }

    /// The handshake is over.
    pub fn remove(&mut self, place: Place) {
        let Some(entry) = self.places.get_mut(place.0 as usize).and_then(Option::take) else { return };
        self.timers.remove(&(entry.deadline, place));
        self.changed();
        self.by_ends.remove(&entry.half.ends());
        self.free.push(place);
        if self.by_ends.is_empty() {
            // After a flood nothing of it stays.
            *self = Self { lots: self.lots.take(), ..Self::default() };
        }
    }

    /// The next handshake that is to be answered now.
    pub fn next_due(&mut self) -> Option<(Place, HalfOpen)> {
        while let Some(place) = self.due.pop_front() {
            if let Some(entry) = self.at(place).filter(|entry| entry.due != Due::No) {
                return Some((place, entry.half));
            }
        }
        None
    }

    /// Notes that it is answered; when again, its settings say (RFC 6298 §5). False if no answer is to be sent after all.
    pub fn on_answered(&mut self, now: Instant, place: Place, tcp: &TcpSettings) -> bool {
        let crowded = self.by_ends.len() > CROWD;
        let Some(entry) = self.at(place) else { return false };
        let late = entry.due == Due::Overdue;
        if late && u32::from(entry.half.repeats) > tcp.syn_retries {
            self.remove(place);
            return false;
        }
        let timeout = (tcp.rto_initial * (1 << entry.half.repeats.min(16))).min(tcp.rto_max);
        let before = core::mem::replace(&mut entry.deadline, now + timeout);
        entry.due = Due::No;
        entry.half.answers = entry.half.answers.saturating_add(1);
        self.timers.remove(&(before, place));
        self.timers.insert((now + timeout, place));
        self.changed();
        !(late && crowded)
    }

    /// When something is due; [`Instant::MAX`] for never.
    pub fn next(&self) -> Instant {
        self.next
    }

    fn changed(&mut self) {
        self.next = self.timers.first().map_or(Instant::MAX, |(at, _)| *at);
    }

    /// Time has passed. True if there are answers to be given.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let any = self.next <= now;
        while let Some(&(at, place)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, place));
            if let Some(entry) = self.at(place) {
                entry.deadline = Instant::MAX;
                entry.half.repeats = entry.half.repeats.saturating_add(1);
                self.demand(place, Due::Overdue);
            }
        }
        if any {
            self.changed();
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use anabranch_wire::Segment;
    use core::net::{IpAddr, Ipv4Addr, SocketAddr};

    fn half(at: u64, ip: u32, port: u16) -> HalfOpen {
        let end = |ip: u32, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(ip)), port);
        let tuple = FourTuple { local: end(0x0a00_0002, 80), remote: end(ip, port) };
        let mut rng = Rng::stream(at, "isn");
        let now = Instant::from_nanos(at);
        HalfOpen::new(&mut rng, now, &Settings::default(), tuple, &Segment::default(), Offer::Plain)
    }

    /// How many of 2000 honest handshakes in a full queue are there after `flood` forged ones, whose ends are near each
    /// other or far apart.
    fn survivors(seed: u64, flood: u64, near: bool) -> usize {
        let rng = Rng::stream(seed, "server");
        let mut draws = Rng::stream(seed, "flood");
        let mut queue = SynQueue::default();
        let mut forge = |queue: &mut SynQueue, at: u64| {
            let far = draws.bits();
            let (ip, port) = if near { ((at >> 16) as u32, at as u16) } else { ((far >> 40) as u32, far as u16) };
            let forged = half(at, 0x6400_0000 + ip, port);
            if queue.find(forged.tuple()).is_none() {
                queue.insert(&rng, forged);
            }
            queue.due.clear();
        };
        (0..2 * ROOM as u64).for_each(|at| forge(&mut queue, at));
        let honest: Vec<_> = (0..2000).map(|n| half(2 * ROOM as u64 + n, 0x0a01_0000 + n as u32, 4000)).collect();
        honest.iter().for_each(|half| queue.insert(&rng, *half));
        (0..flood).for_each(|n| forge(&mut queue, 2 * ROOM as u64 + 2000 + n));
        assert_eq!(queue.by_ends.len(), ROOM);
        honest.iter().filter(|half| queue.find(half.tuple()).is_some()).count()
    }

    #[test]
    fn a_round_trip_is_outlived() {
        for seed in 0..3 {
            for near in [true, false] {
                assert_eq!(survivors(seed, 20_000, near), 2000, "seed {seed}, near: {near}");
                // 1 - (40,000 / 49,152)^16 = 0.963, and less for the first of those that came together.
                let late = survivors(seed, 40_000, near);
                assert!((1780..1990).contains(&late), "seed {seed}, near: {near}: {late}");
            }
        }
        // No entry stays for ever.
        assert_eq!(survivors(0, 150_000, false), 0);
    }

    #[test]
    fn who_goes_depends_on_the_seed() {
        assert_eq!(survivors(1, 45_000, true), survivors(1, 45_000, true));
        assert_ne!(survivors(1, 45_000, true), survivors(2, 45_000, true));
    }

    #[test]
    fn a_crowd_is_not_answered_again_and_forgotten() {
        let rng = Rng::stream(0, "server");
        let tcp = TcpSettings::default();
        let mut queue = SynQueue::default();
        let answered = |queue: &mut SynQueue, at: u64| {
            let now = Instant::from_millis(at);
            queue.handle_timeout(now);
            let mut sent = 0;
            while let Some((place, _)) = queue.next_due() {
                sent += u32::from(queue.on_answered(now, place, &tcp));
            }
            sent
        };
        (0..5000).for_each(|n| queue.insert(&rng, half(0, n, 80)));
        assert_eq!((answered(&mut queue, 0), queue.next()), (5000, Instant::from_millis(1000)));
        assert_eq!((answered(&mut queue, 1000), queue.next()), (0, Instant::from_millis(3000)));
        // So many are done that the others are just no crowd.
        let place = |queue: &SynQueue, n| queue.find(half(0, n, 80).tuple()).expect("it is there").0;
        for n in 0..5000 - CROWD as u32 {
            queue.remove(place(&queue, n));
        }
        assert_eq!(answered(&mut queue, 3000), CROWD as u32);
        // An entry whose SYN comes again is answered, however many others there are.
        (5000..6000).for_each(|n| queue.insert(&rng, half(0, n, 80)));
        queue.ask_again(place(&queue, 4999), &Segment::default(), true);
        assert_eq!(answered(&mut queue, 3100), 1001);
        for at in (4..400).map(|s| s * 1000) {
            answered(&mut queue, at);
        }
        assert!(queue.is_empty() && queue.next() == Instant::MAX);
        assert_eq!((queue.due.capacity(), queue.places.capacity()), (0, 0));
    }

    #[test]
    fn an_entry_is_small() {
        // Nodes of a map hold 5 to 11 entries: with half-empty ones it is as large as it can be.
        let maps = (size_of::<CompactEnds>() + size_of::<Place>() + size_of::<(Instant, Place)>() + 6) * 11 / 5;
        let worst = ROOM * (size_of::<Option<Entry>>() + maps + 4 * size_of::<Place>());
        assert!(worst <= 12 << 20, "{worst}");
    }
}
