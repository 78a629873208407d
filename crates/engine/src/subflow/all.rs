//! The subflows of a connection. Any access that may change one drops what was derived from its state; there is no other.

use super::life::{Ending, Expired};
use super::segments::{Waiting, Wanted};
use super::{Reset, Subflow};
use crate::cx::Scope;
use crate::deadlines::NEVER;
use crate::mode::Mode;
use crate::reasons::UNSPECIFIED;
use anabranch_trace::{Event, PathState};
use anabranch_units::{Instant, PathId, Rng};
use anabranch_wire::Packet;
use core::ops::{Deref, DerefMut, Index, IndexMut};

/// Values derived from the state of a subflow since it may last have changed.
#[derive(Debug)]
pub(super) struct Derived {
    /// The subflow has nothing to send unless something waits for it.
    idle: bool,
    /// `next` is known.
    timed: bool,
    /// The next of its deadlines.
    next: Instant,
}

impl Default for Derived {
    fn default() -> Self {
        Self { idle: false, timed: false, next: NEVER }
    }
}

impl Subflow {
    #[inline(always)]
    fn changing(&mut self) -> &mut Self {
        (self.derived.idle, self.derived.timed) = (false, false);
        self
    }
}

/// One of the subflows, until one of them is removed: a debug build refuses a handle from before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    place: usize,
    /// [`Subflows::removed`] at that time.
    #[cfg(debug_assertions)]
    removed: u64,
}

/// The subflows of a connection, in the order in which they began.
#[derive(Debug)]
pub(crate) struct Subflows {
    all: Vec<Subflow>,
    epoch: u64,
    /// How many were removed so far.
    #[cfg(debug_assertions)]
    removed: u64,
}

/// A subflow that is lent to be changed, with a view of the others: reads like a [`Subflow`].
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    subflows: &'a mut Subflows,
    handle: Handle,
}

impl Lent<'_> {
    /// All subflows, this one included.
    #[inline(always)]
    pub fn all(&self) -> &[Subflow] {
        self.subflows
    }

    /// All subflows, this one included, to change them.
    #[inline(always)]
    pub fn all_mut(&mut self) -> &mut Subflows {
        self.subflows
    }

    /// The other ones.
    pub fn others(&self) -> impl Iterator<Item = &Subflow> {
        let place = self.handle.place;
        self.subflows.all.iter().enumerate().filter(move |(n, _)| *n != place).map(|(_, s)| s)
    }
}

impl Deref for Lent<'_> {
    type Target = Subflow;

    #[inline(always)]
    fn deref(&self) -> &Subflow {
        &self.subflows[self.handle]
    }
}

impl DerefMut for Lent<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Subflow {
        &mut self.subflows[self.handle]
    }
}

impl Subflows {
    /// None, with room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self {
            all: Vec::with_capacity(count),
            epoch: 0,
            #[cfg(debug_assertions)]
            removed: 0,
        }
    }

    /// A new one, last in order.
    pub fn add(&mut self, cx: &mut Scope<'_>, subflow: Subflow) -> Handle {
        cx.record(Some(subflow.id), Event::Path(PathState::Opening));
        self.all.push(subflow);
        self.epoch += 1;
        self.nth(self.all.len() - 1)
    }

    /// Takes one out. The others may last for long in TIME-WAIT: its memory is given back.
    pub fn remove(&mut self, handle: Handle) -> Subflow {
        self.epoch += 1;
        let subflow = self.all.remove(self.place(handle));
        #[cfg(debug_assertions)]
        {
            self.removed += 1;
        }
        self.all.shrink_to_fit();
        subflow
    }

    /// The one at this place in the order.
    #[inline(always)]
    pub fn nth(&self, place: usize) -> Handle {
        Handle {
            place,
            #[cfg(debug_assertions)]
            removed: self.removed,
        }
    }

    #[inline(always)]
    fn place(&self, handle: Handle) -> usize {
        #[cfg(debug_assertions)]
        assert_eq!(handle.removed, self.removed, "a subflow was removed since");
        handle.place
    }

    /// The one over a path.
    #[inline(always)]
    pub fn on(&self, id: PathId) -> Option<Handle> {
        id.place_in(&self.all, |s| s.id).map(|place| self.nth(place))
    }

    /// The first one that is as `which` says.
    pub fn find(&self, which: impl Fn(&Subflow) -> bool) -> Option<Handle> {
        self.all.iter().position(which).map(|place| self.nth(place))
    }

    /// The last one that is as `which` says.
    pub fn find_last(&self, which: impl Fn(&Subflow) -> bool) -> Option<Handle> {
        self.all.iter().rposition(which).map(|place| self.nth(place))
    }

    /// Lends one, to change it.
    #[inline(always)]
    pub fn lend(&mut self, handle: Handle) -> Lent<'_> {
        Lent { subflows: self, handle }
    }

    /// A packet belongs to the one over this path.
    #[inline(always)]
    pub fn has(&self, id: PathId, packet: &Packet) -> bool {
        self.on(id).is_some_and(|s| self[s].ends.answered_by(packet))
    }

    /// Counts those that came and went.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Which may carry data, which have fallen silent, and which are backups, all in one number: a change shows in one comparison.
    #[inline(always)]
    pub fn standing(&self) -> u128 {
        self.all.iter().fold(1, |all, s| all << 3 | u128::from(s.standing()))
    }

    /// A port of ours that none of them uses (RFC 6335 §6: the dynamic ones).
    pub fn fresh_port(&self, rng: &mut Rng) -> u16 {
        loop {
            let port = 49_152 + rng.below(16_384) as u16;
            if self.all.iter().all(|s| s.tuple.local.port() != port) {
                return port;
            }
        }
    }

    /// All, to change them: where seldom one is changed, find it first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.all.iter_mut().map(Subflow::changing)
    }

    /// Those that are as `which` says, to change them.
    pub fn those_mut(&mut self, which: impl Fn(&Subflow) -> bool) -> impl Iterator<Item = &mut Subflow> {
        self.all.iter_mut().filter(move |s| which(s)).map(Subflow::changing)
    }

    /// The connection is aborted.
    pub fn abort(&mut self, reset: Reset) {
        self.iter_mut().for_each(|s| s.abort(reset));
    }

    /// RFC 8684 §3.3.3: with both DATA_FINs acknowledged all are closed.
    pub fn close(&mut self) {
        for s in self.iter_mut() {
            s.fin.wanted = true;
            s.give_up_joining();
        }
    }

    /// From here on the connection is plain TCP over this subflow. Joins that did not come into use do not any more.
    pub fn become_plain(&mut self, only: Handle) {
        let place = self.place(only);
        for (n, s) in self.iter_mut().enumerate() {
            if n == place { s.become_plain() } else { s.close_by_reset(Reset::Because(UNSPECIFIED)) }
        }
    }

    /// The first one, or the first one after `last`, of which a segment is [wanted](Subflow::wanted), and which; `waiting`: what
    /// waits for one.
    #[inline(always)]
    pub fn wanted_after(&mut self, last: Option<Handle>, mode: Mode, waiting: Waiting) -> Option<(Handle, Wanted)> {
        let from = last.map_or(0, |last| self.place(last) + 1);
        for (n, s) in self.all[from..].iter_mut().enumerate() {
            if s.derived.idle && (waiting.data | waiting.data_fin) & s.id.bit() == 0 {
                debug_assert_eq!(s.wanted(mode, waiting), Wanted::Nothing, "a change of a subflow was missed");
                continue;
            }
            let wanted = s.wanted(mode, waiting);
            if wanted != Wanted::Nothing {
                return Some((self.nth(from + n), wanted));
            }
            // Before a subflow is open, its segments depend on the mode of the connection too.
            s.derived.idle = s.state.is_synchronized();
        }
        None
    }

    /// Does what time demands of one.
    pub fn on_timers(&mut self, cx: &mut Scope<'_>, handle: Handle, ending: Ending) -> Expired {
        // Nearly always it is another one's turn: found out without a change.
        let derived = &self[handle].derived;
        if derived.timed && derived.next > cx.now {
            return Expired::Nothing;
        }
        self[handle].on_timers(cx, ending)
    }

    /// The next deadline of all; `pacing`: when the next segment of one may leave, if nothing else holds it back.
    #[inline(always)]
    pub fn deadline(&mut self, pacing: impl Fn(&Subflow) -> Instant) -> Instant {
        let mut all = NEVER;
        for s in &mut self.all {
            if !s.derived.timed {
                s.derived.next = s.deadlines().next();
                s.derived.timed = true;
            }
            debug_assert_eq!(s.derived.next, s.deadlines().next(), "a change of a subflow was missed");
            all = all.min(s.derived.next).min(pacing(s));
        }
        all
    }
}

impl Deref for Subflows {
    type Target = [Subflow];

    #[inline(always)]
    fn deref(&self) -> &[Subflow] {
        &self.all
    }
}

impl Index<Handle> for Subflows {
    type Output = Subflow;

    #[inline(always)]
    fn index(&self, handle: Handle) -> &Subflow {
        &self.all[self.place(handle)]
    }
}

impl IndexMut<Handle> for Subflows {
    #[inline(always)]
    fn index_mut(&mut self, handle: Handle) -> &mut Subflow {
        let place = self.place(handle);
        self.all[place].changing()
    }
}
