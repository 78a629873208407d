//! Every scheduler with every congestion control delivers every byte, over random networks.
//!
//! In each network: the receiver gets every byte once and in order (the sink verifies them), both ends close in order,
//! no scheduler stalls. While data waits that a usable path could carry, a time without delivery is measured in the
//! largest retransmission timeout, back-off included, of a usable path. More than three of them need the loss of a
//! retransmission or two, so all but a few networks in a thousand stay below; eight are never exceeded.
//!
//! To run one network alone: `ANABRANCH_SEED=<seed>`; to run many:
//! `ANABRANCH_SEEDS=5000 cargo test --release -p anabranch-sim --test liveness`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

mod common;

use anabranch_sim::World;
use anabranch_trace::{CloseReason, Event, Origin, PathState, Recorder, Tee, WindowChange};
use anabranch_units::{Duration, Instant, PathId, Rng, Side};
use common::random::{random_policy, random_transfer, spread};
use common::{ADVERSARY, Delivered, Transfer, asked};

/// The interval at which the paths are checked.
const STEP: Duration = Duration::from_millis(20);
/// Far longer than any of these networks needs.
const LIMIT: Instant = Instant::from_millis(2 * 3600 * 1000);
/// Networks per pair of scheduler and congestion control in a commit's test run.
const SEEDS_PER_PAIR: u64 = 10;
/// Networks per scheduler that takes over during a transfer in a commit's test run.
const SWITCHED_PER_SCHEDULER: u64 = 40;
/// Networks, each with scheduler and congestion control, for defects that no smaller test shows: a FIN before data that
/// OTIAS had taken back; a full queue behind the window and lower data unbound; lower data behind half a megabyte of
/// rescues; a join half-open at the end.
const FOUND: [(u64, &str, &str); 4] =
    [(81_156, "otias", "reno"), (13_335, ADVERSARY, "olia"), (50_286, "otias", "lia"), (9_879, "minrtt+or", "lia")];
/// Timeouts without a delivery: the usual maximum, and the limit.
const USUAL_GAP: f64 = 3.0;
const LONGEST_GAP: f64 = 8.0;
/// The limit where other causes delay data: without SACK one loss is repaired per round trip (RFC 6582), and schedulers
/// that bind data long before it leaves let it wait in their queues.
const LONGEST_GAP_BEHIND_QUEUES: f64 = 50.0;

/// The events of both ends.
#[derive(Debug, Default)]
struct Watch {
    written: u64,
    delivered: u64,
    last_delivery: Instant,
    stalls: u32,
    fallbacks: u32,
    /// Schedulers that have taken over at the server.
    switches: u32,
    /// How often each of the server's subflows has doubled its timeout: once per timeout since its last RTT sample (RFC
    /// 6298 §5.7: an acknowledgment without a sample ends no back-off).
    backoff: [u32; PathId::LIMIT],
    /// When the server's subflows were first established.
    up: Vec<(PathId, Instant)>,
    ends: Vec<(Side, CloseReason)>,
    done: Instant,
}

impl Recorder for Watch {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        let path = origin.path;
        match (origin.host, event) {
            (Some(Side::Client), Event::Delivered(range)) => {
                assert_eq!(range.start, self.delivered, "delivered out of order");
                self.delivered = range.end;
                self.last_delivery = now;
            }
            (Some(Side::Server), Event::Written(range)) => self.written = range.end,
            (Some(Side::Server), Event::Timeout { .. }) => self.backoff[path.index()] += 1,
            (Some(Side::Server), Event::Window(WindowChange { rtt: Some(_), .. })) => self.backoff[path.index()] = 0,
            (Some(Side::Server), Event::Path(PathState::Established)) if self.up.iter().all(|(id, _)| *id != path) => {
                self.up.push((path, now));
            }
            (_, Event::Stall) => self.stalls += 1,
            (_, Event::Fallback) => self.fallbacks += 1,
            (Some(Side::Server), Event::Scheduler(_)) => self.switches += 1,
            (Some(side), Event::Closed(why)) => {
                self.ends.push((side, *why));
                self.done = now;
            }
            _ => {}
        }
    }
}

/// The present time without delivery, and the longest so far in multiples of the timeout.
#[derive(Debug, Default)]
struct Gap {
    since: Instant,
    timeout: Duration,
    worst: f64,
}

impl Gap {
    /// Checks the sender.
    fn look(&mut self, world: &World, watch: &Watch) {
        let now = world.now();
        let in_force = |p: &anabranch_engine::schedule::PathView| p.rto * (1 << watch.backoff[p.id.index()].min(16));
        let paths = world.connection(0, Side::Server).map_or(&[][..], |c| c.view().paths());
        let largest = paths.iter().filter(|p| p.usable).map(in_force).max();
        let (Some(largest), true) = (largest, watch.delivered < watch.written) else {
            (self.since, self.timeout) = (now, Duration::ZERO);
            return;
        };
        if watch.last_delivery > self.since {
            (self.since, self.timeout) = (watch.last_delivery, Duration::ZERO);
        }
        self.timeout = self.timeout.max(largest);
        self.worst = self.worst.max(now.since(self.since).as_secs_f64() / self.timeout.as_secs_f64());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Delivered,
    /// Delivered as plain TCP.
    FellBack,
    /// The handshake failed, or the connection had fallen back to plain TCP over a path that died.
    Failed,
}

/// Runs until both ends are closed; returns the outcome, or the violation.
fn drive(transfer: &Transfer, watch: &mut Watch) -> Result<(Outcome, f64), String> {
    let all: Vec<_> = (0..transfer.paths.len()).map(|n| (PathId(n as u8), false)).collect();
    drive_over(transfer, &all, watch)
}

/// As [`drive`], with some paths as backups.
fn drive_over(transfer: &Transfer, over: &[(PathId, bool)], watch: &mut Watch) -> Result<(Outcome, f64), String> {
    let size = transfer.size.expect("sized");
    let mut flow = transfer.flow(0, over);
    // The run continues until both ends are closed.
    flow.awaited = false;
    let mut world = transfer.world_of(vec![flow]);
    let mut log = Delivered { verbose: asked("SHOW").is_some(), ..Delivered::default() };
    let mut gap = Gap::default();
    while world.now() < LIMIT {
        let mut both = Tee(&mut *watch, &mut log);
        world.run(world.now() + STEP, &mut both).map_err(|stuck| format!("{stuck} at {}", world.now()))?;
        gap.look(&world, watch);
        if gap.worst > longest_gap(transfer) {
            return Err(format!("nothing delivered for {:.1} timeouts up to {}", gap.worst, world.now()));
        }
        if watch.stalls > 0 {
            return Err(format!("a stall before {}", world.now()));
        }
        let closed = |side| watch.ends.iter().any(|(s, _)| *s == side);
        let lone = watch.ends.len() == 1 && world.now() > watch.done + Duration::from_secs(3600);
        if closed(Side::Client) && closed(Side::Server) || lone {
            return Ok((outcome(watch, size)?, gap.worst));
        }
    }
    Err(format!("{} of {size} bytes delivered after {LIMIT}, ended: {:?}", watch.delivered, watch.ends))
}

fn longest_gap(transfer: &Transfer) -> f64 {
    let pulls =
        |name: &str| anabranch_schedulers::resolve(name).is_ok_and(|n| anabranch_schedulers::takes_suffix(n.base));
    let pulls = pulls(&transfer.scheduler) && transfer.switches.iter().all(|(_, name)| pulls(name));
    if pulls && transfer.settings.tcp.sack { LONGEST_GAP } else { LONGEST_GAP_BEHIND_QUEUES }
}

fn outcome(watch: &Watch, size: u64) -> Result<Outcome, String> {
    let in_order = watch.ends.iter().all(|(_, why)| *why == CloseReason::Finished) && watch.ends.len() == 2;
    match (watch.delivered == size, watch.fallbacks > 0) {
        (true, fell_back) if in_order => Ok(if fell_back { Outcome::FellBack } else { Outcome::Delivered }),
        (false, true) => Ok(Outcome::Failed),
        (false, false) if watch.written == 0 => Ok(Outcome::Failed),
        _ => Err(format!("{} of {size} bytes delivered, ended {:?}", watch.delivered, watch.ends)),
    }
}

/// Lets a path die for good while another one carries a subflow, if the network has such a time.
fn kill_a_path(transfer: &mut Transfer, watch: &Watch) {
    let mut rng = Rng::stream(transfer.seed, "death");
    let [.., (_, second)] = watch.up[..] else { return };
    if watch.up.len() < 2 || watch.fallbacks > 0 || second >= watch.last_delivery {
        return;
    }
    let (victim, _) = watch.up[rng.below(watch.up.len() as u64) as usize];
    let rest = watch.last_delivery.since(second).as_nanos();
    let at = second + Duration::from_nanos(rng.below(rest));
    let spec = &mut transfer.paths[victim.index()];
    for way in [&mut spec.down, &mut spec.up] {
        way.outages.retain(|(from, _)| *from < at);
        if let Some(last) = way.outages.last_mut() {
            last.1 = last.1.min(at);
        }
        way.outages.push((at, Instant::MAX));
    }
}

fn try_network(seed: u64, scheduler: &str, congestion: &str) -> Result<(Outcome, f64), String> {
    let mut transfer = random_transfer(seed, scheduler, congestion);
    let mut watch = Watch::default();
    let mut outcome = drive(&transfer, &mut watch);
    if seed.is_multiple_of(3) && outcome.is_ok() && watch.up.len() > 1 {
        kill_a_path(&mut transfer, &watch);
        watch = Watch::default();
        outcome = drive(&transfer, &mut watch);
    }
    outcome.map_err(|wrong| format!("seed {seed}, {scheduler}, {congestion}: {wrong}\n  {watch:?}"))
}

/// Every scheduler of the registry, with each suffix that it takes.
fn schedulers() -> Vec<String> {
    let mut names = vec![ADVERSARY.to_string()];
    for entry in anabranch_schedulers::all() {
        names.push(entry.name.into());
        if anabranch_schedulers::takes_suffix(entry) {
            names.extend(anabranch_schedulers::suffixes().iter().map(|s| format!("{}{}", entry.name, s.name)));
        }
    }
    names
}

fn number(name: &str) -> Option<u64> {
    asked(name).map(|n| n.parse().expect("a number"))
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    let schedulers = schedulers();
    let congestion = anabranch_congestion::all();
    let pairs = (schedulers.len() * congestion.len()) as u64;
    let pair = |seed: u64| {
        let scheduler = schedulers[(seed % schedulers.len() as u64) as usize].as_str();
        (seed, scheduler, congestion[(seed / schedulers.len() as u64) as usize % congestion.len()].name)
    };
    let networks: Vec<_> = match number("ANABRANCH_SEED") {
        Some(seed) => vec![pair(seed)],
        None => (0..number("ANABRANCH_SEEDS").unwrap_or(pairs * SEEDS_PER_PAIR)).map(pair).chain(FOUND).collect(),
    };
    let (mut outcomes, mut gaps, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (seed, scheduler, congestion) in networks {
        match try_network(seed, scheduler, congestion) {
            Ok((outcome, gap)) => {
                outcomes.push(outcome);
                gaps.extend((gap > USUAL_GAP).then_some((seed, gap)));
            }
            Err(what) => wrong.push(what),
        }
    }
    if let Some(seed) = number("ANABRANCH_SEED") {
        println!("{:#?}", random_transfer(seed, "as above", "as above"));
    }
    let share = |of| outcomes.iter().filter(|o| **o == of).count() as f64 / (outcomes.len() + wrong.len()) as f64;
    let [fell_back, failed] = [Outcome::FellBack, Outcome::Failed].map(share);
    println!("{} networks: {fell_back:.5} fell back, {failed:.5} failed", outcomes.len());
    println!("{} had gaps of more than {USUAL_GAP} timeouts: {gaps:.1?}", gaps.len());
    assert!(wrong.is_empty(), "{} networks failed:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        number("ANABRANCH_SEED").is_some() || fell_back < 0.05 && failed < 0.01 && gaps.len() * 100 <= outcomes.len()
    );
}

/// Operators' schedulers with random parameters, prices, caps, weights and backups.
fn operated(seed: u64) -> (Transfer, Vec<(PathId, bool)>) {
    let mut rng = Rng::stream(seed, "operator");
    let (scheduler, parameter) = match seed % 3 {
        0 => ("cost", Some(("deadline", spread(&mut rng, 0.001, 86_400.0)))),
        1 => ("active-backup", Some(("updelay", spread(&mut rng, 0.001, 10.0)))),
        _ => ("weighted", None),
    };
    let mut transfer = random_transfer(seed, scheduler, "cubic");
    transfer.parameters = parameter.into_iter().map(|(name, value)| (name.into(), value)).collect();
    transfer.policy = transfer.paths.iter().map(|_| random_policy(&mut rng)).collect();
    let over = (0..transfer.paths.len()).map(|n| (PathId(n as u8), transfer.settings.mptcp && rng.chance(0.3)));
    let over = over.collect();
    (transfer, over)
}

#[test]
fn operators_rules_bring_every_byte_home() {
    let networks = number("ANABRANCH_SEEDS").unwrap_or(3000);
    let seeds = number("ANABRANCH_SEED").map_or(0..networks, |seed| seed..seed + 1);
    let (mut wrong, mut gaps) = (Vec::new(), 0);
    for seed in seeds {
        let (transfer, over) = operated(seed);
        match drive_over(&transfer, &over, &mut Watch::default()) {
            Ok((_, gap)) => gaps += usize::from(gap > USUAL_GAP),
            Err(what) => wrong.push(format!("seed {seed}: {what}\n  {transfer:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} networks failed:\n{}", wrong.len(), wrong.join("\n"));
    assert!(gaps as u64 * 50 <= networks, "{gaps} had gaps of more than {USUAL_GAP} timeouts");
}

/// A connection whose scheduler changes up to a dozen times.
fn switching(seed: u64, schedulers: &[String]) -> Transfer {
    let mut rng = Rng::stream(seed, "switches");
    let mut any = || schedulers[rng.below(schedulers.len() as u64) as usize].clone();
    let (first, congestion) = (any(), ["cubic", "olia", "lia"][seed as usize % 3]);
    let names: Vec<String> = (0..12).map(|_| any()).collect();
    let mut transfer = random_transfer(seed, &first, congestion);
    let times = names.into_iter().map(|name| (spread(&mut rng, 30.0, 20_000.0) as u64, name));
    transfer.switches = times.map(|(at, name)| (Instant::from_millis(at), name)).collect();
    transfer
}

#[test]
fn schedulers_take_over_in_mid_transfer() {
    let schedulers = schedulers();
    let networks = number("ANABRANCH_SEEDS").unwrap_or(schedulers.len() as u64 * SWITCHED_PER_SCHEDULER);
    let seeds = number("ANABRANCH_SEED").map_or(0..networks, |seed| seed..seed + 1);
    let (mut wrong, mut switches) = (Vec::new(), 0);
    for seed in seeds.clone() {
        let transfer = switching(seed, &schedulers);
        let mut watch = Watch::default();
        if let Err(what) = drive(&transfer, &mut watch) {
            wrong.push(format!("seed {seed}: {what}\n  {} {:?}\n  {watch:?}", transfer.scheduler, transfer.switches));
        }
        switches += u64::from(watch.switches);
    }
    assert!(wrong.is_empty(), "{} networks failed:\n{}", wrong.len(), wrong.join("\n"));
    assert!(switches >= 3 * (seeds.end - seeds.start), "only {switches} took over");
}
