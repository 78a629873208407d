//! The endpoints' own reports.

use anabranch_trace::{CloseReason, Event, Origin, PathState, Recorder, Violation};
use anabranch_units::{ConnId, Instant, Side};

/// The record of both sides, the client's first.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// When it fell back to plain TCP.
    pub fell_back: [Option<Instant>; 2],
    /// The end is plain TCP from the start.
    pub plain: [bool; 2],
    /// Why it ended.
    pub ended: [Option<CloseReason>; 2],
    /// Paths that have been established: a set of bits.
    pub paths: [u32; 2],
    /// Paths whose subflow has refused a reset: a set of bits.
    pub doubted: [u32; 2],
    /// When a scheduler left data waiting without a future call.
    pub stall: Option<Instant>,
    /// The events as text, if they are to be shown.
    pub log: Option<Vec<(Instant, Side, String)>>,
}

impl Recorder for Watch {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        let (Some(side), ConnId(0)) = (origin.host, origin.connection) else { return };
        let n = side as usize - 1;
        match event {
            Event::Fallback => self.fell_back[n] = self.fell_back[n].or(Some(now)),
            Event::Connected(multipath) => self.plain[n] = !multipath,
            Event::Closed(why) => self.ended[n] = Some(*why),
            Event::Path(PathState::Established) => self.paths[n] |= origin.path.bit(),
            Event::Path(PathState::Dead | PathState::Closed) => self.doubted[n] &= !origin.path.bit(),
            Event::Violation(Violation::BlindReset) => self.doubted[n] |= origin.path.bit(),
            Event::Stall => self.stall = self.stall.or(Some(now)),
            _ => {}
        }
        if let Some(log) = &mut self.log {
            let worth = matches!(
                event,
                Event::Fallback
                    | Event::Closed(_)
                    | Event::Connected(_)
                    | Event::Violation(_)
                    | Event::Stall
                    | Event::WriteEnd(_)
                    | Event::Scheduler(_)
                    | Event::Path(PathState::Dead | PathState::Closed | PathState::Failing)
            );
            if worth {
                log.push((now, side, format!("path {}: {event:?}", origin.path)));
            }
        }
    }
}
