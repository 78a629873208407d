//! A scheduler that the page has: it is asked, segment by segment, for a path.

use crate::numbers::{flag, seconds};
use anabranch_engine::schedule::{Command, PathView, Repeat, Round, Scheduler, View};
use anabranch_run::Choice;
use anabranch_scenario::PlugIn;
use anabranch_sim::{End, FlowSetup, Party};
use anabranch_units::{Instant, PathId, Range};

/// The name of the page's scheduler in plans and results.
pub const OWN: &str = "yours";

/// Numbers of a question before those of its paths: time in seconds, bytes of backlog, bytes outstanding, bytes that the peer's
/// window still admits, number of paths that have a subflow, number of paths.
pub const HEAD: usize = 6;

/// Numbers of each path: its number, usable (1, or 0), eligible, smoothed RTT in seconds (NaN before the first sample), its
/// variation in seconds (0 until then), the least sample in seconds (NaN until then), congestion window, packets in flight, packets queued, bytes of a packet, estimated loss, bytes per second that the
/// window admits, whether it is safe to wait for it, the offset of the lowest outstanding data that it has not carried (NaN for none), bytes
/// per second of its bottleneck by its acknowledgments, how much that varies, the least forward delay in seconds by the clocks of both hosts, and
/// when its newest segment left in seconds (NaN until they are known).
pub const FIELDS: usize = 19;

/// Asks the page: a path, below zero to wait; and in the second argument what to send on it: its kind, 0 the next new segment, 1 the
/// one that lies so many unassigned bytes further on, 2 outstanding data once more from an offset on; and these bytes.
pub type Ask = fn(&[f64], &mut [f64; 2]) -> i32;

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
        let head = [view.backlog().bytes(), view.outstanding().bytes(), view.window_left()];
        let paths = [view.paths().len(), view.known_paths()];
        self.question.clear();
        self.question.push(view.now().as_secs_f64());
        self.question.extend(head.map(|number| number as f64).into_iter().chain(paths.map(|number| number as f64)));
        self.question.extend(view.paths().iter().flat_map(|path| of_path(view, path)));
    }
}

fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
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
        missing(view, path.id).map_or(f64::NAN, |start| start as f64),
        known(path.capacity_rate()),
        known(path.capacity.and_then(|capacity| capacity.spread())),
        seconds(path.least_forward()),
        known(path.capacity.and_then(|capacity| capacity.last_sent()).map(Instant::as_secs_f64)),
        path.elsewhere() as f64,
    ]
}

/// The offset of the lowest outstanding data that a path has not carried and does not queue: the round's own commands count.
fn missing(view: &View, path: PathId) -> Option<u64> {
    let mut queue: Vec<Range> = view.queue(path).map(|queued| queued.range).collect();
    queue.sort_unstable_by_key(|range| range.start);
    let behind = |from: u64, queued: &Range| if queued.start <= from { from.max(queued.end) } else { from };
    let others = view.outstanding().iter().filter(|(_, copies)| !copies.on(path)).map(|(run, _)| run);
    others.map(|run| (queue.iter().fold(run.start, behind), run.end)).find(|(start, end)| start < end).map(|(at, _)| at)
}

/// The command of an answer; `None` if it names no data.
fn command(view: &View, on: PathId, [kind, bytes]: [f64; 2]) -> Option<Command> {
    let bytes = bytes as u64;
    Some(match kind as u8 {
        1 => Command::SendAhead(on, bytes),
        2 => {
            let mss = view.path(on).map_or(0, |path| u64::from(path.mss));
            let (run, _) = view.outstanding().at(bytes)?;
            let queued = view.queue(on).map(|queued| queued.range.start).filter(|start| *start > bytes).min();
            let end = run.end.min(bytes + mss).min(queued.unwrap_or(u64::MAX));
            Command::Repeat(on, Range::new(bytes, end), Repeat::Copy)
        }
        _ => Command::SendNext(on),
    })
}

impl Scheduler for Own {
    fn schedule(&mut self, round: &mut Round<'_>) {
        for _ in 0..MOST {
            let nothing = round.backlog().is_empty() && round.outstanding().is_empty();
            if nothing || !round.candidates().any(PathView::eligible) {
                return;
            }
            self.put(round);
            let mut answer = [0.0; 2];
            let Ok(path) = u8::try_from((self.ask)(&self.question, &mut answer)) else { return };
            let command = command(round, PathId(path), answer);
            if !command.is_some_and(|command| round.carry_out(command)) {
                return;
            }
        }
    }

    fn measures_capacity(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Live, Request};
    use serde_json::Value;

    /// The metrics of a run with a scheduler of the page, and its packets.
    fn run(ask: super::Ask) -> (Value, Vec<[f64; 3]>) {
        let text = include_str!("../scenarios/two-equal-paths.toml").to_owned();
        let set = ["duration=1s", "warmup=0s"].map(str::to_owned).to_vec();
        let request = Request { name: "s.toml".into(), text, set, packets: 5000, own: true, ..Request::default() };
        let mut live = Live::begin(&request, Some(ask)).unwrap();
        let slice = live.advance(60.0).unwrap();
        assert!(slice.over);
        let rows = slice.packets.chunks(slice.widths[0]).map(|row| [row[1], row[2], row[8]]).collect();
        (live.finish().metrics["connection"].clone(), rows)
    }

    /// The number of a field of a path in a question.
    fn field(question: &[f64], path: usize, field: usize) -> f64 {
        question[super::HEAD + path * super::FIELDS + field]
    }

    #[test]
    fn it_copies_what_the_other_path_carries() {
        let (metrics, packets) = run(|question, command| {
            let eligible = |path: &usize| field(question, *path, 2) == 1.0;
            let Some(path) = (0..question[4] as usize).find(eligible) else { return -1 };
            let missing = field(question, path, 13);
            if !missing.is_nan() {
                *command = [2.0, missing];
            }
            path as i32
        });
        assert!(metrics["copied_packets"].as_f64().unwrap() > 100.0, "{metrics}");
        assert!(packets.iter().filter(|[_, kind, _]| *kind == 3.0).count() > 100);
    }

    /// When, where and from which offset on the last copy was, and how many were requested in vain.
    static LAST: std::sync::Mutex<([f64; 3], u32)> = std::sync::Mutex::new(([0.0; 3], 0));

    #[test]
    fn a_round_names_no_offset_of_a_path_twice() {
        let (metrics, _) = run(|question, command| {
            let copy = |path: &usize| field(question, *path, 2) == 1.0 && !field(question, *path, 13).is_nan();
            let Some(path) = (0..question[4] as usize).find(copy) else {
                return (0..question[4] as usize)
                    .find(|path| field(question, *path, 2) == 1.0)
                    .map_or(-1, |path| path as i32);
            };
            let missing = field(question, path, 13);
            let this = [question[0], path as f64, missing];
            let mut last = LAST.lock().unwrap();
            *last = (this, last.1 + u32::from(last.0 == this));
            *command = [2.0, missing];
            path as i32
        });
        assert!(metrics["copied_packets"].as_f64().unwrap() > 100.0);
        assert_eq!(LAST.lock().unwrap().1, 0);
    }

    /// The values seen last of the first path: capacity, its spread, when it last sent, and the time.
    static KNOWN: std::sync::Mutex<[f64; 4]> = std::sync::Mutex::new([f64::NAN; 4]);

    #[test]
    fn it_sees_the_capacities_of_the_paths() {
        run(|question, _| {
            let of = |n| field(question, 0, n);
            *KNOWN.lock().unwrap() = [of(14), of(15), of(17), question[0]];
            (0..question[4] as usize).find(|path| field(question, *path, 2) == 1.0).map_or(-1, |path| path as i32)
        });
        let [capacity, spread, sent, now] = *KNOWN.lock().unwrap();
        // 10 Mbit/s, of which headers take a twentieth.
        assert!((1.15e6..1.25e6).contains(&capacity), "{capacity}");
        assert!(spread < 0.1 && now - sent < 0.1, "{spread}, {sent} of {now}");
    }

    #[test]
    fn it_skips_what_it_leaves_to_the_other_path() {
        const AHEAD: f64 = 28_000.0;
        let (_, packets) = run(|question, command| {
            if field(question, 0, 2) == 1.0 {
                return 0;
            }
            *command = [1.0, AHEAD];
            if question[4] > 1.0 && field(question, 1, 2) == 1.0 { 1 } else { -1 }
        });
        let first = packets.iter().find(|[path, ..]| *path == 1.0).unwrap();
        let sent_before =
            packets.iter().take_while(|[path, ..]| *path == 0.0).map(|[.., start]| *start).fold(0.0, f64::max);
        assert!(first[2] >= sent_before + AHEAD, "{first:?} after {sent_before}");
    }
}
