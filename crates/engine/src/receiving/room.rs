//! How much of the receive buffer is offered: all of its bytes; what a kernel's bookkeeping leaves of it; what right-sizing
//! has come to.

use crate::accounting::{Truesize, truesize};
use crate::settings::Settings;
use anabranch_units::{Duration, Instant};

/// The window with which right-sizing begins. `tcp_rmem[1]` is 87,380 bytes, of which no more are offered in a SYN.
const WINDOW_START: u64 = 65_535;
/// The share of the receive buffer that is offered.
#[derive(Debug)]
pub(super) struct Room {
    /// The window while nothing is held.
    limit: u64,
    /// Greatest value of the window.
    most: u64,
    mss: u64,
    truesize: Option<Truesize>,
    /// Right-sizing: the present measurement.
    measured: Option<Measurement>,
}

/// A measurement of the data that the application reads in a round trip.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    since: Instant,
    /// Bytes read before it began.
    read: u64,
}

impl Room {
    pub fn new(settings: &Settings) -> Self {
        let truesize = truesize(settings);
        // `tcp_adv_win_scale` is 1: half of a buffer is for payload.
        let most = if truesize.is_some() { settings.recv_buffer / 2 } else { settings.recv_buffer };
        let most = most.max(u64::from(settings.mss).min(settings.recv_buffer));
        let limit = if settings.tcp.autotune { most.min(WINDOW_START) } else { most };
        let measured = settings.tcp.autotune.then_some(Measurement { since: Instant::ZERO, read: 0 });
        Self { limit, most, mss: settings.mss.into(), truesize, measured }
    }

    /// The window while nothing is held, bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The window follows the application's reads.
    pub fn is_sized(&self) -> bool {
        self.measured.is_some()
    }

    /// The rest of the window when `held` bytes are held: as kernels count, half of the memory that they do not take.
    pub fn left(&self, held: u64) -> u64 {
        match &self.truesize {
            None => self.limit.saturating_sub(held),
            Some(truesize) => self.limit.saturating_sub(truesize.memory(held) / 2),
        }
    }

    /// The first offset that is not offered: `read` bytes were read of those below `next`, and `ahead` are held above.
    pub fn edge(&self, read: u64, next: u64, ahead: u64) -> u64 {
        match &self.truesize {
            // Data held above lies inside the window.
            None => read + self.limit,
            Some(_) => next + self.left(next - read + ahead),
        }
    }

    /// The edge to offer after `before`, where `edge` is free: it moves by a segment or half of the window at least (RFC 9293
    /// §3.8.6.2.2).
    pub fn step(&self, before: u64, edge: u64) -> u64 {
        if edge >= before + self.mss.min(self.limit / 2) { edge } else { before }
    }

    /// True if an acknowledgment is to announce at once that the window, `full` bytes at most with `left` left of it, may grow
    /// by `gain`: a window that is shut by one segment, others by half (RFC 9293 §3.8.6.2.2).
    pub fn is_news(&self, full: u64, left: u64, gain: u64) -> bool {
        let worth = self.mss.min(full / 2);
        left < full / 4 && gain >= if left < worth { worth } else { full / 2 }
    }

    /// Dynamic right-sizing (Fisk and Feng, 2001; Linux `tcp_rcv_space_adjust`): of what the application reads in a round trip
    /// twice as much is offered, and 16 segments more; never less than before. `read` bytes were read so far.
    pub fn on_read(&mut self, now: Instant, read: u64, trip: Duration) {
        let Some(before) = self.measured.filter(|before| now.since(before.since) >= trip) else { return };
        if before.since > Instant::ZERO {
            self.limit = self.limit.max(2 * (read - before.read) + 16 * self.mss).min(self.most);
        }
        self.measured = Some(Measurement { since: now, read });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{BufferAccounting, TcpSettings};

    fn settings(change: impl FnOnce(&mut TcpSettings)) -> Settings {
        let mut settings = Settings { mss: 1448, recv_buffer: 1 << 20, send_buffer: 1 << 20, ..Settings::default() };
        change(&mut settings.tcp);
        settings
    }

    #[test]
    fn a_buffer_of_bytes_is_offered_whole() {
        let room = Room::new(&settings(|_| {}));
        assert_eq!((room.limit(), room.edge(1000, 5000, 3000)), (1 << 20, 1000 + (1 << 20)));
    }

    /// RFC 9293 §3.8.6.2.2
    #[test]
    fn a_shut_window_is_news_with_a_segment_and_any_other_with_half() {
        let room = Room::new(&settings(|_| {}));
        let full = room.limit();
        let is_news = |left, gain| room.is_news(full, left, gain);
        assert_eq!([(0, 1447), (0, 1448), (1447, 1448)].map(|(left, gain)| is_news(left, gain)), [false, true, true]);
        assert_eq!([1448, full / 2 - 1, full / 2].map(|gain| is_news(1448, gain)), [false, false, true]);
        assert!(is_news(full / 4 - 1, full / 2) && !is_news(full / 4, full));
    }

    #[test]
    fn half_of_a_kernels_buffer_is_offered_and_what_is_held_takes_memory() {
        let truesize = settings(|tcp| tcp.buffer_accounting = BufferAccounting::Truesize);
        let room = Room::new(&truesize);
        assert_eq!((room.limit(), room.edge(5000, 5000, 0)), (1 << 19, 5000 + (1 << 19)));
        // Ten segments above a hole take 23,040 bytes, of which half would have been window.
        assert_eq!(room.edge(5000, 5000, 14_480), 5000 + (1 << 19) - 11_520);
        // Unread ones the same; more memory than there is leaves nothing.
        assert_eq!(room.edge(5000, 5000 + 14_480, 0), 19_480 + (1 << 19) - 11_520);
        assert_eq!(room.edge(0, 0, 1 << 20), 0);
    }

    #[test]
    fn a_window_follows_what_is_read_in_a_round_trip_and_never_shrinks() {
        let mut room = Room::new(&settings(|tcp| tcp.autotune = true));
        let (at, trip) = (Instant::from_millis, Duration::from_millis(100));
        assert_eq!(room.limit(), 65_535);
        room.on_read(at(100), 10_000, trip);
        room.on_read(at(150), 60_000, trip);
        assert_eq!(room.limit(), 65_535);
        room.on_read(at(200), 110_000, trip);
        assert_eq!(room.limit(), 2 * 100_000 + 16 * 1448);
        room.on_read(at(300), 120_000, trip);
        assert_eq!(room.limit(), 2 * 100_000 + 16 * 1448);
        room.on_read(at(400), 1_500_000, trip);
        assert_eq!(room.limit(), 1 << 20);
    }
}
