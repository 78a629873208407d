//! Random networks, each a function of its seed.

use super::{Transfer, ms, path};
use anabranch_engine::schedule::PathPolicy;
use anabranch_engine::{
    AckCounting, BufferAccounting, DssWidth, InitialThreshold, LimitedDecay, RecoveryKind, RtoForm, Settings,
    TcpSettings,
};
use anabranch_network::{
    ArqSpec, Bottleneck, Change, DelayDistribution, Discipline, JitterSpec, LossSpec, PathSpec, Place, QueueSpec,
    RadioChange, ReorderSpec, SlotsSpec, WakeSpec, WaySpec,
};
use anabranch_units::{Direction, Duration, Instant, Rate, Rng};

/// Log-uniform between `low` and `high`.
pub fn spread(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, rng.unit())
}

fn within(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high - low + 1)
}

/// A probability: mostly zero, otherwise log-uniform from one in a thousand to `most`.
fn rarely(rng: &mut Rng, how_often: f64, most: f64) -> f64 {
    if rng.chance(how_often) { spread(rng, 0.001, most) } else { 0.0 }
}

fn random_loss(rng: &mut Rng) -> LossSpec {
    match rng.below(4) {
        0 => LossSpec::None,
        1 | 2 => LossSpec::Bernoulli(spread(rng, 0.0005, 0.2)),
        // In the bad state up to half is lost, for 20 packets on average; at most every fourth packet is in it.
        _ => LossSpec::GilbertElliott { p: spread(rng, 0.001, 0.016), r: 0.05, h: 0.5 + 0.5 * rng.unit(), k: 1.0 },
    }
}

fn impair(rng: &mut Rng, way: &mut WaySpec) {
    way.loss = random_loss(rng);
    way.reorder = ReorderSpec { probability: rarely(rng, 0.3, 0.2), by: ms(within(rng, 1, 60)) };
    way.duplicate = rarely(rng, 0.2, 0.1);
    way.corrupt = rarely(rng, 0.2, 0.05);
    let mut from = 0;
    while rng.chance(0.2) {
        from += within(rng, 200, 8_000);
        let until = from + within(rng, 10, 4_000);
        way.outages.push((Instant::from_millis(from), Instant::from_millis(until)));
        from = until;
    }
}

fn random_path(rng: &mut Rng, n: usize) -> PathSpec {
    let kbit = spread(rng, 100.0, 100_000.0) as u64;
    let delay = spread(rng, 1.0, 300.0) as u64;
    // From two packets up to about twice the path's bandwidth-delay product.
    let content = kbit * delay / 12_000;
    let queue = spread(rng, 2.0, 20.0 + 2.0 * content as f64) as u32;
    let mut p = path(&format!("p{n}"), kbit, delay, queue);
    if rng.chance(0.7) {
        impair(rng, &mut p.down);
    }
    if rng.chance(0.4) {
        impair(rng, &mut p.up);
    }
    p
}

/// Often wider than the delay, and free in every second case.
fn random_jitter(rng: &mut Rng) -> JitterSpec {
    use DelayDistribution::{Normal, Pareto, ParetoNormal, Uniform};
    let distribution = [Uniform, Normal, Pareto, ParetoNormal][rng.below(4) as usize].clone();
    JitterSpec { spread: ms(within(rng, 1, 60)), correlation: rng.unit(), distribution, free: rng.chance(0.5) }
}

fn random_layer(rng: &mut Rng) -> RadioChange {
    match rng.below(4) {
        0 => RadioChange::Arq(ArqSpec {
            loss: spread(rng, 0.01, 0.5),
            attempts: rng.chance(0.5).then(|| within(rng, 1, 8) as u16),
            delay: ms(within(rng, 0, 60)),
            free: rng.chance(0.3),
        }),
        1 => RadioChange::Aggregate(ms(within(rng, 0, 30))),
        2 => RadioChange::Wake(WakeSpec { idle: ms(within(rng, 200, 2_000)), delay: ms(within(rng, 0, 500)) }),
        _ => RadioChange::Slots(SlotsSpec {
            every: ms(within(rng, 2_000, 15_000)),
            step: ms(within(rng, 0, 30)),
            loss: rng.unit(),
            burst: ms(within(rng, 0, 500)),
        }),
    }
}

/// Layers under links, from a stream of their own: the rest of a transfer is as it is without them.
fn add_layers(seed: u64, timeline: &mut Vec<(Instant, Change)>, paths: usize) {
    let rng = &mut Rng::stream(seed, "layers");
    while rng.chance(0.3) {
        let (on, at) = (rng.below(paths as u64) as usize, Instant::from_millis(within(rng, 0, 5_000)));
        let way = if rng.chance(0.7) { Direction::Down } else { Direction::Up };
        timeline.push((at, Change::Radio(on, way, random_layer(rng))));
    }
}

fn random_change(rng: &mut Rng, paths: usize) -> (Instant, Change) {
    let at = Instant::from_millis(within(rng, 100, 20_000));
    let on = rng.below(paths as u64) as usize;
    let way = if rng.chance(0.7) { Direction::Down } else { Direction::Up };
    let change = match rng.below(4) {
        0 => Change::Rate(Place::Path(on), way, Rate::from_bps(spread(rng, 1e5, 1e8) as u64)),
        1 => Change::Delay(on, way, ms(spread(rng, 1.0, 300.0) as u64)),
        2 => Change::Jitter(on, way, random_jitter(rng)),
        _ => Change::Loss(on, way, random_loss(rng)),
    };
    (at, change)
}

fn random_settings(rng: &mut Rng, paths: usize) -> Settings {
    let mut settings = Settings::default();
    if rng.chance(0.5) {
        settings.recv_buffer = spread(rng, 8.0 * 1400.0, 4e6) as u64;
    }
    if rng.chance(0.3) {
        settings.send_buffer = spread(rng, 8.0 * 1400.0, 4e6) as u64;
    }
    settings.mptcp = paths > 1 || rng.chance(0.5);
    settings.checksum = rng.chance(0.2);
    let tcp = &mut settings.tcp;
    tcp.recovery = if rng.chance(0.3) { RecoveryKind::Sack } else { RecoveryKind::Rack };
    tcp.rto_form = if rng.chance(0.2) { RtoForm::Rfc6298 } else { RtoForm::Linux };
    tcp.delayed_ack = if rng.chance(0.2) { Duration::ZERO } else { tcp.delayed_ack };
    tcp.idle_restart = rng.chance(0.8);
    tcp.pacing = rng.chance(0.2);
    tcp.nagle = rng.chance(0.8);
    tcp.sack = rng.chance(0.9);
    tcp.timestamps = rng.chance(0.9);
    settings
}

/// A policy that an operator may set for a path.
pub fn random_policy(rng: &mut Rng) -> PathPolicy {
    PathPolicy {
        price: [0.0, 1e-9, 5e-9][rng.below(3) as usize],
        cap: rng.chance(0.5).then(|| spread(rng, 1e3, 2e6) as u64),
        weight: rng.chance(0.5).then(|| spread(rng, 0.01, 100.0)),
    }
}

/// The transfer with this seed; the caller names scheduler and congestion control.
pub fn random_transfer(seed: u64, scheduler: &str, congestion: &str) -> Transfer {
    let mut rng = Rng::stream(seed, "liveness");
    let count = within(&mut rng, 1, 4) as usize;
    let mut transfer = Transfer::new((0..count).map(|n| random_path(&mut rng, n)).collect());
    transfer.seed = seed;
    transfer.scheduler = scheduler.into();
    transfer.congestion = congestion.into();
    transfer.size = Some(spread(&mut rng, 1e4, 2e6) as u64);
    transfer.settings = random_settings(&mut rng, count);
    while rng.chance(0.3) {
        transfer.timeline.push(random_change(&mut rng, count));
    }
    add_layers(seed, &mut transfer.timeline, count);
    if rng.chance(0.3) {
        transfer.settings.dss = DssWidth::Four;
    }
    if rng.chance(0.3) {
        older_stack(&mut rng, &mut transfer.settings.tcp);
    }
    manage_queues(&mut Rng::stream(seed, "liveness.queues"), &mut transfer.paths);
    transfer
}

/// Some queues are managed, by any discipline of the registry.
fn manage_queues(rng: &mut Rng, paths: &mut [PathSpec]) {
    let all: Vec<Discipline> = Discipline::all().collect();
    for way in paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
        if let (Bottleneck::Own(own), true) = (&mut way.bottleneck, rng.chance(0.2)) {
            own.queue = QueueSpec::Managed(all[rng.below(all.len() as u64) as usize], own.queue.limit());
        }
    }
}

/// Settings of older stacks. Windows per subflow are left out: when a path dies, they may close the others' (Raiciu et
/// al., NSDI 2012, §4.2).
fn older_stack(rng: &mut Rng, tcp: &mut TcpSettings) {
    if rng.chance(0.5) {
        tcp.recovery = RecoveryKind::Fack;
    }
    tcp.tail_loss_probe = [None, Some(true), Some(false)][rng.below(3) as usize];
    tcp.abc_limit = if rng.chance(0.3) { 1 } else { u32::MAX };
    tcp.ack_counting = if rng.chance(0.5) { AckCounting::AcksInAvoidance } else { AckCounting::Packets };
    tcp.cwnd_slack = if rng.chance(0.3) { 3 } else { 0 };
    tcp.slow_start_at_threshold = rng.chance(0.3);
    tcp.initial_ssthresh = rng.chance(0.3).then_some(InitialThreshold::Bytes(65_535));
    tcp.limited_decay = [LimitedDecay::None, LimitedDecay::Rfc2861, LimitedDecay::Linux][rng.below(3) as usize];
    tcp.buffer_accounting = if rng.chance(0.4) { BufferAccounting::Truesize } else { BufferAccounting::Payload };
    tcp.autotune = rng.chance(0.4);
}
