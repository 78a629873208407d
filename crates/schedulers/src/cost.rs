//! Cheapest path first, within the caps of the tariffs.

use crate::pick::live;
use anabranch_plugin::registry::{Entry, Handle, Parameters, seconds};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::{Duration, Instant, Range};
use std::collections::VecDeque;

page!(
    "\
# Idea

Prefer the cheapest path; use dearer ones only for data that it cannot carry, at once or in time.

# Rule

The paths that may be used are those within their `cap`; if none of these works, the backups within theirs;
if none of these does either, the ones whose cap is used up, as a last resort. Among them, while data waits:

```text
j = the path with room that has the least (price, SRTT, id)
send on j                          if no path is cheaper, or there is no deadline,
                                   or none of the cheaper can be waited for
send on j                          if the data up to offset o, which must be there at d, would be late:
                                   d < now + (F + o − b)/r
otherwise wait for the cheaper ones
```

F = bytes in flight and queued on the cheaper paths, b = the lowest offset that waits, r = Σ cwnd·MSS/SRTT
of the cheaper paths. The deadline d is what the application says of its messages: a call does so of each frame. Of data without one it is
the time of writing plus the parameter `deadline`. Where that is 0, too, the dear path takes the overflow of the cheap windows; with a
large one it takes over only when the cheap ones fail.

A cap counts payload sent on the path by this connection, with retransmissions, from the connection's beginning. Price,
cap and backup are keys of the scenario's `[[path]]`; without prices all paths are equal, which is `minrtt`.

# When it helps

An unlimited line beside metered LTE; a quota that must last; streams that keep their rate on the cheap path
most of the time.

# When it hurts

A bulk transfer always has data waiting: without a deadline, or with one shorter than the send buffer takes to
drain, it fills the dear path as well. With a long one, bursts wait for the cheap path that the dear one
could have carried. A cheap path of long delay holds up the data that dear, fast ones delivered.

# Departures

Cheapest path first as the draft and the paper on its adaptive form describe it; deadlines are after
MP-DASH, which switches the dear path on and off for whole chunks; caps are new here. The time of writing has a
resolution of a sixteenth of the deadline; of an application's messages the first sixteen that wait count. Retransmissions of a subflow stay on it, as TCP requires, even beyond a cap. A
cap applies to this connection: other users of the tariff are unknown here.

# References

Bonaventure and others, Multipath schedulers, draft-bonaventure-iccrg-schedulers-02 (2021). Pieska,
Rabitsch, Brunstrom, Kassler, Amend, Adaptive Cheapest Path First Scheduling in a Transport-Layer Multi-Path
Tunnel Context, ANRW 2021. Han, Qian, Ji, Gopalakrishnan, MP-DASH: Adaptive Video Streaming Over
Preference-Aware Multipath, CoNEXT 2016.
"
);

const DEADLINE: Handle<Duration> = seconds("deadline", 0.0, 0.0..=86_400.0).about(
    "how long written data without a deadline of its application may take over the cheaper paths before a dearer one helps; 0: as soon as they are full",
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "cost",
    aliases: &["cheapest"],
    about: "the cheapest path first, dearer ones for data that overflows or would be late, within data caps",
    page: PAGE,
    parameters: &[DEADLINE.parameter],
    build: |p| Box::new(Cost::new(Config::from(p))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How long written data without a deadline of its own may take over the cheaper paths.
    pub deadline: Duration,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { deadline: DEADLINE.of(p) }
    }
}

/// Times of writing that are distinguished within a deadline; messages that are looked at.
const MARKS: usize = 16;

/// Cheapest path first.
#[derive(Clone, Debug)]
pub struct Cost {
    config: Config,
    /// Ends of written data, each with the time at which its first byte was written; at most [`MARKS`].
    written: VecDeque<(u64, Instant)>,
    /// When waiting data would be late.
    late: Option<Instant>,
}

/// The classes of paths, of which the least that a usable path has may be used: cap used up, then backup.
type Tier = (bool, bool);

fn tier(path: &PathView) -> Tier {
    (!path.is_within_cap(), path.backup)
}

/// The paths that may be used now. One that recovers from a timeout counts while its data is unacknowledged, because
/// the acknowledgment will show its state: a loss must not spend what the cap saves.
fn allowed(view: &View) -> impl Iterator<Item = &PathView> {
    let working = |p: &&PathView| p.usable && (p.in_flight_bytes > 0 || live(view, p));
    let working = move || view.paths().iter().filter(working);
    let best = working().map(tier).min();
    working().filter(move |p| Some(tier(p)) == best)
}

fn cheapest<'v>(paths: impl Iterator<Item = &'v PathView>) -> Option<&'v PathView> {
    let order = |p: &PathView| (p.rtt_or_max(), p.id);
    paths.min_by(|a, b| a.policy.price.total_cmp(&b.policy.price).then_with(|| order(a).cmp(&order(b))))
}

impl Cost {
    /// A scheduler before the first write.
    pub fn new(config: Config) -> Self {
        Self { config, written: VecDeque::new(), late: None }
    }

    /// Records the time at which the waiting data was written.
    fn note_written(&mut self, view: &View) {
        let lowest = view.backlog().first().map_or(view.written(), |r| r.start);
        while self.written.front().is_some_and(|(end, _)| *end <= lowest) {
            self.written.pop_front();
        }
        let (end, now) = (view.written(), view.now());
        match self.written.back_mut() {
            Some((last, _)) if *last == end => {}
            Some((last, at)) if now.since(*at) * (MARKS as u64) < self.config.deadline => *last = end,
            _ if end > lowest => self.written.push_back((end, now)),
            _ => {}
        }
        // With this many marks the oldest is already late, and so is the next.
        if self.written.len() > MARKS {
            self.written.pop_front();
        }
    }

    /// The time from which on waiting data would be late if it were left to the paths cheaper than `dear`. `None` if no
    /// cheaper path may be waited for.
    fn patience(&self, view: &View, dear: &PathView) -> Option<Instant> {
        let cheaper = || allowed(view).filter(|p| p.policy.price < dear.policy.price);
        if !cheaper().any(|p| view.may_wait_for(p.id)) {
            return None;
        }
        let rate: f64 = cheaper().map(PathView::window_rate).sum();
        let before: u64 = cheaper().map(|p| p.in_flight_bytes + p.queued_bytes).sum();
        let lowest = view.backlog().first()?.start;
        let takes = |end: u64| Duration::from_secs_f64((before + end.saturating_sub(lowest)) as f64 / rate);
        // The application knows better than the times of writing.
        let announced = view.deadlines_from(lowest).take(MARKS);
        let late = |(message, due): (Range, Instant)| {
            let end = message.end.min(view.written());
            view.now() + due.since(view.now()).saturating_sub(takes(end))
        };
        let of_writing = |(end, at): &(u64, Instant)| *at + self.config.deadline.saturating_sub(takes(*end));
        announced.map(late).min().or_else(|| self.written.iter().map(of_writing).min())
    }

    /// The data that waits has a deadline.
    fn has_deadline(&self, view: &View) -> bool {
        let lowest = view.backlog().first().map_or(view.written(), |range| range.start);
        !self.config.deadline.is_zero() || view.deadlines_from(lowest).next().is_some()
    }
}

impl Scheduler for Cost {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.late = None;
        if !self.config.deadline.is_zero() {
            self.note_written(round);
        }
        while let Some(next) = cheapest(allowed(round).filter(|p| p.eligible())) {
            if self.has_deadline(round)
                && let Some(late) = self.patience(round, next)
                && late > round.now()
            {
                self.late = Some(late);
                return;
            }
            let id = next.id;
            if !round.send_next(id) {
                return;
            }
        }
    }

    fn rescue(&mut self, round: &mut Round<'_>) {
        let allowed = allowed(round).fold(0, |set, p| set | p.id.bit());
        let price = |p: &PathView| p.policy.price.to_bits();
        // Prices are not negative, so their bits have the same order.
        round.rescue_by(|p| (allowed & p.id.bit() != 0).then(|| (price(p), p.rtt_or_max(), p.id)));
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.late
    }

    // A backup carries data while the only other path's cap is used up.
    fn serves_lone_path(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::schedule::PathPolicy;
    use anabranch_units::PathId;

    fn priced(view: PathView, price: f64) -> PathView {
        PathView { policy: PathPolicy { price, ..PathPolicy::default() }, ..view }
    }

    /// A cheap path of 4 packets in 100 ms, and a dear one of 100 in 10 ms.
    fn bench() -> Bench {
        Bench::new(&[priced(path(0, 10, 100, 0), 5.0), priced(path(1, 100, 4, 0), 1.0)])
    }

    fn cost(deadline_ms: u64) -> Cost {
        Cost::new(Config { deadline: Duration::from_millis(deadline_ms) })
    }

    fn cap(bench: &mut Bench, id: u8, cap: u64, used: u64) {
        let p = bench.view.path_mut(PathId(id)).unwrap();
        (p.policy.cap, p.used_bytes) = (Some(cap), used);
    }

    #[test]
    fn the_dear_path_takes_what_overflows() {
        let mut bench = bench();
        bench.write(6);
        bench.round(&mut cost(0));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![4, 5], vec![0, 1, 2, 3]));
    }

    #[test]
    fn equal_prices_are_minrtt() {
        let mut bench = Bench::new(&[path(0, 50, 4, 0), path(1, 10, 4, 0)]);
        bench.write(6);
        bench.round(&mut cost(0));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![4, 5], vec![0, 1, 2, 3]));
    }

    #[test]
    fn a_deadline_waits_for_the_cheap_path_as_long_as_it_can() {
        // 4 packets per 100 ms; 12 packets have arrived after 300 ms.
        for (deadline, dear) in [(301, 0), (299, 1), (199, 5), (1, 8)] {
            let (mut bench, mut scheduler) = (bench(), cost(deadline));
            bench.write(12);
            bench.round(&mut scheduler);
            assert_eq!((bench.bound(1).len(), bench.bound(0).len()), (4, dear), "{deadline} ms");
        }
    }

    /// As above, whatever the parameter; a message that is late already waits for nothing.
    #[test]
    fn the_deadline_of_a_message_counts_before_the_parameter() {
        for (deadline, dear) in [(301, 0), (299, 1), (199, 5), (1, 8)] {
            for own in [0, 250] {
                let (mut bench, mut scheduler) = (bench(), cost(own));
                assert!(bench.view.begin_message(12 * MSS, Some(Instant::from_millis(deadline))));
                bench.write(12);
                bench.round(&mut scheduler);
                assert_eq!((bench.bound(1).len(), bench.bound(0).len()), (4, dear), "{deadline} ms, {own} ms");
            }
        }
        let (mut bench, mut scheduler) = (bench(), cost(0));
        bench.at(50);
        assert!(bench.view.begin_message(6 * MSS, Some(Instant::from_millis(20))));
        bench.write(6);
        bench.round(&mut scheduler);
        assert_eq!((bench.bound(1).len(), bench.bound(0).len()), (4, 2));
    }

    #[test]
    fn time_that_passes_counts_and_it_asks_to_be_called_in_time() {
        let (mut bench, mut scheduler) = (bench(), cost(400));
        bench.write(12);
        bench.round(&mut scheduler);
        assert_eq!(scheduler.next_wakeup(), Some(Instant::from_millis(100)));
        bench.send(1);
        bench.at(99);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), []);
        bench.at(101);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [4]);
        // Later writes have their own time.
        bench.write(1);
        bench.at(124);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [4]);
    }

    #[test]
    fn times_of_writing_take_a_bounded_memory() {
        let (mut bench, mut scheduler) = (bench(), cost(1_000_000));
        for ms in 0..100_000 {
            bench.at(ms * 50);
            bench.write(1);
            bench.round(&mut scheduler);
            assert!(scheduler.written.len() <= MARKS);
        }
        assert_eq!(scheduler.written.back().map(|(end, _)| *end), Some(bench.view.written()));
    }

    #[test]
    fn a_cheap_path_that_cannot_be_waited_for_is_not() {
        let (mut bench, mut scheduler) = (bench(), cost(10_000));
        let p = bench.view.path_mut(PathId(1)).unwrap();
        p.recovery = anabranch_units::RecoveryPhase::Loss;
        bench.write(2);
        bench.round(&mut scheduler);
        assert_eq!(bench.bound(0), [0, 1]);
    }

    #[test]
    fn a_used_up_cap_is_not_exceeded_while_there_is_another_path() {
        let mut bench = bench();
        cap(&mut bench, 1, 10 * MSS, 8 * MSS);
        bench.write(9);
        bench.round(&mut cost(0));
        assert_eq!((bench.bound(0).len(), bench.bound(1)), (7, vec![0, 1]));
    }

    #[test]
    fn backups_come_before_used_up_caps_and_these_before_nothing() {
        let mut bench = bench();
        cap(&mut bench, 1, 0, 0);
        bench.view.path_mut(PathId(0)).unwrap().backup = true;
        bench.write(1);
        bench.round(&mut cost(0));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0], vec![]));
        bench.view.path_mut(PathId(0)).unwrap().usable = false;
        bench.write(1);
        bench.round(&mut cost(0));
        assert_eq!(bench.bound(1), [1]);
    }

    #[test]
    fn recovery_from_a_timeout_does_not_open_what_a_cap_closes_unless_nothing_is_out() {
        for (in_flight, expect) in [(1, 0), (0, 1)] {
            let mut bench = bench();
            cap(&mut bench, 0, 0, 0);
            let p = bench.view.path_mut(PathId(1)).unwrap();
            p.recovery = anabranch_units::RecoveryPhase::Loss;
            p.in_flight_bytes = in_flight * MSS;
            bench.write(1);
            bench.round(&mut cost(0));
            assert_eq!(bench.bound(0).len(), expect);
        }
    }

    #[test]
    fn stranded_data_is_rescued_on_the_cheapest_path_within_its_cap() {
        let three = [path(0, 10, 9, 0), priced(path(1, 50, 9, 0), 5.0), priced(path(2, 90, 9, 0), 2.0)];
        for (capped, expect) in [(false, [0, 1]), (true, [1, 0])] {
            let mut bench = Bench::new(&three);
            bench.write(1);
            bench.round(&mut cost(0));
            bench.send(0);
            bench.view.path_mut(PathId(0)).unwrap().usable = false;
            bench.view.strand(PathId(0));
            if capped {
                cap(&mut bench, 2, MSS - 1, 0);
            }
            bench.rescue(&mut cost(0));
            assert_eq!([bench.bound(1).len(), bench.bound(2).len()], expect, "capped: {capped}");
        }
    }
}
