//! Identifiers that all crates share.

use core::fmt;

/// One path of a connection: a pair of addresses. A subflow that is lost and joined again keeps its path's id,
/// so that ties, traces and results stay stable. At most [`PathId::LIMIT`] per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

impl PathId {
    /// Most paths that one connection may know.
    pub const LIMIT: usize = 32;

    /// The id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The id as one bit of a set of paths.
    pub const fn bit(self) -> u32 {
        1 << self.0
    }

    /// The ids of a set of [`Self::bit`]s, ascending.
    pub fn of_bits(mut bits: u32) -> impl Iterator<Item = Self> {
        core::iter::from_fn(move || {
            let id = (bits != 0).then_some(Self(bits.trailing_zeros() as u8));
            bits &= bits.wrapping_sub(1);
            id
        })
    }

    /// The index of this path's item. Paths are few, and usually dense: the index equal to the id is checked first.
    #[inline(always)]
    pub fn place_in<T>(self, items: &[T], id_of: impl Fn(&T) -> Self) -> Option<usize> {
        match items.get(self.index()) {
            Some(item) if id_of(item) == self => Some(self.index()),
            _ => items.iter().position(|item| id_of(item) == self),
        }
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A connection's number, the same at both ends of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

/// A host: the client connects, the server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The host that connects.
    Client = 1,
    /// The host that listens.
    Server = 2,
}

/// The direction of a packet: `Down` = server → client, `Up` = client → server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Direction {
    /// Server → client.
    Down,
    /// Client → server.
    Up,
}

impl Direction {
    /// Both, in their order.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];

    /// Name as scenarios write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    /// The other direction.
    pub const fn reverse(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// The host whose packets go this way.
    pub const fn sender(self) -> Side {
        match self {
            Self::Down => Side::Server,
            Self::Up => Side::Client,
        }
    }

    /// The host that these packets reach.
    pub const fn receiver(self) -> Side {
        self.reverse().sender()
    }
}

/// Directions in which an application's data flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum TrafficDirection {
    /// Server → client: a download.
    #[default]
    Down,
    /// Client → server: an upload.
    Up,
    /// Both at once, over the same connections.
    Both,
}

impl TrafficDirection {
    /// Each direction.
    pub const fn ways(self) -> &'static [Direction] {
        match self {
            Self::Down => &[Direction::Down],
            Self::Up => &[Direction::Up],
            Self::Both => &Direction::BOTH,
        }
    }

    /// The only direction, or server → client of both: that of what is shown of one sender.
    pub const fn first(self) -> Direction {
        self.ways()[0]
    }

    /// Whether there are two.
    pub const fn is_both(self) -> bool {
        matches!(self, Self::Both)
    }

    /// The directions of either.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Both }
    }

    /// Whether data flow this way.
    pub const fn has(self, way: Direction) -> bool {
        match self {
            Self::Down => matches!(way, Direction::Down),
            Self::Up => matches!(way, Direction::Up),
            Self::Both => true,
        }
    }
}

impl Side {
    /// The other host.
    pub const fn peer(self) -> Self {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// The direction in which this host's packets leave.
    pub const fn sends(self) -> Direction {
        match self {
            Side::Client => Direction::Up,
            Side::Server => Direction::Down,
        }
    }

    /// The direction in which packets reach this host.
    pub const fn receives(self) -> Direction {
        match self {
            Side::Client => Direction::Down,
            Side::Server => Direction::Up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_wherever_it_stands() {
        let place = |id: u8, items: &[u8]| PathId(id).place_in(items, |item| PathId(*item));
        assert_eq!([0, 1, 2].map(|id| place(id, &[0, 1, 2])), [Some(0), Some(1), Some(2)]);
        assert_eq!([0, 1, 3, 7].map(|id| place(id, &[1, 3, 0])), [Some(2), Some(0), Some(1), None]);
        assert_eq!(place(0, &[]), None);
    }

    #[test]
    fn a_direction_has_a_sender_and_a_receiver() {
        for side in [Side::Client, Side::Server] {
            assert_eq!((side.sends().sender(), side.receives().receiver()), (side, side));
            assert_eq!(side.peer(), side.sends().receiver());
        }
        for traffic in [TrafficDirection::Down, TrafficDirection::Up, TrafficDirection::Both] {
            let ways = traffic.ways();
            assert!(traffic.has(traffic.first()));
            assert!(Direction::BOTH.iter().all(|way| traffic.has(*way) == ways.contains(way)));
        }
    }
}
