//! Handshakes that are half open, beyond those that have a connection: bounded, whoever sends SYNs.
//!
//! Their order is that of a keyed hash of their ends, which nobody outside can foresee. Where there is no room for one more,
//! the oldest of [`CHOICES`] that follow its place makes it. After a flood of k SYNs an entry is still there with
//! a probability of about 1 - (k / [`ROOM`])^[`CHOICES`]: at 100,000 a second, 20,000 come during a round trip of 200 ms, and
//! one handshake in a million is lost.

use super::{Ends, ends_of};
use crate::settings::TcpSettings;
use crate::subflow::half_open::{HalfOpen, Offer};
use anabranch_units::{Instant, Rng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most entries. A full map and its timers take 7 MiB, and 14 MiB at worst, with every node half empty.
pub(super) const ROOM: usize = 49_152;
/// Entries of which the oldest is given up for a new one.
const CHOICES: usize = 16;
/// With more entries than this, SYN/ACKs are not repeated when time has passed: whoever forges SYNs makes others suffer from
/// the answers, and an honest peer repeats its SYN.
const CROWD: usize = 4096;

/// A key of the hash, drawn once: Σ kᵢ·wᵢ modulo 2¹²⁸, of which the upper half is taken. For words below 2⁶⁴ that is
/// strongly universal (Dietzfelbinger 1996): any two ends are far apart or near by chance alone.
#[derive(Debug)]
struct Key([u128; 6]);

impl Key {
    fn draw(rng: &Rng) -> Self {
        let mut rng = rng.fork("half-open");
        Self(core::array::from_fn(|_| u128::from(rng.bits()) << 64 | u128::from(rng.bits())))
    }

    fn hash(&self, (ports, remote, local): Ends) -> u64 {
        let words = [ports.into(), remote as u64, (remote >> 64) as u64, local as u64, (local >> 64) as u64];
        let [first, keys @ ..] = &self.0;
        let sum = keys.iter().zip(words).fold(*first, |sum, (k, w)| sum.wrapping_add(k.wrapping_mul(w.into())));
        (sum >> 64) as u64
    }
}

/// Why an answer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// It is not.
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
    /// How often it was repeated because time passed.
    repeats: u8,
    /// When to repeat it, or to give it up.
    deadline: Instant,
}

/// Handshakes that wait for their third ACK.
#[derive(Debug, Default)]
pub(super) struct SynQueue {
    key: Option<Key>,
    entries: BTreeMap<u64, Entry>,
    timers: BTreeSet<(Instant, u64)>,
    /// Entries to be answered. Some may be gone.
    due: VecDeque<u64>,
}

impl SynQueue {
    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Some are to be answered.
    pub fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    fn place(&self, ends: &Ends) -> Option<u64> {
        let place = self.key.as_ref()?.hash(*ends);
        self.entries.get(&place).is_some_and(|entry| ends_of(&entry.half.tuple()) == *ends).then_some(place)
    }

    /// The handshake between these ends.
    pub fn find(&self, ends: &Ends) -> Option<HalfOpen> {
        self.place(ends).map(|place| self.entries[&place].half)
    }

    /// Takes a handshake in, to be answered.
    pub fn insert(&mut self, rng: &Rng, half: HalfOpen) {
        let place = self.key.get_or_insert_with(|| Key::draw(rng)).hash(ends_of(&half.tuple()));
        if self.entries.len() >= ROOM {
            let candidates = self.entries.range(place..).chain(self.entries.range(..place)).take(CHOICES);
            if let Some((oldest, _)) = candidates.min_by_key(|(_, entry)| entry.half.since) {
                self.take_out(*oldest);
            }
        }
        self.take_out(place);
        self.entries.insert(place, Entry { half, due: Due::No, repeats: 0, deadline: Instant::MAX });
        self.demand(place, Due::Asked);
    }

    /// The peer's SYN came again: `plain` if it does not ask for MPTCP, perhaps because our answer was dropped for its
    /// option (RFC 8684 §3.7).
    pub fn ask_again(&mut self, ends: &Ends, plain: bool) {
        let Some(place) = self.place(ends) else { return };
        self.demand(place, Due::Asked);
        if let Some(entry) = self.entries.get_mut(&place)
            && plain
            && matches!(entry.half.offer, Offer::Capable { .. })
        {
            entry.half.offer = Offer::Plain;
        }
    }

    fn demand(&mut self, place: u64, why: Due) {
        let Some(entry) = self.entries.get_mut(&place) else { return };
        if entry.due == Due::No && self.due.len() < ROOM {
            self.due.push_back(place);
        }
        entry.due = why;
    }

    /// The handshake is over.
    pub fn remove(&mut self, ends: &Ends) {
        if let Some(place) = self.place(ends) {
            self.take_out(place);
        }
    }

    fn take_out(&mut self, place: u64) {
        if let Some(entry) = self.entries.remove(&place) {
            self.timers.remove(&(entry.deadline, place));
        }
    }

    /// The next handshake that is to be answered now.
    pub fn next_due(&mut self) -> Option<(u64, HalfOpen)> {
        while let Some(place) = self.due.pop_front() {
            if let Some(entry) = self.entries.get(&place).filter(|entry| entry.due != Due::No) {
                return Some((place, entry.half));
            }
        }
        None
    }

    /// Notes that it is answered; when again, its settings say (RFC 6298 §5). False if no answer is to be sent after all.
    pub fn on_answered(&mut self, now: Instant, place: u64, tcp: &TcpSettings) -> bool {
        let crowded = self.entries.len() > CROWD;
        let Some(entry) = self.entries.get_mut(&place) else { return false };
        let late = entry.due == Due::Overdue;
        if late && u32::from(entry.repeats) > tcp.syn_retries {
            self.take_out(place);
            return false;
        }
        let timeout = (tcp.rto_initial * (1 << entry.repeats.min(16))).min(tcp.rto_max);
        self.timers.remove(&(entry.deadline, place));
        entry.deadline = now + timeout;
        self.timers.insert((entry.deadline, place));
        entry.due = Due::No;
        entry.half.answers = entry.half.answers.saturating_add(1);
        !(late && crowded)
    }

    /// Nothing can come of it.
    pub fn give_up(&mut self, place: u64) {
        self.take_out(place);
    }

    /// When something is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, place)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, place));
            if let Some(entry) = self.entries.get_mut(&place) {
                entry.deadline = Instant::MAX;
                entry.repeats = entry.repeats.saturating_add(1);
                self.demand(place, Due::Overdue);
            }
        }
        if self.entries.is_empty() {
            // After a flood nothing of it stays.
            self.due = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {}
