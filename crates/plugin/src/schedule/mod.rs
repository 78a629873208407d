//! The seam for packet schedulers: which bytes travel on which subflow, and when nothing is sent.
//!
//! A scheduler reads a [`View`] and gives commands through a [`Round`]. One command binds at most one segment. A command
//! that the rules refuse returns `false` and has no effect, so no scheduler can break the protocol.

mod assignment;
mod combine;
mod command;
mod measure;
mod outstanding;
mod policy;
mod queue;
mod round;
mod view;

pub use crate::capacity::Capacity;
pub use crate::path::{Device, ForwardDelay, PathPolicy, PathView};
pub use anabranch_units::RecoveryPhase;
pub use assignment::Assignment;
pub use combine::{Around, AroundRounds, Then};
pub use command::Command;
pub use outstanding::{Copies, Outstanding};
pub use policy::{Binding, DataRepair, Numbering, PeerWindow, SenderPolicy, SmallSegments};
pub use round::{Repeat, Round};
pub use view::{Queued, View};

use crate::congestion::Acked;
use anabranch_units::value_name;
use anabranch_units::{Instant, PathId, Rng};
use core::fmt::Debug;

/// Why a scheduler is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The application wrote.
    Written,
    /// A subflow acknowledged something.
    Ack(PathId),
    /// The peer's data-level window moved, or data was acknowledged at connection level.
    Window,
    /// A subflow came, went, failed, recovered or changed its priority.
    PathChange(PathId),
    /// A subflow's retransmission timer fired.
    Timeout(PathId),
    /// The time that [`Scheduler::next_wakeup`] returned.
    Wakeup,
}

/// A fact for schedulers that learn or plan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SchedulerEvent<'a> {
    /// A subflow acknowledged packets.
    Ack {
        /// Which subflow.
        path: PathId,
        /// Content of the acknowledgment.
        acked: &'a Acked,
    },
    /// Everything below `upto` arrived at the peer's connection level.
    DataAck {
        /// First offset not acknowledged.
        upto: u64,
    },
    /// A subflow began loss recovery.
    Loss {
        /// Which subflow.
        path: PathId,
    },
    /// A subflow's retransmission timer fired.
    Timeout {
        /// Which subflow.
        path: PathId,
    },
    /// A subflow may carry data.
    PathUp {
        /// Which subflow.
        path: PathId,
    },
    /// A subflow is gone; what it had not sent is back in the backlog.
    PathDown {
        /// Which subflow.
        path: PathId,
    },
}

/// Chooses which bytes travel on which subflow, and when to send nothing.
///
/// The engine calls, in this order: [`seed`](Self::seed) once; then, whenever a [`Cause`] arises, [`on_event`](Self::on_event) for each fact,
/// [`rescue`](Self::rescue) if data is stranded, and [`schedule`](Self::schedule). Several causes at one time make one round.
///
/// Data that `schedule` binds leaves in the order in which it was bound. The rest stays in the backlog, and the next round sees it again. A
/// scheduler answers for being called again: see `schedule`. Its decisions depend on its arguments alone, so that runs repeat: no clock, no
/// random numbers but those of `seed`.
///
/// `crates/schedulers/src/template.rs` is the smallest one, `examples/scheduler.rs` calls one without an engine around it.
pub trait Scheduler: Debug + Send {
    /// A random stream of its own, for schedulers that need one: given once, before anything else. It depends on the
    /// run's seed and the connection alone, and taking from it changes no other's luck.
    fn seed(&mut self, _rng: Rng) {}

    /// Give this round's commands. Giving none means: wait. A scheduler that waits for a path must check
    /// [`View::may_wait_for`], or request a wake-up; otherwise nothing may ever call it again.
    fn schedule(&mut self, round: &mut Round<'_>);

    /// Repeat the data that a timeout or a lost subflow stranded; called before [`Self::schedule`] while
    /// [`View::rescue`] is not empty. The default: on the usable path with the lowest RTT that has not carried it.
    fn rescue(&mut self, round: &mut Round<'_>) {
        round.rescue_by_rtt();
    }

    /// A fact.
    fn on_event(&mut self, _event: &SchedulerEvent<'_>, _view: &View) {}

    /// True: called even while only one path may carry data. Otherwise a plain window check decides then, as in
    /// single-path TCP.
    fn serves_lone_path(&self) -> bool {
        false
    }

    /// True: what a silent path strands waits for its retransmission timer, as in the kernel. Otherwise it is retransmitted
    /// elsewhere as soon as the path is silent while others deliver (`Settings::early_rescue`). With [`DataRepair::DataTimer`]
    /// no timer strands anything: the path is given data until the scheduler calls it [stale](Round::set_stale).
    fn waits_for_timeouts(&self) -> bool {
        false
    }

    /// True: it reads [`PathView::capacity`], which is kept up to date from then on. Asked once, when it takes its place.
    fn measures_capacity(&self) -> bool {
        false
    }

    /// When to be called again if nothing else happens first.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// `next` takes its place on the connection: what is put there. A wrapper that only watches puts itself around it.
    fn give_way_to(&mut self, next: Box<dyn Scheduler>) -> Box<dyn Scheduler> {
        next
    }

    /// A value worth a trace after this round, with its name: λ of BLEST, for instance. `None` always or never.
    fn values(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// The scheduler's own state after this round, for a reader who asks why it chose: calls `put` with a name, a path if the value is one of a
    /// path, and the value. The default: [`Self::values`].
    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        if let Some((name, value)) = self.values() {
            put(value_name(name), None, value);
        }
    }
}
