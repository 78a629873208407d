//! SRPT-ECF: messages in the order of their remaining bytes, each with ECF's test.

use crate::ecf::{self, Verdict};
use crate::pick::{by_rtt, fastest_live, no_choice};
use anabranch_plugin::registry::{Entry, Parameters};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::{PathId, Range};

page!(
    "\
# Idea

Among the waiting messages, send first from the one with the least remaining data (shortest remaining processing time),
and use a slower path only for a message that would not be complete earlier if it waited for the fast one.

# Rule

Messages are ordered by their remaining data, ties to the older one. While F, the path with the lowest RTT, has
room, it gets the next segment of the first. When only a slower path S has room, K is the remaining data of a message and
of all before it, and the first message for which ECF's two tests (see `ecf`), with k = K, choose S is sent on S. If
there is none, wait.

The remaining data of a message counts from its announced length, and so includes data not written yet. Data outside
messages counts as a message as far as it is written.

# When it helps

Several objects at once on one connection: short ones are not served behind long ones, and the slow path carries the part
of the longest that the fast one could not carry soon.

# When it hurts

Long messages starve while short ones keep coming. The length must be known. A connection is one ordered stream
of bytes: the receiver cannot read a short message before the longer one that was written before it, so that sending it
first gains nothing there and uses window; the paper's transport has one stream per message. Where messages come one
after the other, the order is that of the stream, and the only difference from ECF is that unwritten data counts.

# Departures

The paper is for transports with streams; messages of one byte stream replace streams. A segment
never spans two messages. As in `ecf-linux`, the remaining data counts as at least one window; the deviation is that of
`ecf`. A message whose next segment the peer's window does not admit is passed over. Without messages the whole backlog
is one message.

# References

Jonglez, Heusse, Gaujal, SRPT-ECF: challenging Round-Robin for stream-aware multipath scheduling, IFIP Networking
2020.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "srpt-ecf",
    aliases: &[],
    about: "the message with the least remaining data first, each with ECF's test",
    page: PAGE,
    parameters: ecf::PARAMETERS,
    build: |p: &Parameters<'_>| Box::new(SrptEcf::new(ecf::Config { whole_windows: true, ..p.into() })),
};

/// A message, or a part of the stream between messages, with unbound data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    left: u64,
    range: Range,
}

/// The inputs of the list of jobs: while they are equal, so is the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Basis {
    backlog: u64,
    written: u64,
    messages: usize,
}

impl Basis {
    fn of(view: &View) -> Self {
        Self { backlog: view.backlog().bytes(), written: view.written(), messages: view.messages().len() }
    }
}

/// SRPT-ECF.
#[derive(Clone, Debug)]
pub struct SrptEcf {
    config: ecf::Config,
    waiting: bool,
    /// Least remaining first; ties in the order of the stream.
    jobs: Vec<Job>,
    basis: Basis,
}

/// The next segment of a job on `path`; `None` if none of it is written and unbound, or if it is a rest that the
/// application has not completed yet.
fn next_segment(view: &View, job: &Job, path: &PathView) -> Option<Range> {
    let piece = view.backlog().within(job.range).next()?;
    let end = piece.end.min(piece.start + u64::from(path.segment));
    let short = end - piece.start < u64::from(path.segment) && end == view.written() && end < job.range.end;
    // As Nagle's algorithm (RFC 9293 §3.7.4): an acknowledgment will come.
    let held = short && !view.write_ended() && !view.send_buffer_full() && !view.outstanding().is_empty();
    (!held).then_some(Range::new(piece.start, end))
}

impl SrptEcf {
    /// A scheduler that does not wait.
    pub fn new(config: ecf::Config) -> Self {
        Self { config, waiting: false, jobs: Vec::new(), basis: Basis::default() }
    }

    /// Updates the jobs after writes, announcements and data given back.
    fn look(&mut self, view: &View) {
        let basis = Basis::of(view);
        if basis == self.basis {
            return;
        }
        self.basis = basis;
        self.jobs.clear();
        let mut from = view.backlog().first().map_or(view.written(), |first| first.start);
        for message in view.messages() {
            self.add(view, Range::new(from, message.start));
            self.add(view, message);
            from = from.max(message.end);
        }
        self.add(view, Range::new(from, view.written()));
        self.jobs.sort_unstable_by_key(|job| (job.left, job.range.start));
    }

    fn add(&mut self, view: &View, range: Range) {
        let unbound: u64 = view.backlog().within(range).map(Range::len).sum();
        let unwritten = Range::new(range.start.max(view.written()), range.end).len();
        if unbound > 0 {
            self.jobs.push(Job { left: unbound + unwritten, range });
        }
    }

    /// Sends the next segment of job `at` on `on`. False if it has none or the rules refuse it.
    fn send(&mut self, round: &mut Round<'_>, at: usize, on: PathId) -> bool {
        let Some(path) = round.path(on) else { return false };
        let Some(segment) = next_segment(round, &self.jobs[at], path) else { return false };
        if !round.send(on, segment) {
            return false;
        }
        self.basis.backlog -= segment.len();
        let job = &mut self.jobs[at];
        job.left -= segment.len();
        if job.left == 0 {
            self.jobs.remove(at);
        } else {
            // Less remains of it: it may move forward.
            let key = |job: &Job| (job.left, job.range.start);
            let place = self.jobs[..at].partition_point(|other| key(other) < key(&self.jobs[at]));
            self.jobs[place..=at].rotate_right(1);
        }
        true
    }

    /// Sends on the fast path, from the first message with a sendable segment.
    fn send_first(&mut self, round: &mut Round<'_>, on: PathId) -> bool {
        (0..self.jobs.len()).any(|at| self.send(round, at, on))
    }

    /// Sends on a slower path, from the first message that would not be complete earlier without it.
    fn send_worth(&mut self, round: &mut Round<'_>, fast: &PathView, slow: &PathView) -> bool {
        let mut before = 0;
        for at in 0..self.jobs.len() {
            before += self.jobs[at].left;
            let verdict = self.config.judge(self.waiting, before, fast, slow);
            if verdict != Verdict::Wait && self.send(round, at, slow.id) {
                self.waiting &= verdict == Verdict::Use;
                return true;
            }
        }
        self.waiting = !self.jobs.is_empty();
        false
    }
}

impl Scheduler for SrptEcf {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).copied() else { return };
        if no_choice(round) {
            return by_rtt(round);
        }
        self.look(round);
        while round.path(fast.id).is_some_and(PathView::eligible) {
            if !self.send_first(round, fast.id) {
                return;
            }
        }
        while let Some(slow) = round.fastest_eligible().copied() {
            if !self.send_worth(round, &fast, &slow) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::Assignment;
    use anabranch_units::Duration;

    fn srpt_ecf() -> SrptEcf {
        SrptEcf::new(ecf::Config { beta: 0.25, sigma_factor: 1.0, sigma_min: Duration::ZERO, whole_windows: true })
    }

    /// Writes a message of `packets` packets.
    fn message(bench: &mut Bench, packets: u64) {
        assert!(bench.view.begin_message(packets * MSS, None));
        bench.write(packets);
    }

    #[test]
    fn only_what_the_fast_path_could_not_complete_earlier_goes_on_the_slow_one() {
        // R = 20/100, w_F = 10, δ = 0. A: 3, B: 10, C: 60 packets; K = 3, 13, 73 take 40, 46, 166 ms on the fast path,
        // against 100 ms: A and B wait, C is sent on the slow path.
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 2, 0)]);
        [3, 10, 60].into_iter().for_each(|packets| message(&mut bench, packets));
        let mut scheduler = srpt_ecf();
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![13, 14]));
        bench.acked(0, 10);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn the_shortest_message_goes_first_and_ties_to_the_older() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 2, 2)]);
        [8, 3, 3].into_iter().for_each(|packets| message(&mut bench, packets));
        bench.round(&mut srpt_ecf());
        // 8–10, 11–13, and then the longest.
        assert_eq!(bench.bound(0), [8, 9, 10, 11, 12, 13, 0, 1, 2, 3]);
    }

    #[test]
    fn a_message_that_becomes_the_shortest_on_the_slow_path_is_the_next_on_the_fast() {
        let job = |left, start| Job { left, range: Range::new(start, start + 100 * MSS) };
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 10, 0)]);
        bench.write(300);
        let mut scheduler = srpt_ecf();
        scheduler.jobs = vec![job(2 * MSS, 0), job(3 * MSS, 100 * MSS), job(3 * MSS, 200 * MSS)];
        scheduler.basis.backlog = 1 << 20;
        let mut round = Round::new(&mut bench.view, &mut bench.windows, anabranch_plugin::schedule::Cause::Written);
        assert!(scheduler.send(&mut round, 2, PathId(1)));
        assert_eq!(scheduler.jobs.iter().map(|j| j.range.start / MSS).collect::<Vec<_>>(), [0, 200, 100]);
        assert!(scheduler.send(&mut round, 1, PathId(1)));
        assert_eq!(scheduler.jobs.iter().map(|j| j.left / MSS).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn what_is_not_written_yet_counts() {
        // 20 of 60 packets are written: ECF would see (1 + 2)·20 = 60 < 100 and wait.
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 100, 2, 0)]);
        assert!(bench.view.begin_message(60 * MSS, None));
        bench.write(20);
        bench.round(&mut srpt_ecf());
        assert_eq!(bench.bound(1), [0, 1]);
    }

    #[test]
    fn data_of_no_message_is_one_of_its_own() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 2, 2)]);
        bench.write(4);
        message(&mut bench, 5);
        bench.write(1);
        bench.round(&mut srpt_ecf());
        assert_eq!(bench.bound(0), [9, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn what_is_given_back_is_seen() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 100, 2, 2)]);
        message(&mut bench, 2);
        let mut scheduler = srpt_ecf();
        bench.round(&mut scheduler);
        assert!(scheduler.jobs.is_empty());
        bench.view.take_back(PathId(0));
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [0, 1]);
    }

    #[test]
    fn a_message_behind_the_peers_window_is_passed_over() {
        let mut bench = Bench::with_window(&[path(0, 20, 10, 0), path(1, 100, 2, 2)], 10 * MSS);
        [12, 3].into_iter().for_each(|packets| message(&mut bench, packets));
        bench.round(&mut srpt_ecf());
        assert_eq!(bench.bound(0), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_rest_that_may_still_grow_waits_while_an_acknowledgment_will_come() {
        let next = |change: &dyn Fn(&mut Assignment)| {
            let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 100, 2, 2)]);
            assert!(bench.view.begin_message(5 * MSS, None));
            bench.write(1);
            let mut scheduler = srpt_ecf();
            bench.round(&mut scheduler);
            assert_eq!(bench.send(0), [0]);
            bench.view.set_written(MSS + 700);
            change(&mut bench.view);
            bench.round(&mut scheduler);
            bench.bound(0)
        };
        assert_eq!(next(&|_| {}), []);
        assert_eq!(next(&|view| view.set_written(2 * MSS)), [1], "a whole segment");
        assert_eq!(next(&|view| view.set_ended()), [1], "nothing will follow");
        assert_eq!(next(&|view| view.set_buffer_full(true)), [1], "nothing can follow");
        assert_eq!(next(&|view| view.on_data_acked(MSS)), [1], "nothing is out");
    }
}
