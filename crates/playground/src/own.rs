//! A scheduler that the page has: it is asked, segment by segment, for a path.

use crate::numbers::{flag, seconds, window_left};
use anabranch_engine::schedule::{PathView, Round, Scheduler, View};
use anabranch_run::Choice;
use anabranch_scenario::PlugIn;
use anabranch_sim::{End, FlowSetup, Party};
use anabranch_units::PathId;

/// The name of the page's scheduler in plans and results.
pub const OWN: &str = "yours";

/// Numbers of a question before those of its paths: time in seconds, bytes of backlog, bytes outstanding, bytes that the peer's
/// window still admits, number of paths.
pub const HEAD: usize = 5;

/// Numbers of each path: its number, usable (1, or 0), eligible, smoothed RTT in seconds (NaN before the first sample), its
/// variation in seconds (0 until then), the least sample in seconds (NaN until then), congestion window, packets in flight, packets queued, bytes of a packet, estimated loss, bytes per second that the
/// window admits, whether it is safe to wait for it.
pub const FIELDS: usize = 13;

/// Asks the page: the numbers of the path for the next segment, below zero to wait.
pub type Ask = fn(&[f64]) -> i32;

/// Segments that one round binds at most: a page that never waits must not stop time.
const MOST: usize = 4096;

/// The name under which a run is planned until [`equip`] puts the page's scheduler in its place.
pub fn stand_in() -> Choice {
    Choice::Multipath(PlugIn { name: "fifo".into(), parameters: Vec::new() })
}

/// Gives the connections under test the page's scheduler at the server's end, which sends the data.
pub fn equip(flows: &mut [FlowSetup], ask: Ask) {
    let Some(End::Engine { parties, .. }) = flows.first_mut().map(|flow| &mut flow.server) else { return };
    for Party { setup, .. } in parties {
        setup.scheduler = Box::new(Own { ask, question: Vec::new() });
    }
}

#[derive(Debug)]
struct Own {
    ask: Ask,
    question: Vec<f64>,
}

impl Own {
    fn put(&mut self, view: &View) {
        let head = [view.backlog().bytes(), view.outstanding().bytes(), window_left(view), view.paths().len() as u64];
        self.question.clear();
        self.question.push(view.now().as_secs_f64());
        self.question.extend(head.map(|number| number as f64));
        self.question.extend(view.paths().iter().flat_map(|path| of_path(view, path)));
    }
}

fn of_path(view: &View, path: &PathView) -> [f64; FIELDS] {
    [
        f64::from(path.id.0),
        flag(path.usable),
        flag(path.eligible()),
        seconds(path.srtt),
        path.rttvar.as_secs_f64(),
        seconds(path.min_rtt),
        f64::from(path.cwnd),
        f64::from(path.in_flight),
        f64::from(path.queued),
        f64::from(path.mss),
        path.loss,
        path.window_rate(),
        flag(view.may_wait_for(path.id)),
    ]
}

impl Scheduler for Own {
    fn schedule(&mut self, round: &mut Round<'_>) {
        for _ in 0..MOST {
            if round.backlog().is_empty() || !round.candidates().any(PathView::eligible) {
                return;
            }
            self.put(round);
            let Ok(path) = u8::try_from((self.ask)(&self.question)) else { return };
            if !round.send_next(PathId(path)) {
                return;
            }
        }
    }
}
