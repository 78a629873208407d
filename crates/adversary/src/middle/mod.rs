//! The man in the middle: rules by which he draws what he does to each packet, and the list of what he did.
//!
//! A case is first played by its rules. What he did is noted packet by packet, and can be played again from that list,
//! or from a part of it.

mod change;
mod forge;
mod rules;

pub use change::{Nat, Strip, Twist};
pub use forge::Forgery;
pub(crate) use rules::{Rule, draw};

use crate::luck::Luck;
use anabranch_units::{Direction, Duration, Rng};
use anabranch_wire::Packet;
use core::fmt;
use std::collections::BTreeMap;

/// One thing done to a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It is lost.
    Drop,
    /// It comes again, so much later.
    Duplicate(Duration),
    /// It comes so much later.
    Delay(Duration),
    /// It is cut into pieces of so many bytes.
    Split(u16),
    /// It waits for the next one, and both become one if one header can speak for both.
    Hold,
    /// Options are taken off.
    Strip(Strip),
    /// The byte at this place of its payload is changed.
    Change(u16),
    /// Another window is put in.
    Window(u16),
    /// Its window becomes no greater than this.
    Clamp(u16),
    /// Its MP_CAPABLE is changed.
    Capable(Twist),
    /// A forged packet follows it.
    Forge(Forgery),
    /// A forged packet takes its place.
    Replace(Forgery),
}

/// A packet by its path, its way and its number there.
pub type Place = (u8, Direction, u32);

/// What was done to a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// Which packet.
    pub place: Place,
    /// What was done.
    pub what: What,
}

/// A packet as he lets it go on.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub packet: Packet,
    pub way: Direction,
    pub later: Duration,
}

/// Most packets in a row that are lost on a path and way, so that no loss is a reason to give up.
const LOST_IN_A_ROW: u32 = 3;
/// Longest that a packet waits for another.
pub(crate) const HOLDS: Duration = Duration::from_millis(1);
/// Most deeds of a case.
const MOST_DEEDS: usize = 20_000;

/// Where what he does comes from.
enum Source {
    Rules(Vec<Rule>, Luck<'static>),
    List(BTreeMap<Place, Vec<What>>),
}

/// The man in the middle.
pub(crate) struct Middle {
    source: Source,
    /// Guesses may begin: in SYN-RECEIVED a SYN in the window takes a passive end back to LISTEN (RFC 9293 §3.10.7.4).
    pub guesses: bool,
    pub done: Vec<Deed>,
    /// By path and way: packets so far, how many of the last were lost in a row, and one that waits.
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

    /// A packet comes. Returns what goes on, and whether one waits now.
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
        // One that waited goes first, unless it has become part of this one.
        if let Some(mut held) = line.held.take() {
            match passed.first_mut() {
                Some(next) if next.way == way && absorb(&mut held, &next.packet) => next.packet = held,
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

    /// The packet that waits goes on alone.
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
                What::Strip(kind) => change::strip(&mut first.packet.segment, *kind),
                What::Change(at) => change::raise_byte(&mut first.packet.segment, (*at).into()),
                What::Window(window) => core::mem::replace(&mut first.packet.segment.window, *window) != *window,
                What::Clamp(most) => {
                    let window = &mut first.packet.segment.window;
                    core::mem::replace(window, (*most).min(*window)) > *most
                }
                What::Capable(twist) => change::twist(&mut first.packet.segment, *twist),
                What::Forge(forgery) => {
                    let packet = forgery.make(&first.packet);
                    let way = if forgery.back { opposite(way) } else { way };
                    passed.push(Passed { packet, way, later: Duration::ZERO });
                    true
                }
                What::Replace(forgery) => {
                    first.packet = forgery.make(&first.packet);
                    first.way = if forgery.back { opposite(way) } else { way };
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
    // RFC 8684 §3.1, §3.3.3: offload engines repeat every option; a SYN has no payload to cut.
    let pieces: Vec<Passed> = packet.cut(size).map(|packet| Passed { packet, way, later }).collect();
    let cut = pieces.len() > 1;
    if cut {
        passed.splice(0..1, pieces);
    }
    cut
}

/// Makes `held` one with `next`, which follows it.
fn absorb(held: &mut Packet, next: &Packet) -> bool {
    let payload = &held.segment.payload;
    if payload.is_empty() || next.segment.payload.is_empty() || payload.len() + next.segment.payload.len() > 60_000 {
        return false;
    }
    let both = [&payload[..], &next.segment.payload[..]].concat();
    let len = payload.len();
    let one = (held.src, held.dst) == (next.src, next.dst) && held.segment.absorb_header(len, &next.segment);
    if one {
        held.segment.payload = both.into();
    }
    one
}

pub(crate) fn opposite(way: Direction) -> Direction {
    match way {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    }
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
        }
    }
}
