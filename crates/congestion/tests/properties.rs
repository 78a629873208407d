//! Properties that every congestion control must keep under any sequence of events.

use anabranch_congestion::window::MAX_WINDOW;
use anabranch_congestion::{BuildError, all, build, find, single_path_form};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, RateSample};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant, PathId};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Join(u32),
    Leave,
    Ack {
        packets: u32,
        bytes: u64,
        limited: bool,
        may_grow: bool,
        round_ended: bool,
        lost: u32,
        rate: Option<RateSample>,
    },
    Loss(Loss),
    Undo,
    Idle {
        idle: Duration,
        rto: Duration,
    },
    See {
        srtt: Option<Duration>,
        mss: u32,
    },
    Hide,
}

/// A connection of up to four paths, some of which never join or have no view.
struct World {
    control: Box<dyn CongestionControl>,
    views: Vec<PathView>,
    now: Instant,
}

impl World {
    fn new(name: &str) -> Self {
        Self { control: build(name, &[]).expect("registered"), views: Vec::new(), now: Instant::ZERO }
    }

    fn step(&mut self, id: PathId, after: Duration, step: &Step) {
        self.now += after;
        let view = self.views.iter_mut().find(|v| v.id == id);
        match step {
            Step::Join(initial) => self.control.on_join(id, *initial),
            Step::Leave => self.control.on_leave(id),
            Step::Ack { packets, bytes, limited, may_grow, round_ended, lost, rate } => {
                let mut ack = Acked::default();
                (ack.now, ack.packets, ack.counted, ack.bytes) = (self.now, *packets, *packets, *bytes);
                (ack.cwnd_limited, ack.may_grow, ack.round_ended) = (*limited, *may_grow, *round_ended);
                (ack.lost, ack.rate) = (*lost, *rate);
                ack.rtt = view.and_then(|v| v.srtt);
                self.control.on_ack(id, &ack, &self.views);
            }
            Step::Loss(loss) => self.control.on_loss(id, self.now, *loss, &self.views),
            Step::Undo => self.control.on_undo(id, self.now),
            Step::Idle { idle, rto } => self.control.on_idle(id, self.now, *idle, *rto),
            Step::See { srtt, mss } => {
                let seen = PathView { srtt: *srtt, ..PathView::new(id, *mss) };
                match view {
                    Some(view) => *view = seen,
                    None => self.views.push(seen),
                }
                self.views.sort_by_key(|v| v.id);
            }
            Step::Hide => self.views.retain(|v| v.id != id),
        }
    }
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::Fast),
        Just(Loss::Marked),
        Just(Loss::Penalty),
        any::<bool>().prop_map(|again| Loss::Timeout { again })
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (1..3_000_000_u64).prop_map(Duration::from_micros),
        any::<u64>().prop_map(Duration::from_nanos),
    ]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..200_u32, 1 => any::<u32>()]
}

fn ack() -> impl Strategy<Value = Step> {
    let flags = (prop::bool::weighted(0.9), prop::bool::weighted(0.8), any::<bool>());
    (count(), any::<u64>(), flags, count(), prop::option::of(rate())).prop_map(
        |(packets, bytes, (limited, may_grow, round_ended), lost, rate)| Step::Ack {
            packets,
            bytes,
            limited,
            may_grow,
            round_ended,
            lost,
            rate,
        },
    )
}

fn rate() -> impl Strategy<Value = RateSample> {
    let counts = (prop_oneof![0..1000_u64, any::<u64>()], prop_oneof![0..1000_u64, any::<u64>()]);
    (counts, duration(), any::<bool>()).prop_map(|((delivered, prior_delivered), interval, app_limited)| RateSample {
        delivered,
        prior_delivered,
        interval: interval.max(Duration::from_nanos(1)),
        app_limited,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => count().prop_map(Step::Join),
        1 => Just(Step::Leave),
        12 => ack(),
        3 => loss().prop_map(Step::Loss),
        1 => Just(Step::Undo),
        1 => (duration(), duration()).prop_map(|(idle, rto)| Step::Idle { idle, rto }),
        3 => (prop::option::of(duration()), count()).prop_map(|(srtt, mss)| Step::See { srtt, mss }),
        1 => Just(Step::Hide),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(PathId, Duration, Step)>> {
    prop::collection::vec(((0..4_u8).prop_map(PathId), duration(), step()), 0..200)
}

/// Events that a connection with one path may see, with plausible values.
fn ordinary_steps() -> impl Strategy<Value = Vec<(Duration, Step)>> {
    let ordinary = prop_oneof![
        12 => (1..5_u32, prop::bool::weighted(0.95), prop::bool::weighted(0.9), any::<bool>()).prop_map(
            |(packets, limited, may_grow, round_ended)| {
                let bytes = u64::from(packets) * 1400;
                Step::Ack { packets, bytes, limited, may_grow, round_ended, lost: 0, rate: None }
            }
        ),
        1 => loss().prop_map(Step::Loss),
        1 => Just(Step::Undo),
        1 => (0..5_000_u64).prop_map(|ms| {
            Step::Idle { idle: Duration::from_millis(ms), rto: Duration::from_millis(300) }
        }),
        2 => (10..400_u64).prop_map(|ms| Step::See { srtt: Some(Duration::from_millis(ms)), mss: 1400 }),
    ];
    prop::collection::vec(((0..50_000_u64).prop_map(Duration::from_micros), ordinary), 1..600)
}

proptest! {
    #[test]
    fn windows_stay_within_bounds(steps in steps()) {
        for entry in all() {
            let mut world = World::new(entry.name);
            for (id, after, step) in &steps {
                world.step(*id, *after, step);
                for id in (0..5).map(PathId) {
                    let window = world.control.window(id);
                    prop_assert!((1..=MAX_WINDOW).contains(&window.cwnd), "{}: {window:?} after {step:?}", entry.name);
                    prop_assert!(window.ssthresh >= 1);
                }
            }
        }
    }

    #[test]
    fn windows_grow_only_when_allowed(steps in steps()) {
        for entry in all() {
            let mut world = World::new(entry.name);
            for (id, after, step) in &steps {
                let before = world.control.window(*id);
                world.step(*id, *after, step);
                let grew = world.control.window(*id).cwnd > before.cwnd;
                // A model of the path bounds the window independently of events.
                let by_model = world.control.is_rate_based() && matches!(step, Step::Ack { .. });
                let may = by_model
                    || matches!(step, Step::Ack { limited: true, may_grow: true, .. } | Step::Undo | Step::Join(_));
                prop_assert!(may || !grew, "{} grew from {before:?} on {step:?}", entry.name);
            }
        }
    }

    #[test]
    fn an_undo_restores(steps in steps(), timeout: bool) {
        let loss = if timeout { Loss::Timeout { again: false } } else { Loss::Fast };
        for entry in all() {
            let mut world = World::new(entry.name);
            for (id, after, step) in &steps {
                world.step(*id, *after, step);
            }
            for id in (0..4).map(PathId) {
                let before = world.control.window(id);
                world.step(id, Duration::ZERO, &Step::Loss(loss));
                world.step(id, Duration::ZERO, &Step::Undo);
                prop_assert_eq!(world.control.window(id), before, "{}", entry.name);
            }
        }
    }

    #[test]
    fn alone_every_control_is_its_single_path_form(steps in ordinary_steps()) {
        let id = PathId(0);
        let begin = [Step::See { srtt: Some(Duration::from_millis(30)), mss: 1400 }, Step::Join(10)];
        for entry in all().iter().filter(|e| single_path_form(e.name) != e.name) {
            let (mut coupled, mut single) = (World::new(entry.name), World::new(single_path_form(entry.name)));
            let begin = begin.iter().map(|s| (Duration::ZERO, s));
            for (after, step) in begin.chain(steps.iter().map(|(after, step)| (*after, step))) {
                coupled.step(id, after, step);
                single.step(id, after, step);
                prop_assert_eq!(coupled.control.window(id), single.control.window(id), "{}", entry.name);
            }
        }
    }
}

#[test]
fn paths_are_independent_without_coupling() {
    for name in all().iter().map(|e| e.name).filter(|name| single_path_form(name) == *name) {
        let mut world = World::new(name);
        for id in [3, 0, 1].map(PathId) {
            world.step(id, Duration::ZERO, &Step::Join(10));
        }
        world.step(PathId(3), Duration::ZERO, &Step::Loss(Loss::Timeout { again: false }));
        world.step(PathId(0), Duration::ZERO, &Step::Leave);
        let windows = [0, 1, 3].map(|id| world.control.window(PathId(id)).cwnd);
        assert_eq!(windows, [1, 10, 1], "{name}");
    }
}

#[test]
fn a_path_that_left_is_as_one_that_never_joined() {
    for entry in all() {
        let mut world = World::new(entry.name);
        for id in [0, 1].map(PathId) {
            world.step(id, Duration::ZERO, &Step::See { srtt: Some(Duration::from_millis(30)), mss: 1400 });
            world.step(id, Duration::ZERO, &Step::Join(10));
        }
        world.step(PathId(1), Duration::ZERO, &Step::Leave);
        assert_eq!(world.control.window(PathId(1)), world.control.window(PathId(2)), "{}", entry.name);
        assert_eq!(world.control.window(PathId(0)).cwnd, 10, "{}", entry.name);
    }
}

#[test]
fn the_registry_is_consistent() {
    let mut names: Vec<_> = all().iter().flat_map(|e| [e.name].into_iter().chain(e.aliases.iter().copied())).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two entries share a name");
    for entry in all() {
        let lacking = entry.lacking();
        assert!(lacking.is_empty(), "the page of `{}` is incomplete: {}", entry.name, lacking.join(", "));
        for alias in entry.aliases {
            assert_eq!(find(alias).map(|e| e.name), Some(entry.name));
            assert_eq!(single_path_form(alias), single_path_form(entry.name));
        }
        let form = single_path_form(entry.name);
        assert_eq!(single_path_form(form), form, "the form of {} is coupled itself", entry.name);
        for p in entry.parameters {
            assert!(p.min <= p.default && p.default <= p.max, "{} of {}", p.name, entry.name);
            build(entry.name, &[(p.name.to_owned(), p.max)]).expect("the greatest value is allowed");
        }
    }
    for (form, names) in [
        ("reno", "lia olia balia semicoupled coupled ewtcp epsilon desync uncoupled"),
        ("vegas", "wvegas"),
        ("veno", "mveno mpveno"),
        ("cubic", "cubic uncoupled-cubic"),
    ] {
        assert!(names.split(' ').all(|name| find(name).is_some() && single_path_form(name) == form), "{form}");
    }
}

#[test]
fn bad_names_and_values_are_refused_with_what_is_known() {
    let refused = |name: &str, parameter: &str, value: f64| {
        build(name, &[(parameter.to_owned(), value)]).expect_err("refused").to_string()
    };
    let told = refused("cubik", "c", 0.4);
    assert!(told.starts_with("no congestion control is called `cubik`; there are reno, cubic, lia, olia, "), "{told}");
    assert!(refused("cubic", "gamma", 1.0).ends_with("it has c, beta, fast_convergence, hystart, linux"));
    assert!(refused("reno", "c", 1.0).ends_with("it has none"));
    for value in [f64::NAN, f64::INFINITY, 0.0, 1.0] {
        let error = build("cubic", &[("beta".to_owned(), value)]).expect_err("refused");
        assert!(matches!(error, BuildError::OutOfRange { parameter: "beta", .. }));
    }
    assert!(refused("cubic", "hystart", 0.5).contains("not between"));
}
