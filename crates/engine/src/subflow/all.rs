//! The subflows of a connection. Any access that may change one drops what was derived from its state; there is no other.

use super::Subflow;
use super::segments::{Waiting, Wanted};
use crate::deadlines::NEVER;
use crate::mode::Mode;
use anabranch_units::{Instant, Rng};
use core::ops::{Deref, Index, IndexMut};

/// Values derived from the state of a subflow since it may last have changed.
#[derive(Debug)]
pub(super) struct Derived {
    /// It has nothing to send unless something waits for it.
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

/// The subflows of a connection, in the order in which they began.
#[derive(Debug)]
pub(crate) struct Subflows(Vec<Subflow>);

impl Subflows {
    /// None, with room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// A new one, last in order.
    pub fn push(&mut self, subflow: Subflow) {
        self.0.push(subflow);
    }

    /// Takes one out.
    pub fn remove(&mut self, i: usize) -> Subflow {
        self.0.remove(i)
    }

    /// A port of ours that none of them uses (RFC 6335 §6: the dynamic ones).
    pub fn fresh_port(&self, rng: &mut Rng) -> u16 {
        loop {
            let port = 49_152 + rng.below(16_384) as u16;
            if self.0.iter().all(|s| s.tuple.local.port() != port) {
                return port;
            }
        }
    }

    /// All, to change them: where seldom one is changed, find it first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.0.iter_mut().map(Subflow::changing)
    }

    /// The first one, `from` or one after it, of which a segment is [wanted](Subflow::wanted), and which; `waiting`: what waits
    /// for one.
    #[inline(always)]
    pub fn wanted_from(&mut self, from: usize, mode: Mode, waiting: Waiting) -> Option<(usize, Wanted)> {
        for (n, s) in self.0[from..].iter_mut().enumerate() {
            if s.derived.idle && (waiting.data | waiting.data_fin) & s.id.bit() == 0 {
                debug_assert_eq!(s.wanted(mode, waiting), Wanted::Nothing, "a change of a subflow was missed");
                continue;
            }
            let wanted = s.wanted(mode, waiting);
            if wanted != Wanted::Nothing {
                return Some((from + n, wanted));
            }
            // Before a subflow is open, its segments depend on the mode of the connection too.
            s.derived.idle = s.state.is_synchronized();
        }
        None
    }

    /// The next deadline of all; `pacing`: when the next segment of one may leave, if nothing else holds it back.
    #[inline(always)]
    pub fn deadline(&mut self, pacing: impl Fn(&Subflow) -> Instant) -> Instant {
        let mut all = NEVER;
        for s in &mut self.0 {
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
        &self.0
    }
}

impl Index<usize> for Subflows {
    type Output = Subflow;

    #[inline(always)]
    fn index(&self, i: usize) -> &Subflow {
        &self.0[i]
    }
}

impl IndexMut<usize> for Subflows {
    #[inline(always)]
    fn index_mut(&mut self, i: usize) -> &mut Subflow {
        self.0[i].changing()
    }
}
