//! The two hosts: settings, scheduler, congestion control, and the application's plan.

use crate::class::Class;
use crate::luck::Luck;
use crate::pattern;
use anabranch_engine::schedule::PathPolicy;
use anabranch_engine::{DssWidth, FirstPath, RecoveryKind, RtoForm, Settings, TcpSettings};
use anabranch_plugin::registry::Kind;
use anabranch_units::Duration;

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// Settings of its connection.
    pub settings: Settings,
    /// Name of its scheduler in the registry, with suffix.
    pub scheduler: String,
    /// Parameters of the scheduler that differ from their defaults.
    pub parameters: Vec<(String, f64)>,
    /// Name of its congestion control in the registry.
    pub congestion: &'static str,
    /// The operator's policy per path.
    pub policies: Vec<PathPolicy>,
    /// The application's plan.
    pub plan: Plan,
    /// Whether it joins to announced addresses.
    pub accept_announced: bool,
    /// Paths that it requests as backups: a set of bits.
    pub backups: u32,
}

/// When an application ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As soon as everything is written.
    AtOnce,
    /// This long after that.
    After(Duration),
    /// After the peer's end; the last part of the bytes waits until then.
    AfterPeer,
}

/// When an application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As soon as data arrives.
    AtOnce,
    /// One piece per interval of this length.
    Slowly(Duration),
    /// From this time after the begin on.
    After(Duration),
}

/// The plan of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Bytes that it writes.
    pub bytes: u64,
    /// Bytes of each write.
    pub chunk: u64,
    /// Time between two writes.
    pub pause: Duration,
    /// Each write is a message.
    pub messages: bool,
    /// Writes before the connection is established.
    pub early: bool,
    /// How its stream ends.
    pub end: End,
    /// How it reads.
    pub reading: Reading,
}

impl Plan {
    /// Longest waits of the plan in all, beside those of the network.
    pub(crate) fn pauses(&self) -> Duration {
        let end = if let End::After(wait) = self.end { wait } else { Duration::ZERO };
        let reading = if let Reading::After(wait) = self.reading { wait } else { Duration::ZERO };
        self.pause * (self.bytes.div_ceil(self.chunk) + 1) + end + reading
    }

    /// Writes `bytes` at once, reads at once.
    pub(crate) fn simple(bytes: u64) -> Self {
        let (chunk, pause) = (bytes.max(1), Duration::ZERO);
        Self { bytes, chunk, pause, messages: false, early: false, end: End::AtOnce, reading: Reading::AtOnce }
    }
}

impl Party {
    /// The values that differ from the defaults, on one line.
    pub fn summary(&self) -> String {
        let plain = |plan| Self {
            settings: Settings::default(),
            scheduler: String::new(),
            parameters: Vec::new(),
            congestion: "",
            policies: Vec::new(),
            plan,
            accept_announced: false,
            backups: 0,
        };
        let (ours, usual) = (format!("{self:#?}"), format!("{:#?}", plain(Plan::simple(0))));
        let unlike = ours.lines().filter(|line| !usual.lines().any(|other| other == *line));
        unlike.map(str::trim).collect::<Vec<_>>().join(" ")
    }
}

/// The longest window of `Tiny`, bytes.
const TINY: u64 = 16 << 10;

/// Every scheduler with the suffixes it takes, minRTT first.
fn schedulers() -> &'static [String] {
    static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = vec!["minrtt".to_owned()];
        for entry in anabranch_schedulers::all() {
            names.push(entry.name.to_owned());
            if anabranch_schedulers::takes_suffix(entry) {
                names.extend(anabranch_schedulers::suffixes().iter().map(|s| format!("{}{}", entry.name, s.name)));
            }
        }
        names
    })
}

/// Names of schedulers and of congestion controls among which a seed chooses, counted from the registries' first. A plug-in that is
/// added behind them leaves every seed's case as it was when it was recorded; [`newcomers`] are played by name.
const RECORDED: (usize, usize) = (95, 16);

/// Schedulers and congestion controls among which no seed chooses.
pub fn newcomers() -> (&'static [String], Vec<&'static str>) {
    let congestion = anabranch_congestion::all().iter().skip(RECORDED.1).map(|entry| entry.name);
    (&schedulers()[RECORDED.0..], congestion.collect())
}

/// A scheduler's name.
pub(crate) fn scheduler(luck: &mut Luck<'_>) -> String {
    luck.pick(&schedulers()[..RECORDED.0]).clone()
}

/// Occasionally one of the scheduler's parameters, drawn from its range.
fn parameters(luck: &mut Luck<'_>, scheduler: &str) -> Vec<(String, f64)> {
    let Ok(resolved) = anabranch_schedulers::resolve(scheduler) else { return Vec::new() };
    let known: Vec<_> = resolved.parameters().collect();
    if known.is_empty() || !luck.chance(0.3) {
        return Vec::new();
    }
    let parameter = luck.pick(&known);
    let spread = |luck: &mut Luck<'_>| parameter.min + (parameter.max - parameter.min) * luck.unit();
    let value = match parameter.kind {
        Kind::Flag => luck.below(2) as f64,
        Kind::Whole => libm::floor(spread(luck)),
        Kind::Number => spread(luck),
    };
    let given = vec![(parameter.name.to_owned(), value)];
    // A draw may put a lower bound above its upper bound, and an unbounded range has no point to draw.
    if resolved.build(&given).is_ok() { given } else { Vec::new() }
}

/// A policy that an operator may set for a path.
fn policy(luck: &mut Luck<'_>) -> PathPolicy {
    PathPolicy {
        price: *luck.pick(&[0.0, 1e-9, 5e-9]),
        cap: luck.chance(0.3).then(|| luck.spread(100, 200_000)),
        weight: luck.chance(0.3).then(|| luck.spread_real(0.01, 100.0)),
    }
}

fn congestion(luck: &mut Luck<'_>) -> &'static str {
    luck.pick(&anabranch_congestion::all()[..RECORDED.1]).name
}

fn tcp(luck: &mut Luck<'_>) -> TcpSettings {
    let default = TcpSettings::default();
    let ms = Duration::from_millis;
    TcpSettings {
        recovery: *luck.pick(&[RecoveryKind::Rack, RecoveryKind::Rack, RecoveryKind::Sack]),
        rto_min: *luck.pick(&[default.rto_min, ms(10), ms(1000)]),
        rto_max: *luck.pick(&[default.rto_max, ms(4000), ms(60_000)]),
        rto_form: *luck.pick(&[RtoForm::Linux, RtoForm::Linux, RtoForm::Rfc6298]),
        initial_window: *luck.pick(&[10, 1, 2, 32]),
        abc_limit: *luck.pick(&[u32::MAX, 1, 2]),
        idle_restart: !luck.chance(0.2),
        delayed_ack: *luck.pick(&[default.delayed_ack, Duration::ZERO, ms(200), ms(1)]),
        quick_acks: *luck.pick(&[default.quick_acks, 0, 1]),
        pacing: luck.chance(0.2),
        nagle: !luck.chance(0.3),
        timestamps: !luck.chance(0.25),
        sack: !luck.chance(0.2),
        keep_alive: luck.chance(0.1).then(|| ms(10_000)),
        time_wait: *luck.pick(&[default.time_wait, ms(1000), ms(10)]),
        ..default
    }
}

fn settings(luck: &mut Luck<'_>, class: Class) -> Settings {
    let mut settings = any_settings(luck, class);
    match class {
        Class::Tiny => {
            settings.send_buffer = luck.spread(256, TINY);
            settings.recv_buffer = luck.spread(256, TINY);
        }
        Class::Wide => {
            let Settings { mss, send_buffer, recv_buffer, .. } = Settings::default();
            settings = Settings { mss: mss.min(luck.within(24, 32) as u32), send_buffer, recv_buffer, ..settings };
            settings.tcp.initial_window = *luck.pick(&[32, 10_000, 120_000, 200_000]);
            // Without SACK one lost segment is repaired in each round trip (RFC 6582 §3.2), and a hundred thousand may be lost.
            settings.tcp.sack = true;
        }
        Class::Bleach => settings.tcp.ecn = !luck.chance(0.1),
        Class::Clock => {
            settings.tcp.keep_alive = luck.chance(0.3).then(|| luck.time(3_600_000_000, 7_200_000_000));
            // A handshake outlasts the longest round trip.
            settings.tcp.rto_max = settings.tcp.rto_max.max(Duration::from_secs(60));
        }
        _ => {}
    }
    settings
}

fn any_settings(luck: &mut Luck<'_>, class: Class) -> Settings {
    let default = Settings::default();
    let wants_checksums = class.needs_checksums();
    let buffer = |luck: &mut Luck<'_>| match luck.below(3) {
        0 => default.recv_buffer,
        1 => luck.spread(3_000, 1 << 20),
        _ => luck.spread(256, 65_536),
    };
    Settings {
        tcp: tcp(luck),
        mptcp: class != Class::Plain && (wants_checksums || !luck.chance(0.02)),
        checksum: wants_checksums || luck.chance(0.3),
        dss: *luck.pick(&[DssWidth::Eight, DssWidth::Four]),
        mss: if luck.chance(0.5) { luck.spread(48, 1460) as u32 } else { default.mss },
        send_buffer: buffer(luck),
        recv_buffer: buffer(luck),
        // The race is drawn last, where the class has one.
        first_path: FirstPath::First,
        race_delay: Settings::RACE_DELAY,
        rejoin_after: *luck.pick(&[default.rejoin_after, Duration::from_millis(10)]),
        early_rescue: !luck.chance(0.2),
        sender_model: default.sender_model,
        receiver_model: default.receiver_model,
        mptcp_required: default.mptcp_required,
        orphan_timeout: default.orphan_timeout,
    }
}

/// A plan of few writes with long pauses, up to weeks long: longer than a timestamp is valid (24 days, RFC 7323 §5.5).
pub(crate) fn sparse(luck: &mut Luck<'_>, plan: Plan) -> Plan {
    let long = |luck: &mut Luck<'_>| luck.time(60_000_000, 40 * 86_400 * 1_000_000);
    let end = if plan.end == End::AtOnce && luck.chance(0.3) { End::After(long(luck)) } else { plan.end };
    let reading = if luck.chance(0.1) { Reading::After(long(luck)) } else { plan.reading };
    let chunk = plan.bytes.div_ceil(luck.within(1, 5)).max(1);
    Plan { chunk, pause: long(luck), end, reading, ..plan }
}

/// An application's plan. `fitting`: bytes that this network carries in a moderate number of packets.
fn plan(luck: &mut Luck<'_>, class: Class, fitting: u64) -> Plan {
    let bytes = if luck.chance(0.12) { 0 } else { luck.spread(1, 120_000).min(fitting) };
    let chunk = match luck.below(3) {
        0 => bytes.max(1),
        1 => luck.spread(1, 1 + bytes.max(1)).max(bytes / 200).max(1),
        _ => luck.within(1, 3000).max(bytes / 200).max(1),
    };
    let rests = luck.chance(0.3);
    let end = match luck.below(4) {
        0 | 1 => End::AtOnce,
        2 => End::AfterPeer,
        _ => End::After(luck.time(100, 5_000_000)),
    };
    // A path that the flood delays can be joined only while the connection lives.
    let end = if class == Class::Floods { End::After(Duration::from_secs(100)) } else { end };
    let reading = match luck.below(5) {
        0..=2 => Reading::AtOnce,
        3 => Reading::Slowly(luck.time(10, 5_000)),
        _ => Reading::After(luck.time(1_000, 20_000_000)),
    };
    let pause = if rests { luck.time(10, 300_000) } else { Duration::ZERO };
    Plan { bytes, chunk, pause, messages: luck.chance(0.2), early: luck.chance(0.5), end, reading }
}

/// Both hosts. At most one of them waits for the other's end.
pub(crate) fn both(luck: &mut Luck<'_>, class: Class, paths: usize) -> [Party; 2] {
    let settings = [(); 2].map(|()| settings(luck, class));
    let least = |of: fn(&Settings) -> u64| settings.iter().map(of).min().unwrap_or(0);
    let fitting = (500 * least(|s| s.mss.into())).min(150 * least(|s| s.recv_buffer)).min(pattern::MOST);
    let fitting = fitting.min(150 * least(|s| s.send_buffer));
    let mut parties = settings.map(|settings| {
        let scheduler = scheduler(luck);
        Party {
            settings,
            parameters: parameters(luck, &scheduler),
            scheduler,
            congestion: congestion(luck),
            policies: (0..paths).map(|_| policy(luck)).collect(),
            plan: plan(luck, class, fitting),
            accept_announced: luck.chance(0.5),
            backups: if luck.chance(0.1) { luck.below(1 << paths) as u32 } else { 0 },
        }
    });
    let [client, server] = &mut parties;
    if client.plan.end == End::AfterPeer && server.plan.end == End::AfterPeer {
        client.plan.end = End::AtOnce;
    }
    if class == Class::Wide {
        let writer = luck.pick(&[0, 1]);
        let party = &mut parties[*writer];
        party.plan = Plan::simple((u64::from(party.settings.mss) * luck.within(200_000, 260_000)).min(pattern::MOST));
    }
    parties
}
