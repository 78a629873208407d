//! The end of what was written, as `playahead` repairs it: which segment in flight arrives last, and what a copy of it costs.

use crate::line::{Line, greater};
use anabranch_plugin::schedule::View;
use anabranch_units::{PathId, Range};

/// The segment in flight that arrives last. Times in seconds from now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latest {
    /// One segment at most.
    pub segment: Range,
    /// The path that carries it.
    pub of: PathId,
    /// Infinite where the capacity of its path is not known.
    due: f64,
    /// The arrival of all others.
    others: f64,
}

impl Latest {
    /// The latest segment that one usable path alone carries, and not `on`. A path's last such segment is its latest one, so the search
    /// goes backwards, and ends when it knows that of each path with data in flight. Of path `id`, only what begins before `copied[id]` counts.
    pub fn find(view: &View, lines: &[Line], on: PathId, copied: &[u64; PathId::LIMIT]) -> Option<Self> {
        let mut behind = [0; PathId::LIMIT];
        let mut wanted = 0;
        for path in view.paths().iter().filter(|path| path.usable && path.id != on) {
            wanted |= if path.in_flight_bytes + path.queued_bytes > 0 { path.id.bit() } else { 0 };
        }
        let mut found: Option<Self> = None;
        for (run, copies) in view.outstanding().iter().rev() {
            if wanted == 0 {
                break;
            }
            let of = copies.first;
            let left = Range::new(run.start, run.end.min(copied[of.index()]).max(run.start));
            if copies.paths == of.bit() && wanted & of.bit() != 0 && !left.is_empty() {
                wanted &= !of.bit();
                let line = &lines[of.index()];
                let segment = Range::new(left.start.max(left.end.saturating_sub(line.segment())), left.end);
                let behind = behind[of.index()] + (run.end - left.end);
                let (due, before) = (line.due(behind), line.due(behind + segment.len()));
                found = Some(match found {
                    Some(later) if later.due >= due => Self { others: greater(later.others, due), ..later },
                    other => Self { segment, of, due, others: greater(before, other.map_or(0.0, |other| other.due)) },
                });
            }
            PathId::of_bits(copies.paths).for_each(|id| behind[id.index()] += run.len());
        }
        found
    }

    /// How much sooner everything is there if a copy of it arrives at `copy`.
    pub fn gain(&self, copy: f64) -> f64 {
        if self.due.is_finite() { self.due - greater(self.others, copy) } else { f64::INFINITY }
    }
}

/// How long the application usually has nothing more to send. Times in seconds by the engine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    /// When the pause began that lasts.
    since: Option<f64>,
    /// Mean length; a later one weighs 1/8.
    usual: Option<f64>,
}

impl Pauses {
    /// There is data to be sent.
    #[inline(always)]
    pub fn end(&mut self, now: f64) {
        if let Some(since) = self.since.take() {
            let length = now - since;
            self.usual = Some(self.usual.map_or(length, |usual| usual + (length - usual) / 8.0));
        }
    }

    /// All that was written is bound. When the next data is expected: at once, as long as no pause is known.
    pub fn begin(&mut self, now: f64) -> f64 {
        let since = *self.since.get_or_insert(now);
        since + self.usual.unwrap_or(0.0)
    }
}
