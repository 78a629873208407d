//! The man in the middle: rules by which he draws the change of each packet, and the list of his deeds.
//!
//! A case is first played by its rules. His deeds are recorded packet by packet; the list, or a part of it, can be
//! played in place of the rules.

mod change;
mod forge;
mod rules;

pub use change::{Nat, Twist};
pub use forge::Forgery;
pub(crate) use rules::{Rule, draw};

use crate::luck::Luck;
use anabranch_network::{CoalesceSpec, OptionKind, absorb, cut, remove};
use anabranch_units::{Direction, Duration, Rng};
use anabranch_wire::{Ecn, Flags, Packet};
use core::fmt;
use std::collections::BTreeMap;

/// One change of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The packet is lost.
    Drop,
    /// A copy follows after this time.
    Duplicate(Duration),
    /// The packet is delayed by this time.
    Delay(Duration),
    /// The packet is cut into pieces of this many bytes.
    Split(u16),
    /// The packet waits for the next one; both are merged if one header can describe both.
    Hold,
    /// Options are removed.
    Strip(OptionKind),
    /// The byte at this offset of its payload is changed.
    Change(u16),
    /// The packet's window becomes this.
    Window(u16),
    /// The packet's window becomes at most this.
    Clamp(u16),
    /// The packet's MP_CAPABLE is changed.
    Capable(Twist),
    /// A forged packet follows it.
    Forge(Forgery),
    /// A forged packet replaces it.
    Replace(Forgery),
    /// The ECN field of its IP header becomes this.
    Mark(Ecn),
    /// The packet's control bits become these.
    Flags(Flags),
}

/// A packet by path, direction and number.
pub type Place = (u8, Direction, u32);

/// A change and its packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// The packet.
    pub place: Place,
    /// The change.
    pub what: What,
}

/// A packet that he forwards.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub packet: Packet,
    pub way: Direction,
    pub later: Duration,
}

/// Most consecutive losses per path and direction, so that loss is no reason to give up.
const LOST_IN_A_ROW: u32 = 3;
/// The longest time that a packet waits for the next.
pub(crate) const HOLDS: Duration = Duration::from_millis(1);
/// Most deeds per case.
const MOST_DEEDS: usize = 20_000;

/// The source of his deeds.
enum Source {
    Rules(Vec<Rule>, Luck<'static>),
    List(BTreeMap<Place, Vec<What>>),
}

/// The man in the middle.
pub(crate) struct Middle {
    source: Source,
    /// Forgeries of an attacker off the path may begin: in SYN-RECEIVED a SYN in the window returns a passive end to
    /// LISTEN (RFC 9293 §3.10.7.4).
    pub guesses: bool,
    pub done: Vec<Deed>,
    /// State by path and direction: packets so far, consecutive losses, and the packet that waits.
    lines: BTreeMap<(u8, Direction), Line>,
}

#[derive(Default)]
struct Line {
    sent: u32,
    lost: u32,
    held: Option<Packet>,
}

impl Middle {
    pub fn by_rules(seed: u64, rules: Vec<Rule>) -> Self {
        Self::new(Source::Rules(rules, Luck::Drawn(Rng::stream(seed, "middle"))))
    }

    pub fn by_list(deeds: &[Deed]) -> Self {
        let mut list: BTreeMap<Place, Vec<What>> = BTreeMap::new();
        deeds.iter().for_each(|deed| list.entry(deed.place).or_default().push(deed.what.clone()));
        Self::new(Source::List(list))
    }

    fn new(source: Source) -> Self {
        Self { source, guesses: false, done: Vec::new(), lines: BTreeMap::new() }
    }

    /// Packets that left the client on this path.
    pub fn sent(&self, path: u8, way: Direction) -> u32 {
        self.lines.get(&(path, way)).map_or(0, |line| line.sent)
    }

    /// Handles a packet. Returns the packets to forward, and whether one waits now.
    pub fn take(&mut self, path: u8, way: Direction, packet: Packet) -> (Vec<Passed>, bool) {
        let line = self.lines.entry((path, way)).or_default();
        let place = (path, way, line.sent);
        line.sent += 1;
        let deeds = match &mut self.source {
            Source::List(list) => list.get(&place).cloned().unwrap_or_default(),
            Source::Rules(rules, luck) if self.done.len() < MOST_DEEDS => {
                let may_lose = line.lost < LOST_IN_A_ROW;
                let rules = rules.iter().filter(|rule| self.guesses || !rule.guesses());
                rules.filter_map(|rule| rule.apply(luck, place, &packet, may_lose)).collect()
            }
            Source::Rules(..) => Vec::new(),
        };
        let mut passed = self.carry_out(place, packet, deeds);
        let line = self.lines.entry((path, way)).or_default();
        // The waiting packet goes first, unless it was merged into this one.
        if let Some(mut held) = line.held.take() {
            match passed.first_mut() {
                Some(next) if next.way == way && absorb(&mut held, &next.packet, CoalesceSpec::LONGEST as usize) => {
                    next.packet = held
                }
                _ => passed.insert(0, Passed { packet: held, way, later: Duration::ZERO }),
            }
        }
        let holds = self.done.last().is_some_and(|deed| deed.place == place && deed.what == What::Hold);
        if holds && passed.last().is_some_and(|last| last.way == way && last.later == Duration::ZERO) {
            line.held = passed.pop().map(|last| last.packet);
            return (passed, true);
        }
        (passed, false)
    }

    /// The waiting packet continues alone.
    pub fn release(&mut self, path: u8, way: Direction) -> Option<Packet> {
        self.lines.get_mut(&(path, way))?.held.take()
    }

    fn carry_out(&mut self, place: Place, packet: Packet, deeds: Vec<What>) -> Vec<Passed> {
        let (_, way, _) = place;
        let mut passed = vec![Passed { packet, way, later: Duration::ZERO }];
        let (mut lost, mut later) = (false, Duration::ZERO);
        for what in deeds {
            let first = &mut passed[0];
            let real = match &what {
                What::Drop => {
                    lost = true;
                    true
                }
                What::Delay(by) => {
                    later = *by;
                    true
                }
                What::Duplicate(by) => {
                    let again = Passed { later: *by, ..first.clone() };
                    passed.push(again);
                    true
                }
                What::Split(size) => split(&mut passed, *size),
                What::Hold => true,
                What::Strip(kind) => remove(&mut first.packet.segment, (*kind).into()),
                What::Change(at) => change::raise_byte(&mut first.packet.segment, (*at).into()),
                What::Window(window) => core::mem::replace(&mut first.packet.segment.window, *window) != *window,
                What::Clamp(most) => {
                    let window = &mut first.packet.segment.window;
                    core::mem::replace(window, (*most).min(*window)) > *most
                }
                What::Mark(ecn) => core::mem::replace(&mut first.packet.segment.ecn, *ecn) != *ecn,
                What::Flags(flags) => core::mem::replace(&mut first.packet.segment.flags, *flags) != *flags,
                What::Capable(twist) => change::twist(&mut first.packet.segment, *twist),
                What::Forge(forgery) => {
                    let packet = forgery.make(&first.packet);
                    let way = if forgery.back { way.reverse() } else { way };
                    passed.push(Passed { packet, way, later: Duration::ZERO });
                    true
                }
                What::Replace(forgery) => {
                    first.packet = forgery.make(&first.packet);
                    first.way = if forgery.back { way.reverse() } else { way };
                    true
                }
            };
            if real {
                self.done.push(Deed { place, what });
            }
        }
        let line = self.lines.entry((place.0, way)).or_default();
        line.lost = if lost { line.lost + 1 } else { 0 };
        passed[0].later = later;
        if lost {
            passed.remove(0);
        }
        passed
    }
}

/// Cuts the first packet; true if it became more than one.
fn split(passed: &mut Vec<Passed>, size: u16) -> bool {
    let Passed { packet, way, later } = passed[0].clone();
    let pieces: Vec<Passed> = cut(&packet, size).into_iter().map(|packet| Passed { packet, way, later }).collect();
    let cut = pieces.len() > 1;
    if cut {
        passed.splice(0..1, pieces);
    }
    cut
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("lost"),
            Self::Duplicate(by) => write!(f, "again after {by}"),
            Self::Delay(by) => write!(f, "late by {by}"),
            Self::Split(size) => write!(f, "cut into {size} bytes each"),
            Self::Hold => f.write_str("waits to be joined with the next"),
            Self::Strip(kind) => write!(f, "{kind:?} taken off"),
            Self::Change(at) => write!(f, "byte {at} changed"),
            Self::Window(window) => write!(f, "window becomes {window}"),
            Self::Clamp(most) => write!(f, "window at most {most}"),
            Self::Capable(twist) => write!(f, "MP_CAPABLE: {twist:?}"),
            Self::Forge(_) => f.write_str("a forged segment follows"),
            Self::Replace(_) => f.write_str("replaced by a forged segment"),
            Self::Mark(ecn) => write!(f, "ECN field becomes {ecn}"),
            Self::Flags(flags) => write!(f, "flags become {flags}"),
        }
    }
}
