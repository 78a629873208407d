//! A scheduler decides for a transport that is not ours: the transport keeps an [`Assignment`] up to date, holds a round when something
//! may be sent, and sends what the round has put into the paths' queues. No engine is needed.

use anabranch_plugin::Scheduler;
use anabranch_plugin::congestion::FixedWindows;
use anabranch_plugin::schedule::{Assignment, Cause, PathView, Round};
use anabranch_schedulers::build;
use anabranch_units::{Duration, Instant, PathId, Range};

const SEGMENT: u32 = 1400;

/// What the transport knows of a path.
fn path(id: u8, rtt_ms: u64, cwnd: u32) -> PathView {
    let rtt = Some(Duration::from_millis(rtt_ms));
    PathView { cwnd, srtt: rtt, latest_rtt: rtt, min_rtt: rtt, ..PathView::new(PathId(id), SEGMENT) }
}

/// Two rounds of `name`: what each puts on which path.
fn decide(name: &str) -> Vec<(PathId, Range)> {
    let mut scheduler: Box<dyn Scheduler> = build(name, &[]).expect("in the registry");
    let mut state = Assignment::new(false);
    state.set_path(path(0, 20, 4));
    state.set_path(path(1, 80, 4));
    // The application wrote twelve segments, and the peer's window has room for ten of them.
    state.set_written(12 * u64::from(SEGMENT));
    state.set_window(10 * u64::from(SEGMENT), 10 * u64::from(SEGMENT));
    let mut decided = Vec::new();
    for (ms, acked) in [(0, 0), (20, 4 * u64::from(SEGMENT))] {
        state.set_now(Instant::from_millis(ms));
        if acked > 0 {
            // The fast path delivered what it had: its window is free again, and the peer's moves.
            state.on_data_acked(acked);
            state.path_mut(PathId(0)).expect("it is there").in_flight = 0;
            state.set_window(10 * u64::from(SEGMENT), acked + 10 * u64::from(SEGMENT));
        }
        scheduler.schedule(&mut Round::new(&mut state, &mut FixedWindows::default(), Cause::Written));
        for id in [PathId(0), PathId(1)] {
            while let Some(queued) = state.take_admissible(id) {
                // Here the transport sends the bytes of `queued.range` on path `id`.
                state.on_sent(id, queued.range);
                state.path_mut(id).expect("it is there").in_flight += 1;
                decided.push((id, queued.range));
            }
        }
    }
    decided
}

fn main() {
    for name in ["minrtt", "blest", "roundrobin"] {
        println!("{name}");
        decide(name).into_iter().for_each(|(id, range)| println!("  path {}: {}..{}", id.0, range.start, range.end));
    }
}

#[test]
fn every_byte_gets_a_path() {
    let decided = decide("minrtt");
    let bytes: u64 = decided.iter().map(|(_, range)| range.len()).sum();
    assert_eq!(bytes, 12 * u64::from(SEGMENT));
    assert!(decided.iter().any(|(id, _)| *id == PathId(1)));
}
