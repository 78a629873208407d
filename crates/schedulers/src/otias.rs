//! OTIAS: every segment is bound at once, to the path on which it is predicted to arrive first.

use crate::opportunistic::{self, Opportunistic};
use crate::pick::{Ahead, admits, free, queued, takes_ahead};
use anabranch_plugin::registry::{Entry, Handle, Parameter, Parameters, number, whole};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, Then, View};
use anabranch_units::{Duration, PathId};

page!(
    "\
# Idea

Assign each segment when it is written, to the path with the earliest predicted arrival, even if that path's
window is full: the segment then waits in the path's queue.

# Rule

With q packets queued, c = max(0, w − f) packets of free window, R the smoothed RTT:

```text
otias, otias-module:  n = 0 if q < c, else ⌈(q − c + 1)/w⌉
otias-paper:          n = max(0, ⌊(q − c)/w⌋)
T = n·R + R/2;  the path with the least T takes the segment; ties go to the lower id
```

Nothing is queued beyond the peer's window. In `otias` no more than two windows wait for a path, beyond its free
window. Where the path with the least T is at this limit, the others take the packets for which their windows have room,
and nothing waits for them. `otias-module` and `otias-paper` have no limit.

# When it helps

Paths whose windows and delays are stable: data arrives almost in order without leaving a path idle.

# When it hurts

The choice is final. After a loss the queue of the fast path is long and its prediction stale; retransmissions do not
wait, but queued data does. Without a limit a receive window of megabytes is bound at once, by the windows and delays at
that time.

# Departures

The paper's formula gives an idle path a negative T; c and n are clamped at zero. A path without an RTT sample takes the
packets for which its window has room, after all others. The limit of `otias` is chosen here, not the authors'. If the
limit of one path sent segments to another path's queue, a deep queue's large windows would bind all written data to the
later path. When a path fails or gives data back, all queues are taken back and bound again, because queues must stay in
order.

# References

Yang et al., Out-of-order Transmission for In-order Arrival Scheduling, 2014; algorithm 2 in Ferlin et al.,
BLEST, IFIP Networking 2016. The authors' kernel module, mptcp_otias.c: `optim` is its option.
"
);

const QUEUE: Handle<f64> = number("queue", 0.0, 0.0..=1000.0)
    .unit("windows")
    .about("most windows that may wait for a path, beyond its free window; 0 = all that the peer's window admits");
const OPTIM: Handle<u64> = whole("optim", 0, 0..=2)
    .about("when the window is full: 0 nothing, 1 retransmit as +or, 2 retransmit and penalise as +pr");

const UNLIMITED: &[Parameter] = &[QUEUE.parameter, OPTIM.parameter];

/// `otias`: the authors' formula, and queues of two windows at most.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "otias",
    aliases: &[],
    about: "queue every segment where it is predicted to arrive first",
    page: PAGE,
    parameters: &[Parameter { default: 2.0, ..QUEUE.parameter }, OPTIM.parameter],
    build: |p| build(Form::Module, p),
};

/// `otias-module`: as the authors' module.
pub const ENTRY_MODULE: Entry<dyn Scheduler> = Entry {
    name: "otias-module",
    about: "OTIAS as in the authors' module: only the peer's window limits the queues",
    parameters: UNLIMITED,
    ..ENTRY
};

/// `otias-paper`: the paper's formula.
pub const ENTRY_PAPER: Entry<dyn Scheduler> = Entry {
    name: "otias-paper",
    about: "OTIAS with the paper's formula for the waiting time, and no limit",
    parameters: UNLIMITED,
    build: |p| build(Form::Paper, p),
    ..ENTRY
};

/// How a segment's waiting time in round trips is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As in the authors' kernel module: rounded up.
    Module,
    /// As in the paper: rounded down.
    Paper,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The formula.
    pub form: Form,
    /// Most windows that may wait for a path; 0 = no limit except the peer's window.
    pub queue: f64,
}

fn build(form: Form, p: &Parameters<'_>) -> Box<dyn Scheduler> {
    let otias = Otias::new(Config { form, queue: QUEUE.of(p) });
    let extra = |penalise| Opportunistic::new(opportunistic::Config { rtt_guard: 4.0, penalise });
    match OPTIM.of(p) {
        0 => Box::new(otias),
        1 => Box::new(Then(otias, extra(false))),
        _ => Box::new(Then(otias, extra(true))),
    }
}

/// OTIAS.
#[derive(Clone, Debug)]
pub struct Otias {
    config: Config,
    ahead: Ahead,
}

impl Otias {
    /// A scheduler with nothing bound.
    pub fn new(config: Config) -> Self {
        Self { config, ahead: Ahead::default() }
    }

    /// When the next segment would arrive if bound to `path`; `None` without an RTT sample and without room.
    fn arrival(&self, path: &PathView) -> Option<Duration> {
        let (queued, free) = (queued(path), free(path));
        let window = u64::from(path.cwnd.max(1));
        let Some(rtt) = path.srtt else { return (queued < free).then_some(Duration::MAX) };
        let waiting = queued.saturating_sub(free);
        let rounds = match self.config.form {
            Form::Module if queued < free => 0,
            Form::Module => (waiting + 1).div_ceil(window),
            Form::Paper => waiting / window,
        };
        Some(rtt * rounds + rtt / 2)
    }

    /// No more packets may wait for `path`.
    fn at_limit(&self, path: &PathView) -> bool {
        let (queued, free) = (queued(path), free(path));
        let most = self.config.queue * f64::from(path.cwnd.max(1));
        self.config.queue > 0.0 && queued >= free && (queued - free) as f64 >= most
    }

    /// The path for the next segment.
    fn earliest(&self, view: &View) -> Option<PathId> {
        let first = |serves: &dyn Fn(&PathView) -> bool| {
            let paths = view.candidates().filter(|p| takes_ahead(p) && admits(view, p) && serves(p));
            paths.filter_map(|p| Some((self.arrival(p)?, p.id))).min().map(|(_, id)| id)
        };
        let best = first(&|_| true)?;
        let room = |p: &PathView| queued(p) < free(p);
        if view.path(best).is_some_and(|p| self.at_limit(p)) { first(&room) } else { Some(best) }
    }
}

impl Scheduler for Otias {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.ahead.recall(round, takes_ahead);
        while let Some(on) = self.earliest(round) {
            if self.ahead.enqueue(round, on).is_none() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::Cause;
    use anabranch_units::RecoveryPhase;

    fn otias(form: Form) -> Otias {
        Otias::new(Config { form, queue: 0.0 })
    }

    /// (R, w, f, q) as a path.
    fn state((rtt, cwnd, in_flight, queued): (u64, u32, u32, u32)) -> PathView {
        PathView { queued, queued_bytes: u64::from(queued) * MSS, ..path(0, rtt, cwnd, in_flight) }
    }

    #[test]
    fn predicted_arrivals() {
        for (paper, module, of) in [
            (50, 70, (20, 10, 10, 24)),
            (45, 45, (90, 10, 0, 0)),
            (10, 30, (20, 10, 10, 0)),
            (10, 10, (20, 10, 4, 5)),
            (10, 30, (20, 10, 4, 6)),
            (250, 350, (100, 8, 8, 16)),
        ] {
            let ms = |form| otias(form).arrival(&state(of)).unwrap().as_millis();
            assert_eq!((ms(Form::Paper), ms(Form::Module)), (paper, module), "{of:?}");
        }
    }

    #[test]
    fn both_forms_prefer_the_idle_path_to_the_long_queue() {
        for form in [Form::Paper, Form::Module] {
            // Path 0 queues 24 packets first, then path 1 comes.
            let mut bench = Bench::new(&[path(0, 20, 10, 10)]);
            bench.write(24);
            let mut otias = otias(form);
            bench.round(&mut otias);
            assert_eq!(bench.bound(0).len(), 24);
            bench.view.set_path(path(1, 90, 10, 0));
            bench.write(1);
            bench.round(&mut otias);
            assert_eq!(bench.bound(1), [24], "{form:?}");
        }
    }

    #[test]
    fn queues_end_at_the_peers_window() {
        let mut bench = Bench::with_window(&[path(0, 20, 2, 0), path(1, 60, 2, 0)], 9 * MSS);
        bench.write(30);
        bench.round(&mut otias(Form::Module));
        assert_eq!(bench.bound(0).len() + bench.bound(1).len(), 9);
    }

    #[test]
    fn what_a_limit_keeps_from_a_queue_goes_where_there_is_room_and_into_no_other_queue() {
        for (in_flight, given) in [(2, 0), (0, 2)] {
            let mut bench = Bench::new(&[path(0, 10, 2, 2), path(1, 900, 2, in_flight)]);
            bench.write(30);
            bench.round(&mut Otias::new(Config { form: Form::Module, queue: 2.0 }));
            assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (4, given));
        }
    }

    #[test]
    fn a_later_path_is_queued_on_if_it_is_the_earlier_one_by_then() {
        // T of path 0 with q waiting: 30 + 20·q ms, 190 at the limit; of path 1 with 0, 1 and 2 bound: 45, 135 and 225 ms.
        let mut bench = Bench::new(&[path(0, 20, 1, 1), path(1, 90, 1, 0)]);
        bench.write(30);
        bench.round(&mut Otias::new(Config { form: Form::Module, queue: 8.0 }));
        assert_eq!((bench.bound(0).len(), bench.bound(1).len()), (8, 2));
    }

    #[test]
    fn a_failed_path_gives_its_queue_back_in_order() {
        let mut bench = Bench::new(&[path(0, 20, 4, 0), path(1, 60, 4, 0)]);
        bench.write(20);
        let mut otias = otias(Form::Module);
        bench.round(&mut otias);
        let first = bench.view.take_admissible(PathId(0)).unwrap();
        bench.sent(0, first.range);
        let p = bench.view.path_mut(PathId(0)).unwrap();
        p.recovery = RecoveryPhase::Loss;
        bench.round_for(&mut otias, Cause::Timeout(PathId(0)));
        assert_eq!(bench.bound(0), []);
        assert_eq!(bench.bound(1), (1..20).collect::<Vec<_>>());
        assert!(bench.view.backlog().is_empty());
    }

    #[test]
    fn a_lost_path_gives_its_queue_back_in_order() {
        let mut bench = Bench::new(&[path(0, 20, 4, 0), path(1, 60, 4, 0), path(2, 70, 4, 0)]);
        bench.write(40);
        let mut otias = otias(Form::Module);
        bench.round(&mut otias);
        bench.view.remove_path(PathId(0));
        bench.round_for(&mut otias, Cause::PathChange(PathId(0)));
        assert!(bench.view.backlog().is_empty());
        for id in [1, 2] {
            assert!(bench.bound(id).windows(2).all(|w| w[0] < w[1]));
        }
    }

    #[test]
    fn paths_without_a_sample_take_their_windows_in_order() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 20, 2, 0)]);
        bench.view.path_mut(PathId(0)).unwrap().srtt = None;
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        bench.write(5);
        bench.round(&mut otias(Form::Module));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2, 3]));
    }
}
