//! How much of the processor strangers may use.

use crate::format::{COOKIE_LEN, INITIATION_LEN, RESPONSE_LEN};
use anabranch_units::{Duration, Instant};

/// How many handshakes a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In one second from strangers; more, and a sender must show that it receives at its address (`mac2`).
    pub handshakes: u32,
    /// In one second from one address that has shown that.
    pub per_address: u8,
}

impl Default for Limits {
    /// 100 handshakes take a tenth of a core at most; a client needs one in two minutes.
    fn default() -> Self {
        Self { handshakes: 100, per_address: 5 }
    }
}

/// Counts handshakes of the present second; a fixed amount of memory, whoever sends.
#[derive(Debug)]
pub(crate) struct Load {
    limits: Limits,
    since: Instant,
    admitted: u32,
    places: [u8; 256],
}

const PERIOD: Duration = Duration::from_secs(1);

// A cookie reply is no longer than any handshake message.
const _: () = assert!(COOKIE_LEN <= RESPONSE_LEN && COOKIE_LEN <= INITIATION_LEN);

impl Load {
    pub fn new(limits: Limits) -> Self {
        Self { limits, since: Instant::ZERO, admitted: 0, places: [0; 256] }
    }

    fn pass(&mut self, now: Instant) {
        if now.since(self.since) >= PERIOD {
            (self.since, self.admitted, self.places) = (now, 0, [0; 256]);
        }
    }

    /// True if a stranger's handshake may be worked on.
    pub fn admits(&mut self, now: Instant) -> bool {
        self.pass(now);
        let admitted = self.admitted < self.limits.handshakes;
        self.admitted += u32::from(admitted);
        admitted
    }

    /// True if one from the address of this place may, though strangers' may not.
    pub fn admits_from(&mut self, place: u8) -> bool {
        let count = &mut self.places[usize::from(place)];
        let admitted = *count < self.limits.per_address;
        *count += u8::from(admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_admits_so_many() {
        let mut load = Load::new(Limits { handshakes: 2, per_address: 1 });
        let mut admits = |millis| load.admits(Instant::from_millis(millis));
        assert_eq!([0, 500, 999, 1_000, 1_001, 1_999].map(&mut admits), [true, true, false, true, true, false]);
        assert_eq!([7, 7, 8].map(|place| load.admits_from(place)), [true, false, true]);
    }
}
