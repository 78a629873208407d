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
pub(crate) enum ProgramOrigin {
    /// On this host.
    Local,
    /// At this address; of IPv6 in this network of 64 bits, for one host may have all of it.
    Remote(IpAddr),
}

impl ProgramOrigin {
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
pub(crate) struct PendingProgram {
    /// The place of its listener.
    pub listener: u64,
    pub origin: ProgramOrigin,
    /// When it is given up.
    pub until: Instant,
}

/// All that wait, by the tokens of their flows.
#[derive(Debug, Default)]
pub(crate) struct PendingPrograms {
    programs: BTreeMap<u64, PendingProgram>,
    /// Those of a listener and an origin. Tokens grow: the first is the oldest.
    groups: BTreeMap<(u64, ProgramOrigin), BTreeSet<u64>>,
}

impl PendingPrograms {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// One more waits. Returns the one that has to go, if there are too many: the oldest of its address, or of the address that has most.
    pub fn enter(&mut self, token: u64, program: PendingProgram) -> Option<u64> {
        let group = (program.listener, program.origin);
        self.programs.insert(token, program);
        self.groups.entry(group).or_default().insert(token);
        self.groups.get(&self.crowded(group)?)?.first().copied()
    }

    /// The group that has too many, after one has entered this one.
    fn crowded(&self, group: (u64, ProgramOrigin)) -> Option<(u64, ProgramOrigin)> {
        let (listener, origin) = group;
        let here = self.groups.get(&group)?.len();
        if origin == ProgramOrigin::Local {
            return (here > LOCAL).then_some(group);
        }
        if here > EACH {
            return Some(group);
        }
        let others = self.groups.iter().filter(|((at, from), _)| *at == listener && *from != ProgramOrigin::Local);
        let all: usize = others.clone().map(|(_, group)| group.len()).sum();
        let most = others.max_by_key(|(_, tokens)| (tokens.len(), Reverse(tokens.first())));
        most.filter(|_| all > REMOTE).map(|(group, _)| *group)
    }

    /// One waits no more.
    pub fn leave(&mut self, token: u64) -> Option<PendingProgram> {
        let program = self.programs.remove(&token)?;
        let group = (program.listener, program.origin);
        if let Some(tokens) = self.groups.get_mut(&group) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.groups.remove(&group);
            }
        }
        Some(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(listener: u64, address: &str) -> PendingProgram {
        PendingProgram { listener, origin: ProgramOrigin::of(address.parse().unwrap()), until: Instant::ZERO }
    }

    /// Lets them in, and shows out whoever has to go.
    fn enter(pending: &mut PendingPrograms, tokens: impl Iterator<Item = u64>, program: PendingProgram) -> Vec<u64> {
        tokens
            .filter_map(|token| pending.enter(token, program).inspect(|gone| assert!(pending.leave(*gone).is_some())))
            .collect()
    }

    #[test]
    fn the_oldest_of_an_address_that_has_too_many_goes() {
        let mut pending = PendingPrograms::default();
        assert_eq!(enter(&mut pending, 0..1, program(0, "192.0.2.9")), [0; 0]);
        let gone = enter(&mut pending, 1..5_000, program(0, "192.0.2.1"));
        assert_eq!((pending.len(), gone.first(), gone.last()), (EACH + 1, Some(&1), Some(&(4_999 - EACH as u64))));
        assert!(pending.leave(0).is_some(), "the other one is still there");
        assert!(pending.leave(0).is_none());
    }

    #[test]
    fn many_addresses_take_no_place_of_this_host_and_of_no_other_listener() {
        let mut pending = PendingPrograms::default();
        assert_eq!(enter(&mut pending, 0..LOCAL as u64, program(0, "127.0.0.1")), [0; 0]);
        assert_eq!(enter(&mut pending, 2_000..2_001, program(1, "192.0.2.1")), [0; 0]);
        for (n, first) in (0..300).map(|n| (n, 10_000 + 100 * n)) {
            // An address with few keeps them as long as another has more.
            let before = pending.len();
            let gone = enter(&mut pending, first..first + 20, program(0, &format!("198.51.{}.{}", n / 100, n % 100)));
            assert!(gone.iter().all(|token| *token >= 10_000));
            assert!(pending.len() <= before + 20 && pending.len() <= LOCAL + 1 + REMOTE);
        }
        assert_eq!(enter(&mut pending, 90_000..90_001, program(0, "127.0.0.2")), [0], "this host's own limit");
        assert!(pending.leave(2_000).is_some());
    }

    #[test]
    fn a_host_has_one_place_with_all_its_addresses() {
        let of = |text: &str| ProgramOrigin::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!([of("::1"), of("127.1.2.3"), of("::ffff:127.0.0.1")], [ProgramOrigin::Local; 3]);
    }
}
