//! Decisions of a scheduler as columns.

use anabranch_recorders::{Timeline, TimelinePacket};
use anabranch_trace::{Decision, SeenPath};
use serde::Serialize;

/// Whole numbers count against those of the decision before, of the packet before. `units.js` and `decision.js` show them.
#[derive(Serialize)]
pub struct Columns<'a> {
    state_names: &'a [String],
    path_state_names: &'a [String],
    /// Place of the decision that bound each packet, against that of the last packet with one.
    of: Vec<Option<i64>>,
    backlog: Vec<i64>,
    window: Vec<i64>,
    paths: Vec<PathColumns>,
    /// State of the scheduler, by name.
    state: Vec<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct PathColumns {
    usable: Vec<i64>,
    room: Vec<i64>,
    left: Vec<i64>,
    /// In microseconds; before the first sample −1.
    srtt: Vec<i64>,
    cwnd: Vec<i64>,
    in_flight: Vec<i64>,
    queued: Vec<i64>,
    state: Vec<Vec<Option<f64>>>,
}

/// Each value against the one before.
fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let since = |before: &mut i64, value: i64| Some(value.wrapping_sub(core::mem::replace(before, value)));
    values.scan(0, since).collect()
}

/// The values with these names; those that are not numbers become null.
fn by_name<'a>(names: &[String], rows: impl Iterator<Item = &'a [f64]> + Clone) -> Vec<Vec<Option<f64>>> {
    let value = |n: usize| move |row: &[f64]| row.get(n).copied().filter(|value| value.is_finite());
    (0..names.len()).map(|n| rows.clone().map(value(n)).collect()).collect()
}

impl<'a> Columns<'a> {
    /// The columns of the timeline's packets, if it has decisions.
    pub fn of(timeline: &'a Timeline) -> Option<Self> {
        let decisions = timeline.decisions.as_ref()?;
        let rows = &decisions.rows;
        let mut before = 0;
        let mut place = |packet: &TimelinePacket| {
            let place = timeline.decision_of(packet)? as i64;
            Some(place - core::mem::replace(&mut before, place))
        };
        let bytes = |of: fn(&Decision) -> u64| differences(rows.iter().map(|row| of(row).cast_signed()));
        Some(Self {
            state_names: &decisions.state,
            path_state_names: &decisions.path_state,
            of: timeline.packets.iter().map(&mut place).collect(),
            backlog: bytes(|row| row.backlog_bytes),
            window: bytes(|row| row.window_bytes),
            paths: (0..timeline.paths.len()).map(|path| of_path(rows, path, &decisions.path_state)).collect(),
            state: by_name(&decisions.state, rows.iter().map(|row| &*row.state)),
        })
    }
}

fn of_path(rows: &[Decision], path: usize, names: &[String]) -> PathColumns {
    let none = SeenPath::default();
    let seen = || rows.iter().map(|row| row.paths.get(path).unwrap_or(&none));
    let column = |of: fn(&SeenPath) -> i64| differences(seen().map(of));
    PathColumns {
        usable: column(|path| path.usable.into()),
        room: column(|path| path.room.into()),
        left: column(|path| path.left.into()),
        srtt: column(|path| path.srtt_s.map_or(-1, |seconds| (seconds * 1e6).round() as i64)),
        cwnd: column(|path| path.cwnd.into()),
        in_flight: column(|path| path.in_flight.into()),
        queued: column(|path| path.queued.into()),
        state: by_name(names, seen().map(|path| &*path.state)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_recorders::Fate;
    use anabranch_trace::{Decisions, Outcome, SendKind};
    use serde_json::json;

    #[test]
    fn decisions_become_columns_of_differences() {
        let packet = |bound_s, kind| TimelinePacket {
            data_start: 0,
            data_end: 1400,
            path: 0,
            bound_s,
            sent_s: bound_s,
            arrived_s: None,
            subflow_in_order_s: None,
            delivered_s: None,
            kind,
            fate: Fate::Lost,
        };
        let kinds = [(1.0, SendKind::First), (2.0, SendKind::First), (2.0, SendKind::Copy), (2.0, SendKind::First)];
        let path = |srtt_s, state| SeenPath {
            usable: true,
            room: 4,
            left: 3,
            srtt_s,
            cwnd: 10,
            in_flight: 6,
            queued: 0,
            state,
        };
        let row = |at_s, backlog_bytes, srtt_s, state: Vec<f64>| Decision {
            at_s,
            outcome: Outcome::Bound,
            backlog_bytes,
            window_bytes: 9000,
            paths: vec![path(srtt_s, vec![3.0])],
            state,
        };
        let rows = vec![row(1.0, 2800, None, vec![]), row(2.0, 1400, Some(0.05), vec![1.25])];
        let decisions = Decisions { state: vec!["lambda".into()], path_state: vec!["planned".into()], rows };
        let packets = kinds.map(|(bound_s, kind)| packet(bound_s, kind)).to_vec();
        let timeline = Timeline { paths: vec!["wlan".into()], duration_s: 3.0, packets, decisions: Some(decisions) };
        let expected = json!({
            "state_names": ["lambda"], "path_state_names": ["planned"], "of": [0, 1, null, 0],
            "backlog": [2800, -1400], "window": [9000, 0], "state": [[null, 1.25]],
            "paths": [{ "usable": [1, 0], "room": [4, 0], "left": [3, 0], "srtt": [-1, 50_001], "cwnd": [10, 0], "in_flight": [6, 0],
                "queued": [0, 0], "state": [[3.0, 3.0]] }],
        });
        assert_eq!(serde_json::to_value(Columns::of(&timeline)).unwrap(), expected);
    }
}
