//! `playahead` on random paths: against its rule, played one segment after another, and what follows from that.

use anabranch_plugin::congestion::{Acked, FixedWindows};
use anabranch_plugin::schedule::{Assignment, Cause, PathView, RecoveryPhase, Round, View};
use anabranch_schedulers::build;
use anabranch_units::{Duration, Instant, PathId};
use proptest::prelude::*;

const MSS: u64 = 1000;
const NOW: Instant = Instant::from_millis(5000);

/// A path of a random situation; times in µs.
#[derive(Clone, Debug)]
struct Way {
    rtt: u64,
    /// From one packet to the next at its bottleneck; `None`: nothing is known of that.
    gap: Option<u64>,
    cwnd: u32,
    in_flight: u32,
}

fn a_way() -> impl Strategy<Value = Way> {
    let flight = (0u32..30, 0u32..30);
    (1_000u64..200_000, prop::option::weighted(0.8, 50u64..20_000), flight).prop_map(|(rtt, gap, (a, b))| Way {
        rtt,
        gap,
        cwnd: a.max(b).max(1),
        in_flight: a.min(b),
    })
}

fn some_ways() -> impl Strategy<Value = Vec<Way>> {
    prop::collection::vec(a_way(), 2..6)
}

/// The paths, with so many segments in the backlog.
fn situation(ways: &[Way], segments: u64) -> Assignment {
    let mut view = Assignment::new(false);
    view.measure_capacity(true);
    view.set_window(1 << 40, 1 << 40);
    for (id, way) in (0u8..).map(PathId).zip(ways) {
        let rtt = Some(Duration::from_nanos(way.rtt * 1000));
        let known = PathView { srtt: rtt, latest_rtt: rtt, min_rtt: rtt, ..PathView::new(id, MSS as u32) };
        let (cwnd, in_flight) = (way.cwnd, way.in_flight);
        view.set_path(PathView { cwnd, in_flight, in_flight_bytes: u64::from(in_flight) * MSS, ..known });
        for before in way.gap.into_iter().flat_map(|gap| [gap, 0]) {
            let now = Instant::from_nanos(NOW.as_nanos() - before * 1000);
            let mut acked = Acked::default();
            (acked.now, acked.packets, acked.bytes) = (now, 1, MSS);
            (acked.rtt, acked.prior_in_flight) = (Some(Duration::from_secs(1)), 9);
            view.on_acked(id, &acked);
        }
    }
    view.set_now(NOW);
    view.set_written(segments * MSS);
    view
}

/// One round; the numbers of the segments that each path has then.
fn round(view: &mut Assignment) -> Vec<Vec<u64>> {
    let mut scheduler = build("playahead", &[]).unwrap();
    scheduler.schedule(&mut Round::new(view, &mut FixedWindows::default(), Cause::Written));
    let ids: Vec<PathId> = view.paths().iter().map(|p| p.id).collect();
    ids.into_iter().map(|id| view.queue(id).map(|q| q.range.start / MSS).collect()).collect()
}

/// A path in the plan, in seconds.
struct Planned {
    room: u32,
    counts: bool,
    next: f64,
    open_step: f64,
    full_step: f64,
}

impl Planned {
    fn of(view: &View, path: &PathView) -> Self {
        let base = path.min_rtt.unwrap().as_secs_f64();
        let window = f64::from(path.cwnd) * MSS as f64 / base;
        let rate = path.capacity_rate().unwrap_or(window);
        let queue = (path.in_flight_bytes as f64 / rate - base).max(0.0);
        let room = path.room();
        let counts = room > 0 || view.may_wait_for(path.id);
        let (open_step, full_step) = (MSS as f64 / rate, MSS as f64 / rate.min(window));
        let first = if room > 0 { open_step } else { full_step };
        Self { room, counts, next: queue + base / 2.0 + first, open_step, full_step }
    }

    /// Takes the next segment, which is sent on it if it has room.
    fn take(&mut self) -> bool {
        let had_room = self.room > 0;
        self.room = self.room.saturating_sub(1);
        self.next += if self.room > 0 { self.open_step } else { self.full_step };
        had_room
    }
}

/// The segments that the rule sends on each path, when the last segment arrives, and how clear each choice was.
fn plan(view: &View, segments: u64) -> (Vec<Vec<u64>>, f64, f64) {
    let mut paths: Vec<Planned> = view.paths().iter().map(|p| Planned::of(view, p)).collect();
    let (mut sent, mut last, mut least) = (vec![Vec::new(); paths.len()], 0.0f64, f64::INFINITY);
    for number in 0..segments {
        let mut order: Vec<(f64, usize)> =
            paths.iter().enumerate().filter(|(_, p)| p.counts).map(|(i, p)| (p.next, i)).collect();
        order.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let Some(&(arrives, on)) = order.first() else { break };
        least = order.get(1).map_or(least, |second| least.min(second.0 - arrives));
        last = arrives;
        if paths[on].take() {
            sent[on].push(number);
        }
    }
    (sent, last, least)
}

/// Two arrivals that are nearer than this may change places by rounding.
const CLEAR: f64 = 1e-9;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_round_sends_what_the_rule_sends(ways in some_ways(), segments in 1u64..200) {
        let mut view = situation(&ways, segments);
        let (sent, _, least) = plan(&view, segments);
        prop_assume!(least > CLEAR);
        prop_assert_eq!(round(&mut view), sent);
    }

    /// A path that has room takes each of its segments no later than when it is full, so that the last one of all
    /// arrives no later.
    #[test]
    fn room_makes_nothing_later(ways in some_ways(), segments in 1u64..200, extra in 1u32..20, at in 0usize..6) {
        let mut wider = ways.clone();
        wider[at % ways.len()].cwnd += extra;
        let [(_, before, _), (_, after, _)] = [&ways, &wider].map(|ways| plan(&situation(ways, segments), segments));
        // A path with neither data nor room does not count.
        prop_assert!(before == 0.0 || after <= before + CLEAR, "{} and {}", before, after);
    }

    #[test]
    fn a_path_more_makes_nothing_later(ways in some_ways(), segments in 1u64..200) {
        let [(_, with, _), (_, without, _)] =
            [&ways[..], &ways[1..]].map(|ways| plan(&situation(ways, segments), segments));
        prop_assert!(without == 0.0 || with <= without + CLEAR, "{} and {}", with, without);
    }

    /// So the end of a message changes nothing before it: what is left to full paths is left there with or without data behind it.
    #[test]
    fn what_lies_behind_changes_nothing_before(ways in some_ways(), segments in 1u64..100, more in 1u64..100) {
        let alone = round(&mut situation(&ways, segments));
        let mut longer = round(&mut situation(&ways, segments + more));
        longer.iter_mut().for_each(|path| path.retain(|number| *number < segments));
        prop_assert_eq!(longer, alone);
    }

    #[test]
    fn equal_paths_take_turns(way in a_way(), paths in 2u64..6, each in 1u64..20) {
        let (room, n) = (way.cwnd - way.in_flight, paths as usize);
        let taken = round(&mut situation(&vec![way; n], paths * each));
        for (path, numbers) in (0..paths).zip(taken) {
            let turns: Vec<u64> = (0..each.min(room.into())).map(|turn| turn * paths + path).collect();
            prop_assert_eq!(numbers, turns);
        }
    }

    /// In any state of the paths, even without an RTT, as backups, silent or in repair.
    #[test]
    fn it_waits_only_for_a_path_that_calls_again(
        ways in some_ways(),
        segments in 1u64..100,
        states in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()), 6),
    ) {
        let mut view = situation(&ways, segments);
        for (id, (sampled, usable, backup, repairs)) in (0u8..).map(PathId).zip(states) {
            let Some(p) = view.path_mut(id) else { continue };
            (p.usable, p.backup) = (usable, backup);
            p.recovery = if repairs { RecoveryPhase::Loss } else { RecoveryPhase::Open };
            if !sampled {
                (p.srtt, p.min_rtt) = (None, None);
            }
        }
        let (left, able) = (segments * MSS, view.candidates().any(PathView::eligible));
        round(&mut view);
        let waits = view.backlog().bytes() == left && able;
        prop_assert!(!waits || view.candidates().any(|p| !p.eligible() && view.may_wait_for(p.id)));
    }
}
