//! Decisions of a scheduler as rows of numbers.

use anabranch_run::fields::Fact;
use anabranch_trace::{Decision, Decisions, SeenPath};

/// Numbers of a decision before those of its paths: time in seconds, its outcome ([`anabranch_trace::Outcome`]), bytes of backlog,
/// bytes that the peer's window still admits, own values of each path. The scheduler's own values follow after the paths.
const HEAD: usize = 5;

/// Numbers of each path before the scheduler's own values: usable (1, or 0), room in packets before and after the round, smoothed RTT in seconds (NaN before the
/// first sample), congestion window, packets in flight, packets queued.
const OF_PATH: usize = 7;

/// The rows one after the other, and the numbers per row, for a scenario with this many paths.
pub fn rows(decisions: &Decisions, paths: usize) -> (Vec<f64>, usize) {
    let own = (decisions.path_state.len(), decisions.state.len());
    let width = HEAD + paths * (OF_PATH + own.0) + own.1;
    let mut rows = Vec::with_capacity(width * decisions.rows.len());
    for (n, decision) in decisions.rows.iter().enumerate() {
        put(&mut rows, decision, own);
        rows.resize(width * (n + 1), f64::NAN);
    }
    (rows, width)
}

fn put(rows: &mut Vec<f64>, decision: &Decision, (of_path, of_all): (usize, usize)) {
    let bytes = [decision.backlog_bytes, decision.window_bytes].map(|bytes| bytes as f64);
    rows.extend([decision.at_s, f64::from(decision.outcome as u8), bytes[0], bytes[1], of_path as f64]);
    for path in &decision.paths {
        rows.extend(numbers(path));
        padded(rows, &path.state, of_path);
    }
    padded(rows, &decision.state, of_all);
}

fn numbers(path: &SeenPath) -> [f64; OF_PATH] {
    let [room, left, cwnd, in_flight, queued] =
        [path.room, path.left, path.cwnd, path.in_flight, path.queued].map(f64::from);
    [path.usable.number(), room, left, path.srtt_s.number(), cwnd, in_flight, queued]
}

/// The values, and NaN for those that had no value yet.
fn padded(rows: &mut Vec<f64>, values: &[f64], count: usize) {
    rows.extend((0..count).map(|n| values.get(n).copied().unwrap_or(f64::NAN)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_trace::Outcome;

    #[test]
    fn a_value_that_a_path_does_not_have_keeps_its_place() {
        let path =
            |state| SeenPath { usable: true, room: 3, left: 2, cwnd: 10, in_flight: 7, state, ..SeenPath::default() };
        let paths = vec![path(vec![5.0]), path(vec![])];
        let row = Decision {
            at_s: 1.5,
            outcome: Outcome::Bound,
            backlog_bytes: 9,
            window_bytes: 8,
            paths,
            state: vec![0.25],
        };
        let names = |name: &str| vec![name.to_owned()];
        let decisions = Decisions { state: names("lambda"), path_state: names("planned"), rows: vec![row] };
        let (rows, width) = rows(&decisions, 2);
        let text: Vec<String> = rows.iter().map(f64::to_string).collect();
        assert_eq!(text.join(" "), "1.5 1 9 8 1 1 3 2 NaN 10 7 0 5 1 3 2 NaN 10 7 0 NaN 0.25");
        assert_eq!(width, 22);
    }
}
