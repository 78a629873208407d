//! Path MTU discovery by datagrams that are acknowledged (DPLPMTUD, RFC 8899 §5.2). Sizes are those of UDP payloads.

use anabranch_units::{Duration, Instant};
use core::ops::RangeInclusive;

/// A size that every path is taken to carry: 1,200 bytes (RFC 8899 §5.1.2, BASE_PLPMTU).
pub const BASE: usize = 1_200;
/// RFC 8899 §5.1.2: MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// RFC 8899 §5.1.1: PROBE_TIMER, at least 1 s. Its 15 s are for protocols that know no round-trip time: 3 s are longer than that of any
/// path that bulk data is sent over, and are waited for while none is known; later three round trips.
const PROBE_TIMERS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3);
const ROUND_TRIPS: u64 = 3;
/// RFC 8899 §5.1.1: PMTU_RAISE_TIMER.
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// RFC 8899 §5.1.1: CONFIRMATION_TIMER.
const CONFIRMATION_TIMER: Duration = Duration::from_secs(30);
/// The same where the size is in use: data that it loses waits for the search.
const CONFIRMATION_IN_USE: Duration = Duration::from_secs(5);
/// The search ends when so many bytes are in doubt.
const ENOUGH: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Probe {
    id: u32,
    size: usize,
    tries: u32,
    /// When the last try was, and when the next is due; the first is due at once.
    sent: Instant,
    at: Instant,
}

/// The search for the largest datagram that a path carries.
#[derive(Debug)]
pub(crate) struct Search {
    /// The largest size that arrived.
    usable: usize,
    /// The largest size that may still be possible, and the one that the network's edge allows.
    high: usize,
    max: usize,
    probe: Option<Probe>,
    ids: u32,
    /// Round trip of the last probe that needed one try.
    rtt: Option<Duration>,
    /// When the search ended or the size in use was last confirmed, and whether datagrams were that large since.
    confirmed: Instant,
    used: bool,
    /// When the size in use may have to be probed again, and when larger ones are.
    confirm: Instant,
    raise: Instant,
}

impl Search {
    /// Begins at the base, with datagrams of at most `max` bytes.
    pub fn begin(now: Instant, max: usize) -> Self {
        let max = max.max(BASE);
        let far = Instant::MAX;
        let (confirmed, used, confirm, raise) = (now, false, far, far);
        let (probe, ids, rtt) = (None, 0, None);
        let mut search = Self { usable: BASE, high: max, max, probe, ids, rtt, confirmed, used, confirm, raise };
        search.proceed(now);
        search
    }

    /// The largest datagram to send: the base while a confirmation has been without an answer for a probe's time.
    pub fn usable(&self) -> usize {
        let doubtful = self.probe.is_some_and(|probe| probe.size <= self.usable && probe.tries > 1);
        if doubtful { BASE } else { self.usable }
    }

    /// A datagram of this size is sent.
    pub fn note_sent(&mut self, size: usize) {
        self.used |= size > BASE;
    }

    /// Probes the next size, or rests.
    fn proceed(&mut self, now: Instant) {
        let doubt = self.high - self.usable;
        self.probe = None;
        if doubt < ENOUGH {
            (self.confirmed, self.used) = (now, false);
            self.confirm = if self.usable > BASE { now + CONFIRMATION_IN_USE } else { Instant::MAX };
            // A confirmation does not put it off.
            let raise = self.raise.min(now + RAISE_TIMER);
            self.raise = if self.usable < self.max { raise } else { Instant::MAX };
        } else {
            // Most paths carry what their first link does.
            let size = if self.high == self.max { self.max } else { self.usable + doubt.div_ceil(2) };
            self.raise = Instant::MAX;
            self.ask(now, size);
        }
    }

    fn ask(&mut self, now: Instant, size: usize) {
        self.ids = self.ids.wrapping_add(1);
        self.probe = Some(Probe { id: self.ids, size, tries: 0, sent: now, at: now });
        self.confirm = Instant::MAX;
    }

    /// When [`Self::due`] has something.
    pub fn next(&self) -> Instant {
        self.probe.map_or(self.confirm.min(self.raise), |probe| probe.at)
    }

    /// The probe to send now: its number and the size of its datagram.
    pub fn due(&mut self, now: Instant) -> Option<(u32, usize)> {
        while self.next() <= now {
            match &mut self.probe {
                None if self.raise <= now => {
                    // It is past: `proceed` must choose a new time, even if too little is in doubt for a probe.
                    (self.high, self.raise) = (self.max, Instant::MAX);
                    self.proceed(now);
                }
                None if !self.used && now < self.confirmed + CONFIRMATION_TIMER => {
                    self.confirm = (now + CONFIRMATION_IN_USE).min(self.confirmed + CONFIRMATION_TIMER);
                }
                None => self.ask(now, self.usable),
                Some(probe) if probe.tries < MAX_PROBES => {
                    let (least, most) = PROBE_TIMERS.into_inner();
                    let timer = self.rtt.map_or(most, |rtt| (rtt * ROUND_TRIPS).clamp(least, most));
                    probe.tries += 1;
                    (probe.sent, probe.at) = (now, now + timer);
                    return Some((probe.id, probe.size));
                }
                Some(probe) => {
                    let size = probe.size;
                    self.lost(size);
                    self.proceed(now);
                }
            }
        }
        None
    }

    fn lost(&mut self, size: usize) {
        self.high = (size - 1).max(BASE);
        if size <= self.usable {
            // RFC 8899 §4.3: the path has become a black hole for this size.
            self.usable = BASE;
        }
    }

    /// The peer has received a probe.
    pub fn seen(&mut self, now: Instant, id: u32) {
        if let Some(probe) = self.probe.filter(|probe| probe.id == id && probe.tries > 0) {
            self.usable = probe.size;
            if probe.tries == 1 {
                self.rtt = Some(now.since(probe.sent));
            }
            self.proceed(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A path that carries datagrams of at most `mtu`, with what it loses; the time it took and the size found.
    fn find(search: &mut Search, from: Instant, mtu: usize, mut loses: impl FnMut() -> bool) -> Instant {
        let mut now = from;
        for _ in 0..200 {
            if search.probe.is_none() {
                return now;
            }
            now = now.max(search.next());
            if let Some((id, size)) = search.due(now)
                && size <= mtu
                && !loses()
            {
                search.seen(now + Duration::from_millis(20), id);
            }
        }
        panic!("the search does not end: {search:?}")
    }

    #[test]
    fn the_largest_size_is_tried_first() {
        let mut search = Search::begin(Instant::ZERO, 1_472);
        assert_eq!(search.due(Instant::ZERO), Some((1, 1_472)));
        assert_eq!(search.usable(), BASE, "until it is acknowledged");
        search.seen(Instant::from_millis(20), 1);
        assert_eq!(search.usable(), 1_472);
    }

    /// Lets time pass for so long on a path that carries datagrams of at most `mtu`; the number of probes.
    fn live(search: &mut Search, from: Instant, time: Duration, mtu: usize) -> usize {
        let (mut now, mut probes) = (from, 0);
        while now < from + time {
            while let Some((id, size)) = search.due(now) {
                probes += 1;
                if size <= mtu {
                    search.seen(now, id);
                }
            }
            assert!(search.next() > now, "nothing more is due: {search:?}");
            now = search.next();
        }
        probes
    }

    /// RFC 8899 §5.2: the raise timer starts again when too little is in doubt for a probe.
    #[test]
    fn a_search_that_ends_just_below_the_largest_size_goes_past_the_raise_timer() {
        for mtu in 1_465..1_472 {
            let mut search = Search::begin(Instant::ZERO, 1_472);
            let now = find(&mut search, Instant::ZERO, mtu, || false);
            let usable = search.usable();
            assert!((1_458..=mtu).contains(&usable), "{usable}");
            let probes = live(&mut search, now, RAISE_TIMER * 4, mtu);
            assert!(search.usable() <= mtu && search.usable() >= usable, "{}", search.usable());
            // A confirmation each 30 s, and some short searches.
            assert!((60..=120).contains(&probes), "{probes}");
        }
    }

    proptest! {
        /// The same after some raise timers, when the path's size has changed meanwhile.
        #[test]
        fn the_size_stays_near_the_largest(first in 1_200usize..1_500, mtu in 1_200usize..1_500, max in 1_200usize..1_473) {
            let mut search = Search::begin(Instant::ZERO, max);
            let now = find(&mut search, Instant::ZERO, first, || false);
            live(&mut search, now, RAISE_TIMER * 3, mtu);
            prop_assert!(search.usable() <= mtu.min(max) && search.usable() + ENOUGH > mtu.min(max), "{}", search.usable());
        }

        #[test]
        fn the_size_found_is_carried_and_near_the_largest(mtu in 1_200usize..1_500, max in 1_200usize..1_473) {
            let mut search = Search::begin(Instant::ZERO, max);
            find(&mut search, Instant::ZERO, mtu, || false);
            prop_assert!(search.usable() <= mtu.min(max) && search.usable() + ENOUGH > mtu.min(max), "{}", search.usable());
        }

        /// Losses may make the size smaller, never larger than the path carries.
        #[test]
        fn losses_do_not_find_a_size_that_is_too_large(mtu in 1_200usize..1_500, drops in proptest::collection::vec(any::<bool>(), 200)) {
            let mut search = Search::begin(Instant::ZERO, 1_472);
            let mut drops = drops.into_iter().cycle();
            find(&mut search, Instant::ZERO, mtu, || drops.next().unwrap());
            prop_assert!(search.usable() <= mtu);
        }
    }

    #[test]
    fn a_path_that_shrinks_is_noticed_and_one_that_grows_is_used() {
        let mut search = Search::begin(Instant::ZERO, 1_472);
        let now = find(&mut search, Instant::ZERO, 1_472, || false);
        // The confirmation finds the black hole.
        live(&mut search, now, CONFIRMATION_TIMER + Duration::from_secs(60), 1_300);
        assert!((1_293..=1_300).contains(&search.usable()), "{}", search.usable());
        live(&mut search, now + CONFIRMATION_TIMER + Duration::from_secs(60), Duration::from_secs(700), 1_472);
        assert_eq!(search.usable(), 1_472);
    }

    /// When a path that carried 1,472 bytes until `shrunk` is used with care, if it carries 1,300 bytes from then on.
    fn careful(search: &mut Search, shrunk: Instant, uses: bool) -> Instant {
        let (mut now, used) = (shrunk, if uses { 1_472 } else { 100 });
        while search.usable() == 1_472 {
            search.note_sent(used);
            now = search.next();
            assert!(search.due(now).is_none_or(|(_, size)| size == 1_472));
        }
        now
    }

    #[test]
    fn a_size_in_use_is_confirmed_sooner_and_in_doubt_after_one_probe() {
        for (uses, longest) in [(true, 6), (false, 31)] {
            let mut search = Search::begin(Instant::ZERO, 1_472);
            let now = find(&mut search, Instant::ZERO, 1_472, || false);
            let doubt = careful(&mut search, now, uses);
            // The confirmation, and then the time of one probe: a second for a round trip of 20 ms.
            assert_eq!(doubt, Instant::from_millis(20) + Duration::from_secs(longest));
            assert_eq!(search.usable(), BASE);
            // The second probe arrives: it was a loss.
            let second = search.probe.unwrap();
            search.seen(doubt, second.id);
            assert_eq!((second.tries, search.usable()), (2, 1_472));
        }
    }

    #[test]
    fn an_answer_to_no_probe_changes_nothing() {
        let mut search = Search::begin(Instant::ZERO, 1_472);
        search.seen(Instant::ZERO, 1);
        assert_eq!(search.usable(), BASE, "it was never sent");
        search.due(Instant::ZERO);
        search.seen(Instant::ZERO, 2);
        assert_eq!(search.usable(), BASE);
    }
}
