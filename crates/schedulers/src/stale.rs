//! Paths that fall silent, as a Linux kernel notices them: by the connection's retransmission timer.

use anabranch_plugin::schedule::{PathView, View};
use anabranch_units::PathId;

/// Intervals of the connection's timer in which paths were silent.
#[derive(Clone, Debug, Default)]
pub struct Silence {
    /// Intervals by path. Not 0: something is under way on it, and was at an expiry before.
    intervals: [u8; PathId::LIMIT],
    /// Paths that acknowledged something since, as [bits](PathId::bit).
    acked: u32,
    /// Paths that are stale, as bits.
    stale: u32,
}

/// The actions that are due when the timer expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// The path that became stale.
    pub stale: Option<PathId>,
    /// The path with nothing under way, which retransmits.
    pub on: Option<PathId>,
}

/// Something is under way on the path, or waits for it.
fn is_busy(path: &PathView) -> bool {
    path.held_bytes() > 0 || path.queued > 0
}

impl Silence {
    /// The path acknowledged something.
    pub fn on_ack(&mut self, path: PathId) {
        self.acked |= path.bit();
    }

    /// The path delivers again.
    pub fn end(&mut self, path: PathId) {
        self.stale &= !path.bit();
    }

    /// The path is gone.
    pub fn forget(&mut self, path: PathId) {
        self.intervals[path.index()] = 0;
        self.stale &= !path.bit();
    }

    /// The path is silent, so that its own timer says nothing.
    pub fn is_silent(&self, path: PathId) -> bool {
        self.intervals[path.index()] > 0
    }

    /// The connection's timer expired. A path is stale after more than `limit` silent intervals, if there is another one that
    /// was silent for fewer than `limit` - 1; never if `limit` is 0. Backups retransmit if nothing makes progress.
    ///
    /// Linux 6.18: `mptcp_subflow_get_retrans`, `mptcp_pm_subflow_chk_stale`.
    pub fn on_expiry(&mut self, view: &View, limit: u8) -> Expiry {
        let (mut expiry, mut backup, mut least) = (Expiry::default(), None, u8::MAX);
        for path in view.paths() {
            if is_busy(path) {
                let stale = self.count(path.id) > limit && limit > 0 && self.stale & path.id.bit() == 0;
                if stale && self.has_alternative(view, path.id, limit) {
                    self.stale |= path.id.bit();
                    expiry.stale = Some(path.id);
                }
                least = least.min(self.intervals[path.id.index()]);
            } else if path.usable {
                let idle = if path.backup { &mut backup } else { &mut expiry.on };
                *idle = idle.or(Some(path.id));
            }
        }
        expiry.on = expiry.on.or(backup.filter(|_| least > 1));
        expiry
    }

    /// Counts an interval of a busy path: how many were silent.
    fn count(&mut self, path: PathId) -> u8 {
        let intervals = &mut self.intervals[path.index()];
        *intervals = match *intervals {
            0 => 1,
            _ if self.acked & path.bit() != 0 => 0,
            before => before.saturating_add(1),
        };
        if *intervals == 1 {
            self.acked &= !path.bit();
        }
        *intervals
    }

    fn has_alternative(&self, view: &View, path: PathId, limit: u8) -> bool {
        let most = limit.saturating_sub(1).max(1);
        view.paths().iter().any(|p| p.id != path && p.usable && self.intervals[p.id.index()] < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;
    use anabranch_plugin::schedule::Assignment;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    fn view(paths: &[PathView]) -> Assignment {
        let mut view = Assignment::new(false);
        paths.iter().for_each(|p| view.set_path(*p));
        view
    }

    fn expiry(stale: Option<PathId>, on: Option<PathId>) -> Expiry {
        Expiry { stale, on }
    }

    #[test]
    fn after_the_fifth_silent_interval_a_path_is_stale_once() {
        let view = view(&[path(0, 20, 10, 8), path(1, 20, 10, 0)]);
        let mut silence = Silence::default();
        for _ in 0..4 {
            assert_eq!(silence.on_expiry(&view, 4), expiry(None, Some(B)));
        }
        assert_eq!(silence.on_expiry(&view, 4), expiry(Some(A), Some(B)));
        assert_eq!(silence.on_expiry(&view, 4), expiry(None, Some(B)));
        silence.end(A);
        assert_eq!(silence.on_expiry(&view, 4), expiry(Some(A), Some(B)), "the count goes on");
    }

    #[test]
    fn an_acknowledgment_begins_the_count_anew() {
        let view = view(&[path(0, 20, 10, 8), path(1, 20, 10, 0)]);
        let mut silence = Silence::default();
        (0..4).for_each(|_| {
            silence.on_expiry(&view, 4);
        });
        assert!(silence.is_silent(A) && !silence.is_silent(B));
        silence.on_ack(A);
        silence.on_expiry(&view, 4);
        assert!(!silence.is_silent(A));
        let stale = (0..5).map(|_| silence.on_expiry(&view, 4).stale).collect::<Vec<_>>();
        assert_eq!(stale, [None, None, None, None, Some(A)]);
    }

    #[test]
    fn where_all_are_silent_none_is_stale_and_a_backup_retransmits() {
        let backup = PathView { backup: true, ..path(2, 20, 10, 0) };
        let mut silence = Silence::default();
        let busy = view(&[path(0, 20, 10, 8), path(1, 20, 10, 8), backup]);
        assert_eq!(silence.on_expiry(&busy, 4).on, None);
        assert_eq!(silence.on_expiry(&busy, 4).on, Some(PathId(2)));
        let alone = view(&[path(0, 20, 10, 8), path(1, 20, 10, 8)]);
        assert!((0..20).all(|_| silence.on_expiry(&alone, 4) == Expiry::default()));
        assert!(
            (0..20).all(|_| silence.on_expiry(&view(&[path(0, 20, 10, 8), path(1, 20, 10, 0)]), 0).stale.is_none())
        );
    }
}
