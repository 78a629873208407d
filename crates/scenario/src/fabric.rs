//! Fabrics: switches and cables between many hosts, and the ways through them.

use anabranch_units::Rng;

/// Switches and their cables, both directions of which are links of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// Name, which that of each link begins with.
    pub name: String,
    /// Arrangement of the switches.
    pub shape: Shape,
    /// Index of its first link; the others follow.
    pub first_link: usize,
}

/// Arrangement of switches. Each is a folded Clos network: a way leads up, turns once, and leads down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Three layers of equal switches (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, §2.2).
    FatTree {
        /// Ports of a switch: even, at least 2.
        k: u32,
    },
    /// Two layers: each leaf has a cable to each spine.
    LeafSpine {
        /// Switches to which hosts connect.
        leaves: u32,
        /// Switches among the leaves.
        spines: u32,
        /// Hosts of each leaf.
        hosts: u32,
    },
}

/// Senders and their receivers over a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// Each host sends to one other and receives from one other.
    #[default]
    Permutation,
    /// All send to one.
    Incast,
    /// Both ends of each pair are drawn.
    Random,
}

/// A direction of a cable: up to the core, or down to the hosts.
#[derive(Clone, Copy)]
enum Along {
    Up,
    Down,
}

impl Shape {
    /// Hosts that it connects.
    pub fn hosts(self) -> u32 {
        match self {
            // "k-port switches support k³/4 hosts" (Al-Fares et al., §2.2).
            Self::FatTree { k } => k * k * k / 4,
            Self::LeafSpine { leaves, hosts, .. } => leaves * hosts,
        }
    }

    /// Cables, that of each host among them.
    pub fn cables(self) -> u32 {
        match self {
            // Each of the three layers has k³/4.
            Self::FatTree { .. } => 3 * self.hosts(),
            Self::LeafSpine { leaves, spines, .. } => self.hosts() + leaves * spines,
        }
    }

    /// Both ends of each cable, the lower one first: hosts `h`, then switches by their layer.
    fn ends(self) -> Vec<[String; 2]> {
        let named = |letter: char, n: u32| format!("{letter}{n}");
        let mut ends = Vec::new();
        match self {
            Self::FatTree { k } => {
                let half = k / 2;
                let switches = k * half;
                ends.extend((0..self.hosts()).map(|host| [named('h', host), named('e', host / half)]));
                let pairs = || (0..switches).flat_map(|n| (0..half).map(move |i| (n, i)));
                ends.extend(pairs().map(|(edge, i)| [named('e', edge), named('a', edge / half * half + i)]));
                ends.extend(pairs().map(|(above, j)| [named('a', above), named('c', above % half * half + j)]));
            }
            Self::LeafSpine { leaves, spines, hosts } => {
                ends.extend((0..self.hosts()).map(|host| [named('h', host), named('l', host / hosts)]));
                let pairs = (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine)));
                ends.extend(pairs.map(|(leaf, spine)| [named('l', leaf), named('s', spine)]));
            }
        }
        ends
    }

    /// The cables of a way between two hosts, with their directions. `pick` chooses one of so many ways on.
    fn way(self, from: u32, to: u32, mut pick: impl FnMut(u32) -> u32) -> Vec<(u32, Along)> {
        use Along::{Down, Up};
        let hosts = self.hosts();
        let mut way = vec![(from, Up)];
        match self {
            Self::FatTree { k } => {
                let half = k / 2;
                let [(edge, pod), (last, end)] = [from, to].map(|host| (host / half, host / half / half));
                if edge != last {
                    let i = pick(half);
                    way.push((hosts + edge * half + i, Up));
                    if pod != end {
                        let j = pick(half);
                        way.push((2 * hosts + (pod * half + i) * half + j, Up));
                        way.push((2 * hosts + (end * half + i) * half + j, Down));
                    }
                    way.push((hosts + last * half + i, Down));
                }
            }
            Self::LeafSpine { spines, hosts: of_leaf, .. } => {
                let [leaf, last] = [from, to].map(|host| host / of_leaf);
                if leaf != last {
                    let spine = pick(spines);
                    way.extend([(hosts + leaf * spines + spine, Up), (hosts + last * spines + spine, Down)]);
                }
            }
        }
        way.push((to, Down));
        way
    }
}

impl Fabric {
    /// Names of its links, from end to end: the two of each cable, the one up to the core first.
    pub(crate) fn link_names(&self) -> impl Iterator<Item = String> + '_ {
        let both = |[low, high]: [String; 2]| {
            [(&low, &high), (&high, &low)].map(|(from, to)| format!("{}-{from}-{to}", self.name))
        };
        self.shape.ends().into_iter().flat_map(both)
    }

    /// Indices of its links.
    pub fn links(&self) -> core::ops::Range<usize> {
        self.first_link..self.first_link + 2 * self.shape.cables() as usize
    }

    /// Links of a way from one host to another, in order. Each switch chooses by a hash among equal ways on: `hash` draws.
    pub fn route(&self, from: u32, to: u32, hash: &mut Rng) -> Vec<usize> {
        self.route_by(from, to, |ways| hash.below(ways.into()) as u32)
    }

    /// Links of the longest way.
    pub(crate) fn longest(&self) -> Vec<usize> {
        self.route_by(0, self.shape.hosts() - 1, |_| 0)
    }

    fn route_by(&self, from: u32, to: u32, pick: impl FnMut(u32) -> u32) -> Vec<usize> {
        let way = self.shape.way(from, to, pick).into_iter();
        way.map(|(cable, along)| self.first_link + 2 * cable as usize + along as usize).collect()
    }

    /// The sender and the receiver of each of `count` pairs. Beyond one pair per host they begin again.
    pub fn pairs(&self, pairing: Pairing, count: u32, random: &mut Rng) -> Vec<(u32, u32)> {
        let hosts = self.shape.hosts() as usize;
        let mut order: Vec<u32> = (0..hosts as u32).collect();
        for n in (1..hosts).rev() {
            order.swap(n, random.below(n as u64 + 1) as usize);
        }
        let pair = |n: usize| match pairing {
            Pairing::Permutation => (order[n % hosts], order[(n + 1) % hosts]),
            Pairing::Incast => (order[1 + n % (hosts - 1)], order[0]),
            Pairing::Random => {
                let from = random.below(hosts as u64) as usize;
                let away = 1 + random.below(hosts as u64 - 1) as usize;
                (order[from], order[(from + away) % hosts])
            }
        };
        (0..count as usize).map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SHAPES: [Shape; 5] = [
        Shape::FatTree { k: 2 },
        Shape::FatTree { k: 4 },
        Shape::FatTree { k: 8 },
        Shape::LeafSpine { leaves: 3, spines: 2, hosts: 4 },
        Shape::LeafSpine { leaves: 2, spines: 1, hosts: 1 },
    ];

    fn fabric(shape: Shape) -> Fabric {
        Fabric { name: "f".into(), shape, first_link: 7 }
    }

    #[test]
    fn each_way_leads_from_host_to_host_without_a_gap() {
        for fabric in SHAPES.map(fabric) {
            let names: Vec<String> = fabric.link_names().collect();
            assert_eq!(names.len(), fabric.links().len());
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
            let mut hash = Rng::stream(1, "hash");
            for (from, to) in fabric.pairs(Pairing::Random, 200, &mut Rng::stream(1, "pairs")) {
                let route = fabric.route(from, to, &mut hash);
                let ends = route.iter().map(|link| &names[link - 7]).map(|name| name.split('-').collect::<Vec<_>>());
                let mut at = format!("h{from}");
                for end in ends {
                    assert_eq!(end[1], at, "{:?} {from} {to}", fabric.shape);
                    at = end[2].to_owned();
                }
                assert_eq!(at, format!("h{to}"));
                assert!(route.len() <= fabric.longest().len());
            }
        }
    }

    #[test]
    fn a_fat_tree_has_the_papers_numbers() {
        // Al-Fares et al., figure 1: k = 4 has 16 hosts; (k/2)² shortest ways between hosts of different pods.
        let fabric = fabric(Shape::FatTree { k: 4 });
        assert_eq!((fabric.shape.hosts(), fabric.shape.cables()), (16, 48));
        let mut hash = Rng::stream(1, "hash");
        let ways: BTreeSet<_> = (0..200).map(|_| fabric.route(0, 15, &mut hash)).collect();
        assert_eq!((ways.len(), ways.iter().all(|way| way.len() == 6)), (4, true));
        assert_eq!(fabric.route(0, 1, &mut hash).len(), 2);
        assert_eq!(fabric.route(0, 2, &mut hash).len(), 4);
    }

    #[test]
    fn pairs_are_what_their_name_says() {
        for fabric in SHAPES.map(fabric) {
            let hosts = fabric.shape.hosts();
            let draw = |pairing, seed| fabric.pairs(pairing, hosts, &mut Rng::stream(seed, "pairs"));
            let all = [Pairing::Permutation, Pairing::Incast, Pairing::Random].map(|pairing| draw(pairing, 1));
            assert!(all.iter().flatten().all(|(from, to)| from != to && *from < hosts && *to < hosts));
            let [permutation, incast, _] = &all;
            let senders: BTreeSet<_> = permutation.iter().map(|(from, _)| from).collect();
            let receivers: BTreeSet<_> = permutation.iter().map(|(_, to)| to).collect();
            assert_eq!((senders.len(), receivers.len()), (hosts as usize, hosts as usize));
            assert!(incast.iter().all(|(_, to)| *to == incast[0].1));
            assert_eq!(draw(Pairing::Random, 1), draw(Pairing::Random, 1));
        }
        let fabric = fabric(SHAPES[2]);
        let draw = |seed| fabric.pairs(Pairing::Permutation, 128, &mut Rng::stream(seed, "pairs"));
        assert_ne!(draw(1), draw(2));
    }
}
