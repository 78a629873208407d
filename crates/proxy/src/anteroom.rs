//! Programs that have not named their target: few of each listener and of each address, so that silent hosts do not lock others out.

use anabranch_units::Instant;
use core::cmp::Reverse;
use core::net::{IpAddr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};

/// Programs of this host at one listener.
const LOCAL: usize = 1_024;
/// Programs of other hosts at one listener, and those of them that have one address.
const REMOTE: usize = 256;
const EACH: usize = 64;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// On this host.
    Local,
    /// At this address; of IPv6 in this network of 64 bits, for one host may have all of it.
    Remote(IpAddr),
}

impl Origin {
    /// The origin of a program that connects from `address`.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            own if own.is_loopback() => Self::Local,
            IpAddr::V6(v6) => Self::Remote(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into()),
            v4 => Self::Remote(v4),
        }
    }
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guest {
    /// The place of its listener.
    pub listener: u64,
    pub origin: Origin,
    /// When it is given up.
    pub until: Instant,
}

/// All that wait, by the tokens of their lines.
#[derive(Debug, Default)]
pub(crate) struct Anteroom {
    guests: BTreeMap<u64, Guest>,
    /// Those of a listener and an origin. Tokens grow: the first is the oldest.
    rooms: BTreeMap<(u64, Origin), BTreeSet<u64>>,
}

impl Anteroom {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.guests.len()
    }

    /// One more waits. Returns the one that has to go, if there are too many: the oldest of its address, or of the address that has most.
    pub fn enter(&mut self, token: u64, guest: Guest) -> Option<u64> {
        let room = (guest.listener, guest.origin);
        self.guests.insert(token, guest);
        self.rooms.entry(room).or_default().insert(token);
        self.rooms.get(&self.crowded(room)?)?.first().copied()
    }

    /// The room that has too many, after one has entered this one.
    fn crowded(&self, room: (u64, Origin)) -> Option<(u64, Origin)> {
        let (listener, origin) = room;
        let here = self.rooms.get(&room)?.len();
        if origin == Origin::Local {
            return (here > LOCAL).then_some(room);
        }
        if here > EACH {
            return Some(room);
        }
        let others = self.rooms.iter().filter(|((at, from), _)| *at == listener && *from != Origin::Local);
        let all: usize = others.clone().map(|(_, room)| room.len()).sum();
        let most = others.max_by_key(|(_, tokens)| (tokens.len(), Reverse(tokens.first())));
        most.filter(|_| all > REMOTE).map(|(room, _)| *room)
    }

    /// One waits no more.
    pub fn leave(&mut self, token: u64) -> Option<Guest> {
        let guest = self.guests.remove(&token)?;
        let room = (guest.listener, guest.origin);
        if let Some(tokens) = self.rooms.get_mut(&room) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.rooms.remove(&room);
            }
        }
        Some(guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(listener: u64, address: &str) -> Guest {
        Guest { listener, origin: Origin::of(address.parse().unwrap()), until: Instant::ZERO }
    }

    /// Lets them in, and shows out whoever has to go.
    fn enter(room: &mut Anteroom, tokens: impl Iterator<Item = u64>, guest: Guest) -> Vec<u64> {
        tokens
            .filter_map(|token| room.enter(token, guest).inspect(|gone| assert!(room.leave(*gone).is_some())))
            .collect()
    }

    #[test]
    fn the_oldest_of_an_address_that_has_too_many_goes() {
        let mut room = Anteroom::default();
        assert_eq!(enter(&mut room, 0..1, guest(0, "192.0.2.9")), [0; 0]);
        let gone = enter(&mut room, 1..5_000, guest(0, "192.0.2.1"));
        assert_eq!((room.len(), gone.first(), gone.last()), (EACH + 1, Some(&1), Some(&(4_999 - EACH as u64))));
        assert!(room.leave(0).is_some(), "the other one is still there");
        assert!(room.leave(0).is_none());
    }

    #[test]
    fn many_addresses_take_no_place_of_this_host_and_of_no_other_listener() {
        let mut room = Anteroom::default();
        assert_eq!(enter(&mut room, 0..LOCAL as u64, guest(0, "127.0.0.1")), [0; 0]);
        assert_eq!(enter(&mut room, 2_000..2_001, guest(1, "192.0.2.1")), [0; 0]);
        for (n, first) in (0..300).map(|n| (n, 10_000 + 100 * n)) {
            // An address with few keeps them as long as another has more.
            let before = room.len();
            let gone = enter(&mut room, first..first + 20, guest(0, &format!("198.51.{}.{}", n / 100, n % 100)));
            assert!(gone.iter().all(|token| *token >= 10_000));
            assert!(room.len() <= before + 20 && room.len() <= LOCAL + 1 + REMOTE);
        }
        assert_eq!(enter(&mut room, 90_000..90_001, guest(0, "127.0.0.2")), [0], "this host's own limit");
        assert!(room.leave(2_000).is_some());
    }

    #[test]
    fn a_host_has_one_place_with_all_its_addresses() {
        let of = |text: &str| Origin::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!([of("::1"), of("127.1.2.3"), of("::ffff:127.0.0.1")], [Origin::Local; 3]);
    }
}
