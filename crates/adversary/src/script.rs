//! The applications' calls beyond writing and reading, and their times.

use crate::class::Class;
use crate::luck::Luck;
use crate::parties::scheduler;
use anabranch_units::{Duration, PathId, Side};
use anabranch_wire::Reason;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// `reset_path`.
    Reset(PathId, Reason),
    /// `set_scheduler`.
    Scheduler(String),
    /// `set_backup`.
    Backup(PathId, bool),
    /// `announce` of an address of the host on that path, or of an otherwise unknown one.
    Announce { id: u8, path: u8, new: bool, port: Option<u16> },
    /// `withdraw`.
    Withdraw(u8),
    /// `finish`, with bytes left to write.
    Finish,
    /// `abort`.
    Abort,
}

/// A call, its side, and its time after the begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    pub at: Duration,
    pub side: Side,
    pub call: Call,
}

impl Call {
    /// The call may end the connection before everything has arrived.
    pub fn may_end_it(&self) -> bool {
        match self {
            Self::Reset(_, reason) => !reason.transient,
            Self::Withdraw(_) | Self::Abort => true,
            _ => false,
        }
    }

    /// The call ends the connection where one subflow is left, as after a fallback.
    pub fn ends_a_lone_path(&self) -> bool {
        matches!(self, Self::Reset(..))
    }
}

fn call(luck: &mut Luck<'_>, class: Class, paths: u64) -> Call {
    let path = |luck: &mut Luck<'_>| PathId(luck.below(paths) as u8);
    if class == Class::Resets && luck.chance(0.8) {
        return match luck.chance(0.4) {
            true => Call::Abort,
            false => Call::Reset(path(luck), Reason { code: luck.below(7) as u8, transient: luck.chance(0.7) }),
        };
    }
    let harmless = class != Class::App;
    match luck.below(if harmless { 8 } else { 12 }) {
        0 | 1 => Call::Scheduler(scheduler(luck)),
        2 | 3 => Call::Backup(path(luck), luck.chance(0.6)),
        4 | 5 => Call::Announce {
            id: luck.within(1, 12) as u8,
            path: path(luck).0,
            new: luck.chance(0.8),
            port: luck.chance(0.3).then(|| luck.within(1000, 1002) as u16),
        },
        6 | 7 => Call::Reset(path(luck), Reason { code: luck.below(7) as u8, transient: true }),
        8 => Call::Reset(path(luck), Reason { code: luck.below(7) as u8, transient: false }),
        9 => Call::Withdraw(luck.below(5) as u8),
        10 => Call::Finish,
        _ if luck.chance(0.4) => Call::Abort,
        _ => Call::Withdraw(luck.below(5) as u8),
    }
}

/// The calls of a case, in order of time.
pub(crate) fn acts(luck: &mut Luck<'_>, class: Class, paths: usize) -> Vec<Act> {
    let count = match class {
        Class::App => luck.within(1, 12),
        Class::Resets => luck.within(1, 6),
        _ if luck.chance(0.25) => luck.within(1, 4),
        _ => 0,
    };
    let mut acts: Vec<Act> = (0..count)
        .map(|_| Act {
            at: luck.time(300, 4_000_000),
            side: *luck.pick(&[Side::Client, Side::Server]),
            call: call(luck, class, paths as u64),
        })
        .collect();
    acts.sort_by_key(|act| act.at);
    acts
}
