//! A scheduler that the page has: it is asked, segment by segment, for a path.

use anabranch_engine::schedule::{Command, PathView, Repeat, Round, Scheduler, View};
use anabranch_run::Choice;
use anabranch_run::fields::{Fact, Field, Form, PATH_FIELDS, VIEW_FIELDS, path_numbers, view_numbers};
use anabranch_scenario::PlugIn;
use anabranch_sim::{End, FlowSetup, Party};
use anabranch_units::{PathId, Range, Side};
use serde::Serialize;
use serde_json::{Value, json};
use std::iter;

/// The name of the page's scheduler in plans and results.
pub const OWN: &str = "yours";

/// Numbers of a question before those of its paths: the facts of the connection ([`VIEW_FIELDS`]) and the number of paths that have a
/// subflow.
pub const HEAD: usize = VIEW_FIELDS.len() + 1;

/// Numbers of each path: its number, its facts ([`PATH_FIELDS`]), whether waiting for it is safe, and the lowest data that it may repeat.
pub const WIDTH: usize = 1 + PATH_FIELDS.len() + WITHIN.len();

/// Facts of a path within its connection: whether it is safe to wait for it, and the offset of the lowest outstanding data that it has
/// not carried (NaN for none).
const WITHIN: [(&str, Form); 2] = [("mayWait", Form::Flag), ("copy", Form::Number)];

/// A name of the page's objects, and the words for which its number stands, if so.
#[derive(Debug, Serialize)]
struct Name {
    name: &'static str,
    words: Value,
}

impl Name {
    fn of((name, form): (&'static str, Form)) -> Self {
        let words = match form {
            Form::Number => Value::Null,
            Form::Flag => json!([false, true]),
            Form::Word(words) => json!(words),
        };
        Self { name, words }
    }
}

/// The names of a question's numbers, as JSON: of those of the connection, and of those of each path.
pub fn fields() -> Value {
    let named = |field: &Field| Name::of((field.javascript, field.form));
    let path = iter::once(Name::of(("id", Form::Number))).chain(PATH_FIELDS.iter().map(named));
    let path: Vec<Name> = path.chain(WITHIN.map(Name::of)).collect();
    json!({ "view": VIEW_FIELDS.iter().map(named).collect::<Vec<_>>(), "path": path })
}

/// Asks the page: a path, below zero to wait; and in the second argument what to send on it: its kind, 0 the next new segment, 1 the
/// one that lies so many unassigned bytes further on, 2 outstanding data once more from an offset on; and these bytes.
pub type Ask = fn(&[f64], &mut [f64; 2]) -> i32;

/// Segments that one round binds at most: a page that never waits must not stop time.
const MOST: usize = 4096;

/// The name under which a run is planned until [`equip`] puts the page's scheduler in its place.
pub fn stand_in() -> Choice {
    Choice::Multipath(PlugIn { name: "fifo".into(), parameters: Vec::new() })
}

/// Gives the connections under test the page's scheduler at the end that sends the data.
pub fn equip(flows: &mut [FlowSetup], sender: Side, ask: Ask) {
    let ends = flows.iter_mut().map(|flow| match sender {
        Side::Client => &mut flow.client,
        Side::Server => &mut flow.server,
    });
    for end in ends {
        let End::Engine { parties, .. } = end else { continue };
        for Party { setup, .. } in parties {
            setup.scheduler = Box::new(Own { ask, question: Vec::new() });
        }
    }
}

#[derive(Debug)]
struct Own {
    ask: Ask,
    question: Vec<f64>,
}

impl Own {
    fn put(&mut self, view: &View) {
        self.question.clear();
        self.question.extend(view_numbers(view));
        self.question.push(view.paths().len() as f64);
        self.question.extend(view.paths().iter().flat_map(|path| of_path(view, path)));
    }
}

fn of_path(view: &View, path: &PathView) -> impl Iterator<Item = f64> {
    let within = [view.may_wait_for(path.id).number(), missing(view, path.id).number()];
    iter::once(f64::from(path.id.0)).chain(path_numbers(path)).chain(within)
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

    /// The place of a name among those of the connection or of a path.
    fn place(of: &str, name: &str) -> usize {
        let fields = super::fields();
        let names = fields[of].as_array().unwrap();
        names.iter().position(|field| field["name"] == name).unwrap()
    }

    fn now(question: &[f64]) -> f64 {
        question[place("view", "now")]
    }

    /// The number of paths that have a subflow.
    fn paths(question: &[f64]) -> usize {
        question[super::HEAD - 1] as usize
    }

    /// A fact of a path.
    fn field(question: &[f64], path: usize, name: &str) -> f64 {
        question[super::HEAD + path * super::WIDTH + place("path", name)]
    }

    /// The first path that may take a segment.
    fn eligible(question: &[f64]) -> Option<usize> {
        (0..paths(question)).find(|path| field(question, *path, "eligible") == 1.0)
    }

    #[test]
    fn a_question_has_a_number_for_each_name() {
        run(|question, _| {
            assert_eq!(question.len(), super::HEAD + paths(question) * super::WIDTH);
            assert_eq!(place("path", "copy"), super::WIDTH - 1);
            assert!((0..paths(question)).all(|path| field(question, path, "id") == path as f64));
            eligible(question).map_or(-1, |path| path as i32)
        });
    }

    #[test]
    fn it_copies_what_the_other_path_carries() {
        let (metrics, packets) = run(|question, command| {
            let Some(path) = eligible(question) else { return -1 };
            let missing = field(question, path, "copy");
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
            let of = |path: usize, name| field(question, path, name);
            let copy = |path: &usize| of(*path, "eligible") == 1.0 && !of(*path, "copy").is_nan();
            let Some(path) = (0..paths(question)).find(copy) else {
                return eligible(question).map_or(-1, |path| path as i32);
            };
            let missing = of(path, "copy");
            let this = [now(question), path as f64, missing];
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
            let of = |name| field(question, 0, name);
            *KNOWN.lock().unwrap() = [of("capacity"), of("spread"), of("lastSent"), now(question)];
            eligible(question).map_or(-1, |path| path as i32)
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
            if field(question, 0, "eligible") == 1.0 {
                return 0;
            }
            *command = [1.0, AHEAD];
            if paths(question) > 1 && field(question, 1, "eligible") == 1.0 { 1 } else { -1 }
        });
        let first = packets.iter().find(|[path, ..]| *path == 1.0).unwrap();
        let sent_before =
            packets.iter().take_while(|[path, ..]| *path == 0.0).map(|[.., start]| *start).fold(0.0, f64::max);
        assert!(first[2] >= sent_before + AHEAD, "{first:?} after {sent_before}");
    }
}
