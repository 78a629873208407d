//! The rules of each class.

use super::forge::{anything, guess};
use super::{Place, Twist, What};
use crate::class::Class;
use crate::luck::Luck;
use anabranch_network::{OptionKind, Segments};
use anabranch_units::Direction;
use anabranch_wire::{Ecn, Flags, Packet};

/// The effect of a rule; the details are drawn per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Drop,
    Duplicate,
    Delay {
        most_us: u64,
    },
    Split,
    Hold,
    Strip(OptionKind),
    Change,
    Window,
    Clamp(u16),
    Capable(Twist),
    Guess,
    Forge,
    Replace,
    /// Longer packets, in bytes of the IP packet, are lost, however often in a row.
    Limit(u16),
    /// ECN-capable packets, or all of them, get this codepoint.
    Mark {
        all: bool,
        as_: Ecn,
    },
    /// Control bits that are cleared, and then set.
    Flags {
        clear: Flags,
        set: Flags,
    },
}

/// A change of packets `from..until` of a line, each with a probability.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    path: Option<u8>,
    way: Option<Direction>,
    from: u32,
    until: u32,
    chance: f64,
    which: Segments,
    does: Does,
}

impl Rule {
    /// The rule forges segments that must have no effect.
    pub fn guesses(&self) -> bool {
        self.does == Does::Guess
    }

    /// The rule drops packets above a size on this path.
    pub fn narrows(&self, path: u8) -> bool {
        self.most(path).is_some()
    }

    /// The most bytes of a packet that passes this path.
    pub fn most(&self, path: u8) -> Option<u16> {
        match self.does {
            Does::Limit(most) if self.path.is_none_or(|p| p == path) => Some(most),
            _ => None,
        }
    }

    /// The hosts cannot agree on Multipath TCP: no option comes over the first path.
    pub fn makes_plain(&self) -> bool {
        let whole = self.path.is_none_or(|p| p == 0) && (self.from, self.until) == (0, u32::MAX);
        whole && self.chance == 1.0 && self.which == Segments::All && self.does == Does::Strip(OptionKind::Mptcp)
    }

    /// The rule's change of a packet, if any.
    pub fn apply(&self, luck: &mut Luck<'_>, place: Place, packet: &Packet, may_lose: bool) -> Option<What> {
        let (path, way, n) = place;
        let meant = self.path.is_none_or(|p| p == path) && self.way.is_none_or(|w| w == way);
        let meant = meant && (self.from..self.until).contains(&n) && self.which.fits(&packet.segment);
        if !meant || !luck.chance(self.chance) {
            return None;
        }
        let len = packet.segment.payload.len() as u64;
        Some(match self.does {
            Does::Drop if !may_lose => return None,
            Does::Drop => What::Drop,
            Does::Duplicate => What::Duplicate(luck.time(1, 200_000)),
            Does::Delay { most_us } => What::Delay(luck.time(10, most_us)),
            Does::Split if len < 2 => return None,
            Does::Split => What::Split(luck.within(len.div_ceil(8), len - 1) as u16),
            Does::Hold => What::Hold,
            Does::Strip(kind) => What::Strip(kind),
            Does::Change if len == 0 => return None,
            Does::Change => What::Change(luck.below(len) as u16),
            Does::Window => What::Window(luck.below(65_536) as u16),
            Does::Clamp(most) => What::Clamp(most),
            Does::Capable(twist) => What::Capable(twist),
            Does::Guess => What::Forge(guess(luck)),
            Does::Forge => What::Forge(anything(luck)),
            Does::Replace => What::Replace(anything(luck)),
            Does::Limit(most) if packet.len() <= usize::from(most) => return None,
            Does::Limit(_) => What::Drop,
            Does::Mark { all, .. } if !all && packet.segment.ecn == Ecn::NotEct => return None,
            Does::Mark { as_, .. } => What::Mark(as_),
            Does::Flags { clear, set } => What::Flags(Flags(packet.segment.flags.0 & !clear.0 | set.0)),
        })
    }
}

/// Draws rules one by one.
struct Draw<'a, 'b> {
    luck: &'a mut Luck<'b>,
    paths: u64,
    rules: Vec<Rule>,
}

impl Draw<'_, '_> {
    /// A rule for one path or all, and for one direction or both.
    fn rule(&mut self, which: Segments, does: Does, from: u32, until: u32, chance: f64) {
        let path = (!self.luck.chance(0.4)).then(|| self.luck.below(self.paths) as u8);
        let way = *self.luck.pick(&[None, Some(Direction::Up), Some(Direction::Down)]);
        self.rules.push(Rule { path, way, from, until, chance, which, does });
    }

    fn probability(&mut self, most: f64) -> f64 {
        self.luck.spread_real(0.002, most)
    }

    /// Losses, delays, duplicates: the benign part.
    fn weather(&mut self) {
        if self.luck.chance(0.6) {
            let p = self.probability(0.3);
            self.rule(Segments::All, Does::Drop, 0, u32::MAX, p);
        }
        if self.luck.chance(0.4) {
            let p = self.probability(0.3);
            let most_us = self.luck.spread(1_000, 1_000_000);
            self.rule(Segments::All, Does::Delay { most_us }, 0, u32::MAX, p);
        }
        if self.luck.chance(0.3) {
            let p = self.probability(0.2);
            self.rule(Segments::All, Does::Duplicate, 0, u32::MAX, p);
        }
        while self.luck.chance(0.4) {
            let from = self.luck.spread(1, 60) as u32 - 1;
            let until = from + self.luck.within(1, 3) as u32;
            self.rule(Segments::All, Does::Drop, from, until, 1.0);
        }
    }

    fn segments(&mut self) {
        let p = self.probability(1.0);
        self.rule(Segments::Data, Does::Split, 0, u32::MAX, p);
        let p = self.probability(1.0);
        self.rule(Segments::Data, Does::Hold, 0, u32::MAX, p);
    }

    fn tcp_options(&mut self) {
        // An option removed from the SYN is not offered; removed from the SYN/ACK alone it would be agreed at one end
        // only.
        for kind in [OptionKind::SackPermitted, OptionKind::Timestamps, OptionKind::WindowScale] {
            if self.luck.chance(0.3) {
                let all = Rule {
                    path: (!self.luck.chance(0.5)).then(|| self.luck.below(self.paths) as u8),
                    way: Some(Direction::Up),
                    from: 0,
                    until: u32::MAX,
                    chance: 1.0,
                    which: Segments::Syn,
                    does: Does::Strip(kind),
                };
                self.rules.push(all);
            }
        }
        if self.luck.chance(0.3) {
            self.rule(Segments::All, Does::Strip(OptionKind::Sack), 0, u32::MAX, 1.0);
        }
        if self.luck.chance(0.5) {
            self.rule(Segments::All, Does::Strip(OptionKind::AddAddr), 0, u32::MAX, 1.0);
        }
        if self.luck.chance(0.3) {
            self.windows();
        }
    }

    /// Boxes that throttle a sender by its peer's window, and open it later.
    fn windows(&mut self) {
        let from = self.luck.spread(1, 60) as u32;
        let until = from + self.luck.spread(1, 12) as u32;
        let most = if self.luck.chance(0.5) { 0 } else { self.luck.spread(1, 2000) as u16 };
        self.rule(Segments::NotSyn, Does::Clamp(most), from, until, 1.0);
    }

    fn capable(&mut self) {
        let twist = *self.luck.pick(&[
            Twist::Checksum,
            Twist::NoJoinHere,
            Twist::NoSha256,
            Twist::Version(0),
            Twist::Version(2),
        ]);
        let until = *self.luck.pick(&[u32::MAX, 1, 2]);
        self.rule(Segments::All, Does::Capable(twist), 0, until, 1.0);
    }

    fn mptcp_options(&mut self) {
        if self.luck.chance(0.15) {
            return self.capable();
        }
        loop {
            let which =
                *self.luck.pick(&[Segments::All, Segments::Data, Segments::Syn, Segments::NotSyn, Segments::Pure]);
            let kind = *self.luck.pick(&[
                OptionKind::Mptcp,
                OptionKind::Mptcp,
                OptionKind::Dss,
                OptionKind::Mapping,
                OptionKind::AddAddr,
            ]);
            let from = if which == Segments::Syn { 0 } else { self.luck.spread(1, 60) as u32 - 1 };
            let until = if self.luck.chance(0.6) { u32::MAX } else { from + self.luck.spread(1, 20) as u32 };
            let chance = if self.luck.chance(0.8) { 1.0 } else { 0.3 };
            self.rule(which, Does::Strip(kind), from, until, chance);
            if !self.luck.chance(0.4) {
                return;
            }
        }
    }

    fn payload(&mut self, only: Option<u8>) {
        loop {
            let from = self.luck.spread(1, 40) as u32 - 1;
            let until = from + self.luck.spread(1, 100) as u32;
            let chance = if self.luck.chance(0.5) { 1.0 } else { self.probability(0.5) };
            self.rule(Segments::Data, Does::Change, from, until, chance);
            let last = self.rules.len() - 1;
            self.rules[last].path = only;
            if !self.luck.chance(0.3) {
                return;
            }
        }
    }
}

/// Rules of the classes that have hosts of their own.
impl Draw<'_, '_> {
    fn strip(&mut self) {
        loop {
            let which = *self.luck.pick(&[Segments::All, Segments::All, Segments::Data, Segments::Pure, Segments::Syn]);
            let later = self.luck.spread(3, 200) as u32;
            let from = *self.luck.pick(&[0, 0, 1, 2, later]);
            let until = if self.luck.chance(0.7) { u32::MAX } else { from + self.luck.spread(1, 30) as u32 };
            self.rule(which, Does::Strip(OptionKind::Mptcp), from, until, 1.0);
            if !self.luck.chance(0.3) {
                return;
            }
        }
    }

    fn tiny(&mut self) {
        if self.luck.chance(0.7) {
            let kind = *self.luck.pick(&[OptionKind::Mptcp, OptionKind::Mptcp, OptionKind::Dss, OptionKind::Mapping]);
            let chance = self.luck.spread_real(0.01, 0.9);
            let from = self.luck.spread(1, 30) as u32 - 1;
            self.rule(Segments::All, Does::Strip(kind), from, u32::MAX, chance);
        }
        if self.luck.chance(0.6) {
            self.payload(None);
        }
    }

    fn resets(&mut self) {
        let chance = self.luck.spread_real(0.3, 1.0);
        self.rule(Segments::Reset, Does::Limit(0), 0, u32::MAX, chance);
        // Holes: resets lie at the edges of SACKed data.
        if self.luck.chance(0.7) {
            let chance = self.luck.spread_real(0.03, 0.3);
            self.rule(Segments::Data, Does::Drop, 0, u32::MAX, chance);
        }
        // Challenges.
        if self.luck.chance(0.6) {
            let from = self.luck.spread(3, 60) as u32;
            let until = from + self.luck.spread(5, 100) as u32;
            let chance = self.luck.spread_real(0.1, 0.9);
            self.rule(Segments::Pure, Does::Limit(0), from, until, chance);
        }
    }

    fn bleach(&mut self) {
        let both = Flags::ECE | Flags::CWR;
        loop {
            let mark = |all, as_| Does::Mark { all, as_ };
            let does = *self.luck.pick(&[
                mark(false, Ecn::NotEct),
                mark(false, Ecn::Ce),
                mark(true, Ecn::Ce),
                mark(false, Ecn::Ect1),
                mark(true, Ecn::Ect0),
                Does::Flags { clear: Flags::ECE, set: Flags(0) },
                Does::Flags { clear: Flags::CWR, set: Flags(0) },
                Does::Flags { clear: both, set: Flags(0) },
                Does::Flags { clear: Flags(0), set: Flags::ECE },
                Does::Flags { clear: Flags(0), set: Flags::CWR },
                Does::Flags { clear: Flags(0), set: both },
            ]);
            let which =
                *self.luck.pick(&[Segments::All, Segments::Syn, Segments::NotSyn, Segments::Data, Segments::Pure]);
            let chance = if self.luck.chance(0.5) { 1.0 } else { self.probability(0.7) };
            let from = self.luck.spread(1, 40) as u32 - 1;
            self.rule(which, does, from, u32::MAX, chance);
            if !self.luck.chance(0.6) {
                return;
            }
        }
    }

    fn mtu(&mut self) {
        loop {
            // The longest headers are 100 bytes long: acknowledgments and handshakes pass.
            let most = self.luck.spread(120, 1400) as u16;
            let from = self.luck.spread(1, 200) as u32 - 1;
            self.rule(Segments::All, Does::Limit(most), from, u32::MAX, 1.0);
            if !self.luck.chance(0.3) {
                return;
            }
        }
    }
}

/// The rules of a case. `bad`: the path whose payload is changed, if only one path has such a rule.
pub(crate) fn draw(luck: &mut Luck<'_>, class: Class, paths: usize, bad: Option<u8>) -> Vec<Rule> {
    let mut draw = Draw { luck, paths: paths as u64, rules: Vec::new() };
    // Benign changes are the subject of the benign classes, and an occasional addition in the others.
    let weather = match class {
        Class::Benign | Class::Plain | Class::Race => true,
        Class::App | Class::Floods | Class::Wide | Class::Mtu => false,
        _ => draw.luck.chance(0.4),
    };
    if weather {
        draw.weather();
    }
    match class {
        Class::Benign | Class::Plain | Class::App | Class::Floods | Class::Blackout | Class::Race => {}
        Class::Wide | Class::Clock => {}
        Class::Strip => draw.strip(),
        Class::Tiny => draw.tiny(),
        Class::Resets => draw.resets(),
        Class::Bleach => draw.bleach(),
        Class::Mtu => draw.mtu(),
        Class::Segments => draw.segments(),
        Class::Nat => draw.tcp_options(),
        Class::Options => draw.mptcp_options(),
        Class::Payload => draw.payload(None),
        Class::PayloadOnePath => draw.payload(bad),
        Class::Guess => {
            let p = draw.probability(0.6);
            draw.rule(Segments::NotSyn, Does::Guess, 3, 200, p);
        }
        Class::Forge => {
            let p = draw.probability(0.3);
            draw.rule(Segments::All, Does::Forge, 0, 200, p);
            if draw.luck.chance(0.4) {
                let p = draw.probability(0.1);
                draw.rule(Segments::All, Does::Replace, 0, 200, p);
            }
            if draw.luck.chance(0.3) {
                let p = draw.probability(0.2);
                draw.rule(Segments::All, Does::Window, 0, 200, p);
            }
        }
    }
    draw.rules
}
