//! The meaning of scenario files.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

mod common;

use anabranch_engine::schedule::PathPolicy;
use anabranch_engine::{
    AckCounting, BufferAccounting, DssWidth, InitialThreshold, LimitedDecay, ReceiveWindow, RecoveryKind, RtoForm,
    Settings, TcpSettings,
};
use anabranch_network::{
    BehindChange, Bottleneck, BucketSpec, CapacitySpec, Change, CodelSpec, DelayDistribution, DelayTable, DropTail,
    JitterSpec, LossSpec, Place, QueueSpec, RedSpec, ReorderSpec, Threshold, WaySpec,
};
use anabranch_scenario::{
    Arrivals, ConnectionsPer, CrossData, CrossKind, Distribution, Document, ERAS, Fallback, Host, NoFiles, ObjectSizes,
    Over, Override, PathOptions, PlugIn, Scenario, Source, TimeRange, TimelineChange, TimelineEntry, Traffic,
    TrafficKind, full_packet, read, swept,
};
use anabranch_units::{Direction, Duration, Instant, PlaybackRule, Rate, Side, TrafficDirection};
use common::{Folder, data, files, root};
use sha2::{Digest, Sha256};
use std::fs;

const PATH: &str = "[[path]]\nname = 'wlan'\nrate = '25mbit'\ndelay = '25ms'\n";

fn parse(text: &str) -> Document {
    with(text, &[])
}

fn with(text: &str, set: &[&str]) -> Document {
    let overrides: Vec<_> = set.iter().map(|set| Override::parse("--set", set)).collect();
    let source = Source { name: "folder/test.toml".into(), text: text.into() };
    read(&source, &overrides, &Folder(data())).unwrap_or_else(|wrong| panic!("{wrong:#?}"))
}

fn one_path(keys: &str) -> Scenario {
    parse(&format!("duration = '10s'\n{PATH}{keys}")).scenario
}

fn down(scenario: &Scenario) -> &WaySpec {
    &scenario.topology.paths[0].down
}

fn up(scenario: &Scenario) -> &WaySpec {
    &scenario.topology.paths[0].up
}

fn queue(way: &WaySpec) -> QueueSpec {
    match &way.bottleneck {
        Bottleneck::Own(own) => own.queue,
        Bottleneck::Route(_) => panic!("shared"),
    }
}

fn rate(way: &WaySpec) -> Rate {
    match &way.bottleneck {
        Bottleneck::Own(own) => match own.capacity {
            CapacitySpec::Fixed(rate) => rate,
            _ => panic!("not a plain rate"),
        },
        Bottleneck::Route(_) => panic!("shared"),
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn what_is_not_written_has_the_documented_default() {
    let s = one_path("");
    assert_eq!(s.name, "test");
    assert_eq!((s.seed, s.repeat, s.warmup), (1, 1, Duration::ZERO));
    assert_eq!((s.start, s.start_jitter), (Duration::ZERO, Duration::ZERO));
    assert_eq!((s.scheduler.name.as_str(), s.congestion.name.as_str()), ("minrtt", "cubic"));
    assert_eq!(s.settings, Settings::default());
    assert_eq!((s.hosts.sender, s.hosts.receiver, s.hosts.ip), (Host::Engine, Host::Engine, 4));
    assert_eq!(s.traffic, [TrafficKind::Bulk { size: None }.into()]);
    assert_eq!(s.paths, [PathOptions::default()]);
}

/// The table's default of a key is the meaning of a file without it.
#[test]
fn a_default_that_is_written_changes_nothing() {
    let text = format!("duration = '10s'\n{PATH}");
    let plain = with(&text, &[]).scenario;
    let mut written = 0;
    for key in anabranch_scenario::keys() {
        let Fallback::Value(default) = &key.fallback else { continue };
        let name = match key.section.name() {
            section @ ("" | "connection" | "tcp" | "hosts") => {
                [section, key.name].join(".").trim_matches('.').to_owned()
            }
            "path" if key.name != "trace_start" => format!("path.wlan.{}", key.name),
            _ => continue,
        };
        assert_eq!(with(&text, &[&format!("{name}={default}")]).scenario, plain, "{name}");
        written += 1;
    }
    assert!(written > 50, "{written}");
}

#[test]
fn every_tcp_key_reaches_its_setting() {
    let text = "duration = '1s'\n[tcp]\nrecovery = 'sack'\nrto_min = '1ms'\nrto_max = '2s'\nrto_initial = '3s'\n\
                rto_form = 'rfc6298'\ninitial_window = 4\nabc_limit = 2\nidle_restart = false\ndelayed_ack = '5ms'\nquick_acks = 3\n\
                pacing = true\nnagle = false\ntimestamps = false\nsack = false\necn = true\nsyn_retries = 6\nretries = 7\nkeep_alive = '8s'\n\
                time_wait = '9s'\n[connection]\nmss = '536B'\nchecksum = true\ndss = 4\nsend_buffer = 100000\n\
                recv_buffer = '200KB'\nrejoin_after = '10s'\norphan_timeout = '11s'\nearly_rescue = false\nmptcp = false\n";
    let settings = parse(&format!("{text}{PATH}")).scenario.settings;
    let tcp = &settings.tcp;
    assert_eq!((tcp.recovery, tcp.rto_form), (RecoveryKind::Sack, RtoForm::Rfc6298));
    let waits = [settings.rejoin_after, settings.orphan_timeout];
    assert_eq!(
        [tcp.rto_max, tcp.rto_initial, tcp.keep_alive.unwrap(), tcp.time_wait],
        [2, 3, 8, 9].map(Duration::from_secs)
    );
    assert_eq!(waits, [10, 11].map(Duration::from_secs));
    assert_eq!([tcp.rto_min, tcp.delayed_ack], [1, 5].map(Duration::from_millis));
    assert_eq!((tcp.initial_window, tcp.quick_acks, tcp.syn_retries, tcp.retries), (4, 3, 6, 7));
    assert_eq!(tcp.abc_limit, 2);
    let flags =
        [tcp.idle_restart, tcp.pacing, tcp.nagle, tcp.timestamps, tcp.sack, tcp.ecn, settings.checksum, settings.mptcp];
    assert_eq!(flags, [false, true, false, false, false, true, true, false]);
    assert_eq!(settings.dss, DssWidth::Four);
    assert_eq!((settings.mss, settings.send_buffer, settings.recv_buffer), (536, 100_000, 200_000));
}

#[test]
fn keys_of_older_stacks_reach_their_settings_and_read_back() {
    let tcp = |lines: &str| {
        let document = parse(&format!("duration = '1s'\n[tcp]\n{lines}\n{PATH}"));
        assert_eq!(document.scenario, again(&document, Folder(data())).scenario, "{lines}");
        document.scenario.settings.tcp
    };
    let usual = TcpSettings::default;
    for (lines, expected) in [
        ("", usual()),
        (
            "recovery = 'fack'\ntail_loss_probe = true",
            TcpSettings { recovery: RecoveryKind::Fack, tail_loss_probe: Some(true), ..usual() },
        ),
        ("tail_loss_probe = false", TcpSettings { tail_loss_probe: Some(false), ..usual() }),
        ("ack_counting = 'acks-in-avoidance'", TcpSettings { ack_counting: AckCounting::AcksInAvoidance, ..usual() }),
        ("cwnd_slack = 3", TcpSettings { cwnd_slack: 3, ..usual() }),
        ("slow_start_at_threshold = true", TcpSettings { slow_start_at_threshold: true, ..usual() }),
        (
            "initial_ssthresh = '65535B'",
            TcpSettings { initial_ssthresh: Some(InitialThreshold::Bytes(65_535)), ..usual() },
        ),
        ("initial_ssthresh = 20", TcpSettings { initial_ssthresh: Some(InitialThreshold::Packets(20)), ..usual() }),
        ("limited_decay = 'rfc2861'", TcpSettings { limited_decay: LimitedDecay::Rfc2861, ..usual() }),
        ("receive_window = 'subflow'", TcpSettings { receive_window: ReceiveWindow::Subflow, ..usual() }),
        ("buffer_accounting = 'truesize'", TcpSettings { buffer_accounting: BufferAccounting::Truesize, ..usual() }),
        ("autotune = true", TcpSettings { autotune: true, ..usual() }),
        ("limited_decay = 'linux'", TcpSettings { limited_decay: LimitedDecay::Linux, ..usual() }),
    ] {
        assert_eq!(tcp(lines), expected, "{lines}");
    }
}

#[test]
fn an_era_puts_its_values_in_place_of_the_defaults_and_single_keys_override_them() {
    let read = |lines: &str| parse(&format!("duration = '1s'\n[tcp]\n{lines}\n{PATH}"));
    for era in ERAS {
        // Equivalent to each of its keys in the file.
        let spelt: Vec<String> = era.keys.iter().map(|(key, value)| format!("{key} = {}", written(value))).collect();
        let (short, long) = (read(&format!("era = '{}'", era.name)), read(&spelt.join("\n")));
        assert_eq!(short.scenario.settings, long.scenario.settings, "{}", era.name);
        assert_ne!(short.scenario.settings, Settings::default(), "{}", era.name);
        assert_eq!((short.scenario.era, long.scenario.era), (Some(era.name), None));
        // The resolved file reads back, and is equivalent with and without the era.
        assert_eq!(again(&short, Folder(data())).scenario, short.scenario);
        let resolved = short.resolved();
        assert!(resolved.contains(&format!("era = \"{}\"\n", era.name)));
        assert_eq!(resolved.replace(&format!("era = \"{}\"\n", era.name), ""), long.resolved());
    }
    let other = read("era = 'linux-3.11'\nabc_limit = 7\nautotune = false").scenario.settings.tcp;
    assert_eq!((other.abc_limit, other.autotune, other.recovery), (7, false, RecoveryKind::Fack));
    // From the command line too, overriding the file's era.
    let changed =
        with(&format!("duration = '1s'\n[tcp]\nera = 'ns-2'\n{PATH}"), &["tcp.era=ns-3", "tcp.initial_window=4"]);
    assert_eq!((changed.scenario.era, changed.scenario.settings.tcp.initial_window), (Some("ns-3"), 4));
    assert!(!changed.scenario.settings.tcp.sack);
}

/// A value in a file's notation.
fn written(value: &str) -> String {
    let plain = value.parse::<u64>().is_ok() || matches!(value, "true" | "false");
    if plain { value.into() } else { format!("'{value}'") }
}

#[test]
fn the_page_of_eras_lists_what_they_put_in_place_of_the_defaults() {
    let page = fs::read_to_string(root().join("docs/era.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let heads = rows.iter().find(|row| row[0] == "key").unwrap();
    for era in ERAS {
        let column = heads.iter().position(|head| *head == era.name).unwrap();
        let listed: Vec<(&str, &str)> = rows
            .iter()
            .filter(|row| row.len() == heads.len() && row[0] != "key" && !row[column].is_empty())
            .map(|row| (row[0], row[column]))
            .collect();
        let mut keys = era.keys.to_vec();
        let place = |key: &str| rows.iter().position(|row| row[0] == key);
        keys.sort_by_key(|(key, _)| place(key));
        assert_eq!(listed, keys, "{}", era.name);
    }
}

#[test]
fn a_value_alone_means_down_for_impairments_and_both_for_the_rest() {
    let s = one_path("loss = '1%'\nduplicate = 0.02\ncorrupt = '3%'\nreorder = '4%'\nqueue = '7p'\noverhead = -12\n");
    assert_eq!((down(&s).loss, up(&s).loss), (LossSpec::Bernoulli(0.01), LossSpec::None));
    assert_eq!((down(&s).duplicate, up(&s).duplicate), (0.02, 0.0));
    assert_eq!((down(&s).corrupt, up(&s).corrupt), (0.03, 0.0));
    assert_eq!((down(&s).reorder.probability, up(&s).reorder.probability), (0.04, 0.0));
    for way in [down(&s), up(&s)] {
        assert_eq!(queue(way), QueueSpec::Packets(7));
        assert_eq!((way.overhead, way.delay, rate(way)), (-12, Duration::from_millis(25), Rate::from_bps(25_000_000)));
    }
}

#[test]
fn every_path_key_takes_directions() {
    let s = parse(
        "duration = '1s'\n[[path]]\nname = 'a'\nrate = { down = '8mbit', up = '4mbit' }\ndelay = { down = '1ms', up = '2ms' }\n\
         loss = { down = { kind = 'gilbert-elliott', p = '1%', r = '10%' }, up = '2%' }\nqueue = { down = '1KB', up = '2p' }\n\
         reorder = { up = { probability = 0.5, by = '3ms' } }\noutage = { up = [['1s', '2s'], ['2s', '3s']] }\n\
         overhead = { up = 5 }\nduplicate = { up = '1%' }\ncorrupt = { down = '1%', up = '2%' }\n",
    )
    .scenario;
    let (down, up) = (down(&s), up(&s));
    assert_eq!((rate(down).as_bps(), rate(up).as_bps()), (8_000_000, 4_000_000));
    assert_eq!([down.delay, up.delay], [1, 2].map(Duration::from_millis));
    assert_eq!(down.loss, LossSpec::GilbertElliott { p: 0.01, r: 0.1, h: 0.0, k: 1.0 });
    assert_eq!(up.loss, LossSpec::Bernoulli(0.02));
    assert_eq!((queue(down), queue(up)), (QueueSpec::Bytes(1000), QueueSpec::Packets(2)));
    assert_eq!((up.reorder.probability, up.reorder.by), (0.5, Duration::from_millis(3)));
    assert_eq!((down.outages.len(), &up.outages[..]), (0, &[(at(1000), at(2000)), (at(2000), at(3000))][..]));
    assert_eq!((down.overhead, up.overhead, down.duplicate, up.duplicate), (0, 5, 0.0, 0.01));
    assert_eq!((down.corrupt, up.corrupt), (0.01, 0.02));
}

#[test]
fn one_bdp_is_initial_rate_times_both_delays_and_ten_packets_at_least() {
    // 25 Mbit/s × 50 ms = 156 250 bytes.
    assert_eq!(queue(down(&one_path(""))), QueueSpec::Bytes(156_250));
    assert_eq!(queue(down(&one_path("queue = '0.5bdp'\n"))), QueueSpec::Bytes(78_125));
    let small = |set: &[&str]| with(&format!("duration = '1s'\n{PATH}"), set).scenario;
    let least = |extra: u64| QueueSpec::Bytes(10 * (1400 + extra));
    assert_eq!(queue(down(&small(&["path.wlan.rate=1mbit"]))), least(80));
    assert_eq!(queue(up(&small(&["path.wlan.rate=1mbit", "hosts.ip=6"]))), least(100));
    assert_eq!(queue(up(&small(&["path.wlan.rate=1mbit", "path.wlan.overhead=-30"]))), least(50));
    assert_eq!(full_packet(1400, 4), 1480);
    // The trace's mean: 3 packets of 1500 bytes in 3 ms = 12 Mbit/s.
    assert_eq!(queue(down(&small(&["path.wlan.trace=steady.trace"]))), QueueSpec::Bytes(75_000));
}

#[test]
fn a_link_is_shared_and_its_bdp_counts_its_longest_path() {
    let text = "duration = '1s'\n[[link]]\nname = 'l'\nrate = '20mbit'\n[[path]]\nname = 'a'\nlink = 'l'\ndelay = '10ms'\n\
                [[path]]\nname = 'b'\nlink = { down = 'l' }\nrate = { up = '1mbit' }\nqueue = { up = '9p' }\ndelay = '30ms'\n";
    let s = parse(text).scenario;
    assert_eq!(s.topology.links[0].down.queue, QueueSpec::Bytes(150_000));
    assert_eq!(s.topology.links[0].up.queue, QueueSpec::Bytes(50_000));
    let [a, b] = &s.topology.paths[..] else { panic!() };
    assert_eq!((&a.down.bottleneck, &a.up.bottleneck), (&Bottleneck::shared(0), &Bottleneck::shared(0)));
    assert_eq!((&b.down.bottleneck, queue(&b.up)), (&Bottleneck::shared(0), QueueSpec::Packets(9)));
}

fn fixed(ms: u64) -> TimeRange {
    TimeRange { min: Duration::from_millis(ms), max: Duration::from_millis(ms) }
}

#[test]
fn cross_flows_may_be_many_and_draw_what_they_are() {
    let text = "[[cross]]\nkind = 'tcp'\npath = 'wlan'\ndirection = 'up'\ncount = 20\nsize = '300KB'\n\
        delay = { min = '10ms', max = '50ms' }\nstart = { min = '0s', max = '2s' }\n\
        [[cross]]\nkind = 'tcp-limited'\npath = 'wlan'\npackets_per_second = 157\nrate_distribution = 'exponential'\n\
        packet_distribution = 'exponential'\n\
        [[cross]]\nkind = 'udp-onoff'\npath = 'wlan'\nrate = '100kbit'\nrate_distribution = 'exponential'\n\
        packet_distribution = 'exponential'\non = '1s'\noff = '2s'\n";
    let cross = one_path(text).cross;
    assert_eq!((cross[0].direction, cross[0].count), (Direction::Up, 20));
    let [ten, fifty, two] = [10, 50, 2000].map(Duration::from_millis);
    assert_eq!(cross[0].start, TimeRange { min: Duration::ZERO, max: two });
    let CrossKind::Tcp { delay, data, .. } = &cross[0].kind else { panic!("{cross:?}") };
    assert_eq!((*delay, *data), (Some(TimeRange { min: ten, max: fifty }), CrossData::Bulk(Some(300_000))));
    let CrossKind::Tcp { delay: None, data, .. } = &cross[1].kind else { panic!("{cross:?}") };
    let (rates, packets) = (Distribution::Exponential, Distribution::Exponential);
    assert_eq!(*data, CrossData::Packets { per_second: 157.0, rates, packet: 1000, packets });
    let (on, off) = (Duration::from_secs(1), Duration::from_secs(2));
    let rate = Rate::from_bps(100_000);
    let onoff = CrossKind::UdpOnOff { rate, rates, packet: 1000, packets, on, off, shape: 1.5 };
    assert_eq!(cross[2].kind, onoff);
}

#[test]
fn queues_may_be_managed() {
    let of = |queue_: &str| queue(down(&one_path(&format!("queue = {queue_}\n"))));
    let red = RedSpec::default();
    // 25 Mbit/s for 50 ms.
    let bdp = DropTail::Bytes(156_250);
    assert_eq!(of("{ kind = 'red' }"), QueueSpec::Managed(red.into(), bdp));
    let full = "{ kind = 'red', limit = '100p', min = 10, max_p = '2%', weight = 0.01, gentle = false, wait = true, \
        ecn = true, mean_packet = 1000 }";
    let spec = RedSpec {
        min: Threshold::packets(10.0),
        max_p: 0.02,
        weight: 0.01,
        gentle: false,
        wait: true,
        ecn: true,
        ..red
    };
    assert_eq!(of(full), QueueSpec::Managed(RedSpec { mean_packet: 1000, ..spec }.into(), DropTail::Packets(100)));
    let of_bytes = |amount| Threshold { amount, in_bytes: true };
    let bytes = RedSpec { min: of_bytes(7500.0), max: of_bytes(30_000.0), ..red };
    assert_eq!(of("{ kind = 'red', min = '7500B', max = '30KB' }"), QueueSpec::Managed(bytes.into(), bdp));
    assert_eq!(
        of("{ kind = 'red', min = 0 }"),
        QueueSpec::Managed(RedSpec { min: Threshold::packets(0.0), ..red }.into(), bdp)
    );
    assert_eq!(of("{ kind = 'codel' }"), QueueSpec::Managed(CodelSpec::default().into(), DropTail::Packets(1000)));
    let s =
        one_path("queue = { down = { kind = 'codel', target = '2ms', ecn = true, limit = '0.5bdp' }, up = '7p' }\n");
    let spec = CodelSpec { target: Duration::from_millis(2), ecn: true, ..CodelSpec::default() };
    assert_eq!(queue(down(&s)), QueueSpec::Managed(spec.into(), DropTail::Bytes(78_125)));
    assert_eq!(queue(up(&s)), QueueSpec::Packets(7));
    // `--set` turns a scalar into the limit of a table.
    let text = format!("duration = '10s'\n{PATH}queue = '50p'\n");
    let set = with(&text, &["path.wlan.queue.kind=codel", "path.wlan.queue.interval=30ms"]).scenario;
    let spec = CodelSpec { interval: Duration::from_millis(30), ..CodelSpec::default() };
    assert_eq!(queue(down(&set)), QueueSpec::Managed(spec.into(), DropTail::Packets(50)));
}

#[test]
fn a_timeline_changes_every_key_that_is_changeable() {
    let keys: Vec<_> = anabranch_scenario::keys().iter().filter(|key| key.changeable).collect();
    for key in &keys {
        let (name, value) = match (key.section.name(), key.name) {
            (section @ ("path" | "link"), name) => (
                format!("{section}.{section}.{name}"),
                match key.name {
                    "rate" => "'1mbit'",
                    "delay" => "'3ms'",
                    "loss" => "'2%'",
                    "jitter" => "'500us'",
                    "arq" => "{ loss = '5%', attempts = 3, delay = '8ms' }",
                    "aggregate" => "'4ms'",
                    "wake" => "{ idle = '10s', delay = '260ms' }",
                    "slots" => "{ every = '15s', step = '1ms', loss = 0.2, burst = '80ms' }",
                    "burst" => "'8KB'",
                    "police" => "{ rate = '9mbit', burst = '9KB' }",
                    "queue" => "'30p'",
                    "reorder" => "{ probability = 0.1, by = '3ms' }",
                    "mtu" => "1300",
                    "middlebox" => "[{ kind = 'mss', most = 1200 }]",
                    "backup" => "true",
                    "price" => "'5/GB'",
                    "cap" => "'3MB'",
                    "weight" => "2.5",
                    unknown => panic!("{unknown}"),
                },
            ),
            (section, name) => (format!("{section}.{name}"), "'blest'"),
        };
        let text = format!(
            "duration = '9s'\n[[link]]\nname = 'link'\nrate = '1mbit'\ndelay = '1ms'\n[[path]]\nname = 'path'\nrate = '2mbit'\ndelay = '1ms'\n\
             [[timeline]]\nat = '1s'\nset = '{name}'\nvalue = {value}\n"
        );
        let document = parse(&text);
        assert!(!document.scenario.timeline.is_empty(), "{name}");
        assert_eq!(again(&document, Folder(data())).scenario, document.scenario, "{name}");
    }
    assert!(keys.len() >= 21);
}

#[test]
fn cross_traffic_and_timeline_refer_by_name() {
    let text = "[[link]]\nname = 'l'\nrate = '20mbit'\n[[path]]\nname = 'b'\nlink = 'l'\ndelay = '1ms'\n\
        [[cross]]\nkind = 'tcp'\nlink = 'l'\ncongestion = 'reno'\n\
        [[cross]]\nkind = 'udp'\npath = 'wlan'\nrate = '1mbit'\nstart = '1s'\nstop = '2s'\n\
        [[cross]]\nkind = 'udp-onoff'\npath = 'wlan'\nrate = '1mbit'\npacket = 500\non = '1s'\noff = '2s'\nshape = 2\n\
        [[timeline]]\nat = '3s'\nset = 'path.wlan.rate'\nvalue = '1mbit'\n\
        [[timeline]]\nat = '1s'\nset = 'path.wlan.loss'\nvalue = '5%'\n\
        [[timeline]]\nat = '2s'\nset = 'link.l.rate'\nvalue = { up = '2mbit' }\n\
        [[timeline]]\nat = '2s'\nset = 'path.wlan.delay.up'\nvalue = '9ms'\n";
    let s = one_path(text);
    assert_eq!([0, 1, 2].map(|n| matches!(s.cross[n].over, Over::Links(_))), [true, false, false]);
    let reno = PlugIn { name: "reno".into(), parameters: vec![] };
    let bulk = |size| CrossKind::Tcp { congestion: reno.clone(), delay: None, data: CrossData::Bulk(size) };
    assert_eq!(s.cross[0].kind, bulk(None));
    let (rates, packets) = (Distribution::Fixed, Distribution::Fixed);
    assert_eq!(s.cross[1].kind, CrossKind::Udp { rate: Rate::from_bps(1_000_000), rates, packet: 1000 });
    assert_eq!((s.cross[1].start, s.cross[1].stop), (fixed(1000), Some(at(2000))));
    assert!(s.cross.iter().all(|cross| (cross.direction, cross.count) == (Direction::Down, 1)));
    let (on, off) = (Duration::from_secs(1), Duration::from_secs(2));
    let rate = Rate::from_bps(1_000_000);
    let onoff = CrossKind::UdpOnOff { rate, rates, packet: 500, packets, on, off, shape: 2.0 };
    assert_eq!(s.cross[2].kind, onoff);
    let changes: Vec<_> = s.network_changes().collect();
    let expected = [
        (at(1000), Change::Loss(0, Direction::Down, LossSpec::Bernoulli(0.05))),
        (at(2000), Change::Rate(Place::Link(0), Direction::Up, Rate::from_bps(2_000_000))),
        (at(2000), Change::Delay(0, Direction::Up, Duration::from_millis(9))),
        (at(3000), Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(1_000_000))),
        (at(3000), Change::Rate(Place::Path(0), Direction::Up, Rate::from_bps(1_000_000))),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn plug_ins_get_their_canonical_name_and_what_differs_from_the_defaults() {
    let s = one_path(
        "[connection]\nscheduler = { kind = 'lowrtt+pr', rtt_guard = 2 }\ncongestion = { kind = 'cubic', beta = 0.5, hystart = false, c = 0.4 }\n",
    );
    assert_eq!(s.scheduler.name, "minrtt+pr");
    assert_eq!(s.scheduler.parameters, [("rtt_guard".to_string(), 2.0)]);
    assert_eq!(s.congestion.parameters, [("beta".to_string(), 0.5), ("hystart".to_string(), 0.0)]);
    let option = anabranch_scenario::scheduler("--scheduler", "rr+or").unwrap();
    assert_eq!((option.name.as_str(), option.parameters.len()), ("roundrobin+or", 0));
    assert!(
        anabranch_scenario::congestion("--congestion", "olai").unwrap_err()[0].help.as_ref().unwrap().contains("olia")
    );
}

#[test]
fn parameters_may_stand_in_brackets() {
    let s = one_path(
        "[connection]\nscheduler = 'blest+or( delta = 0.5,lambda=2 )'\ncongestion = \"cubic(hystart=false)\"\n",
    );
    assert_eq!(s.scheduler.name, "blest+or");
    assert_eq!(s.scheduler.parameters, [("lambda".to_string(), 2.0), ("delta".to_string(), 0.5)]);
    assert_eq!(s.congestion.parameters, [("hystart".to_string(), 0.0)]);
    // The printed form is readable.
    for (plug_in, form) in [(s.scheduler, "blest+or(lambda=2,delta=0.5)"), (s.congestion, "cubic(hystart=false)")] {
        assert_eq!(plug_in.with_parameters(), form);
        let read = if form.starts_with('c') { anabranch_scenario::congestion } else { anabranch_scenario::scheduler };
        assert_eq!(read("option", form).unwrap(), plug_in);
    }
    assert_eq!(anabranch_scenario::scheduler("option", "minrtt()").unwrap().with_parameters(), "minrtt");
    // An unknown key of a table is a mistake in an option as in a file.
    assert!(anabranch_scenario::scheduler("option", "{ kind = 'blest', delat = 1 }").is_err());
}

#[test]
fn a_parameter_may_be_set_with_and_without_its_section() {
    let with = |set: &[&str]| with(&format!("duration = '10s'\n{PATH}"), set).scenario;
    for key in ["scheduler.lambda=2", "connection.scheduler.lambda=2"] {
        let both = [("lambda".to_string(), 2.0), ("delta".to_string(), 0.5)];
        assert_eq!(with(&["scheduler=blest", key]).scheduler.parameters, both[..1]);
        assert_eq!(with(&["scheduler=blest(delta=0.5)", key]).scheduler.parameters, both);
    }
    assert_eq!(with(&["congestion.beta=0.5"]).congestion.with_parameters(), "cubic(beta=0.5)");
}

#[test]
fn a_timeline_may_change_the_scheduler() {
    let text = "[[timeline]]\nat = '3s'\nset = 'connection.scheduler'\nvalue = { kind = 'blest', delta = 0.5 }\n";
    let s = one_path(text);
    let plug_in = PlugIn { name: "blest".into(), parameters: vec![("delta".into(), 0.5)] };
    let entry = TimelineEntry { at: Instant::from_millis(3000), change: TimelineChange::Scheduler(plug_in) };
    assert_eq!(s.timeline, [entry]);
    assert_eq!(s.network_changes().count(), 0);
}

#[test]
fn prices_are_per_byte_and_caps_in_bytes() {
    let s = one_path("price = '4/GB'\ncap = '5GB'\nweight = 3\nbackup = true\n");
    let policy = PathPolicy { price: 4e-9, cap: Some(5_000_000_000), weight: Some(3.0) };
    assert_eq!((s.paths[0].policy, s.paths[0].backup), (policy, true));
}

#[test]
fn a_bottleneck_may_be_the_senders_own_device() {
    let of = |line: &str| {
        let path = one_path(line).topology.paths.remove(0);
        (path.down.device, path.up.device)
    };
    assert_eq!(of(""), (false, false));
    assert_eq!(of("device = true\n"), (true, true));
    assert_eq!(of("device = { down = true }\n"), (true, false));
}

#[test]
fn overrides_reach_every_kind_of_key() {
    let text = format!("duration = '10s'\n{PATH}loss = '1%'\n[[cross]]\nkind = 'udp'\npath = 'wlan'\nrate = '1mbit'\n");
    let s = with(
        &text,
        &[
            "seed=7",
            "name=a b",
            "scheduler=blest",
            "connection.scheduler.delta=0.5",
            "tcp.rto_min=1s",
            "path.wlan.loss.up=2%",
            "path.wlan.reorder.by=1ms",
            "path.wlan.delay.down=5ms",
            "path.wlan.outage=[[\"1s\", \"2s\"]]",
            "cross.rate=2mbit",
            "cross.0.packet=100",
            "hosts.ip=6",
        ],
    )
    .scenario;
    assert_eq!((s.seed, s.name.as_str(), s.hosts.ip), (7, "a b", 6));
    assert_eq!((s.scheduler.name.as_str(), s.scheduler.parameters[0].1), ("blest", 0.5));
    assert_eq!(s.settings.tcp.rto_min, Duration::from_secs(1));
    assert_eq!((down(&s).loss, up(&s).loss), (LossSpec::Bernoulli(0.01), LossSpec::Bernoulli(0.02)));
    assert_eq!(down(&s).reorder.by, Duration::from_millis(1));
    assert_eq!([down(&s).delay, up(&s).delay], [5, 25].map(Duration::from_millis));
    assert_eq!(up(&s).outages, [(at(1000), at(2000))]);
    let (rate, rates) = (Rate::from_bps(2_000_000), Distribution::Fixed);
    assert_eq!(s.cross[0].kind, CrossKind::Udp { rate, rates, packet: 100 });
}

#[test]
fn of_two_overrides_the_later_wins() {
    let text = format!("duration = '10s'\n{PATH}");
    assert_eq!(with(&text, &["seed=7", "seed=8"]).scenario.seed, 8);
    let traced = with(&text, &["path.wlan.trace=steady.trace"]);
    assert!(
        matches!(&down(&traced.scenario).bottleneck, Bottleneck::Own(own) if matches!(own.capacity, CapacitySpec::Trace(_)))
    );
    let fixed = with(&text, &["path.wlan.trace=steady.trace", "path.wlan.rate=1mbit"]);
    assert_eq!(rate(down(&fixed.scenario)), Rate::from_bps(1_000_000));
}

#[test]
fn a_sweep_is_a_cross_product_whose_last_key_varies_fastest() {
    let text = format!(
        "duration = '10s'\n{PATH}[sweep]\nscheduler = ['minrtt', {{ kind = 'blest', delta = 0.5 }}]\n\
         \"path.wlan.loss\" = ['0.5%', '1%', 0.02]\n"
    );
    let document = parse(&text);
    let cells: Vec<_> = document
        .cells
        .iter()
        .map(|(cell, s)| (cell[0].1.as_str(), cell[1].1.as_str(), s.scheduler.name.as_str(), down(s).loss))
        .collect();
    let blest = "{ kind = 'blest', delta = 0.5 }";
    let expected = [
        ("minrtt", "0.5%", "minrtt", LossSpec::Bernoulli(0.005)),
        ("minrtt", "1%", "minrtt", LossSpec::Bernoulli(0.01)),
        ("minrtt", "0.02", "minrtt", LossSpec::Bernoulli(0.02)),
        (blest, "0.5%", "blest", LossSpec::Bernoulli(0.005)),
        (blest, "1%", "blest", LossSpec::Bernoulli(0.01)),
        (blest, "0.02", "blest", LossSpec::Bernoulli(0.02)),
    ];
    assert_eq!(cells, expected);
    assert_eq!(document.cells[0].0[0].0, "scheduler");
    assert_eq!(document.cells[0].0[1].0, "path.wlan.loss");
    assert_eq!(down(&document.scenario).loss, LossSpec::None);
}

#[test]
fn an_override_fixes_a_swept_key() {
    let text = format!("duration = '10s'\n{PATH}[sweep]\nscheduler = ['minrtt', 'blest']\nseed = [1, 2]\n");
    let document = with(&text, &["connection.scheduler=rr"]);
    assert_eq!(document.cells.len(), 2);
    assert!(document.cells.iter().all(|(cell, s)| cell.len() == 1 && s.scheduler.name == "roundrobin"));
    assert_eq!(with(&text, &["sweep.seed=[4, 5, 6]"]).cells.len(), 6);
}

#[test]
fn without_a_sweep_the_only_cell_is_the_scenario() {
    let document = parse(&format!("duration = '10s'\n{PATH}"));
    assert_eq!(document.cells, [(Vec::new(), document.scenario.clone())]);
}

#[test]
fn a_scenario_without_a_name_is_called_after_its_file() {
    let text = format!("duration = '10s'\n{PATH}");
    for (file, name) in
        [("a/b.c.toml", "b.c"), ("x", "x"), ("", "scenario"), (".toml", "scenario"), ("<stdin>", "<stdin>")]
    {
        let document = Document::parse(file, &text).unwrap();
        assert_eq!(document.scenario.name, name);
        assert_eq!(again(&document, Folder(data())).scenario.name, name);
    }
}

#[test]
fn sized_traffic_needs_no_duration() {
    let text = format!("{PATH}[[traffic]]\nkind = 'bulk'\nsize = '64MiB'\n");
    let s = parse(&text).scenario;
    assert_eq!((s.duration, &s.traffic[..]), (None, &[TrafficKind::Bulk { size: Some(64 << 20) }.into()][..]));
}

#[test]
fn an_empty_list_of_paths_is_no_path() {
    let wrong = Document::parse("x.toml", "duration = '1s'\npath = []\n").unwrap_err();
    assert_eq!(wrong[0].message, "a scenario needs at least one [[path]]");
}

/// Reads a document back from its resolved form.
fn again(document: &Document, folder: Folder) -> Document {
    let source = Source { name: "resolved.toml".into(), text: document.resolved() };
    read(&source, &[], &folder).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{}", source.text))
}

#[test]
fn resolved_documents_read_back_to_themselves() {
    let everything = "duration = '10s'\nname = 'a \"quoted\" \\\\ name'\nstart = '250ms'\nstart_jitter = '1.5ms'\n\
        [connection]\nscheduler = { kind = 'minrtt+pr', rtt_guard = 2 }\ncongestion = 'olia'\n[tcp]\nkeep_alive = '7s'\n\
        [[path]]\nname = 'a'\ntrace = { down = 'steady.trace' }\nrate = { up = '1234567bit' }\ndelay = '25ms'\n\
        loss = { down = { kind = 'gilbert-elliott', p = 0.123456789, r = '10%' } }\nprice = '0.3/MB'\ncap = '1GB'\nweight = 0.5\n\
        outage = [['1s', '2s']]\nreorder = '1%'\nqueue = '0.3bdp'\noverhead = -7\nbackup = true\ndevice = { down = true }\n\
        [[path]]\nname = 'b'\nlink = { down = 'l' }\nrate = { up = '1mbit' }\ndelay = '10us'\n\
        [[link]]\nname = 'l'\nrate = '20mbit'\n\
        [[cross]]\nkind = 'tcp'\nlink = 'l'\ncongestion = { kind = 'cubic', beta = 0.5 }\nstop = '5s'\n\
        [[cross]]\nkind = 'udp-onoff'\npath = 'a'\nrate = '1mbit'\non = '1s'\noff = '300us'\nrate_distribution = 'exponential'\n\
        [[cross]]\nkind = 'tcp'\npath = 'a'\ndirection = 'up'\ncount = 3\nsize = '1MB'\ndelay = { min = '1ms', max = '9ms' }\n\
        [[cross]]\nkind = 'tcp-limited'\nlink = 'l'\npackets_per_second = 1.5\nstart = '3s'\ndelay = '2ms'\npacket_distribution = 'exponential'\n\
        [[link]]\nname = 'm'\nrate = '20mbit'\nqueue = { down = { kind = 'red', max = '30KB', min = '1KB', wait = true }, up = { kind = 'codel', target = '3ms' } }\n\
        [[link]]\nname = 'n'\nrate = '20mbit'\nqueue = { down = { kind = 'red', min = 0, weight = 0.0123456789 }, up = { kind = 'red', max = 7.5, limit = '9p' } }\n\
        [[timeline]]\nat = '3s'\nset = 'path.b.loss'\nvalue = '5%'\n[[timeline]]\nat = '2s'\nset = 'connection.scheduler'\nvalue = 'rr+pr'\n[[timeline]]\nat = '1s'\nset = 'link.m.rate'\n\
        value = '1mbit'\n[[traffic]]\nkind = 'bulk'\nsize = '1000001B'\n\
        [sweep]\n\"path.a.delay\" = ['1ms', '200ms']\n\"link.l.rate\" = ['1gbit']\ncongestion = ['lia', { kind = 'cubic', beta = 0.5 }]\n";
    let first = parse(everything);
    let second = again(&first, Folder(data()));
    assert_eq!(first.scenario, second.scenario);
    assert_eq!(first.axes, second.axes);
    assert_eq!(first.cells.len(), 4);
    // Swept rates and delays reach queues that are given in products of both.
    for ((_, first), (_, second)) in first.cells.iter().zip(&second.cells) {
        assert_eq!(first, second);
    }
    assert_eq!(first.resolved(), second.resolved());
}

/// The traffic of a scenario with these lines under `[[traffic]]`, and whether it reads back.
/// 10 Mbit/s and two delays of 1 ms are 2500 bytes; a full packet has 1480.
#[test]
fn a_queue_that_is_wider_than_its_product_says_so() {
    let queues = |delay: &str| {
        let text = format!(
            "duration = '1s'\nconnection.scheduler = 'minrtt'\n[[path]]\nname = 'a'\nrate = '10mbit'\ndelay = '{delay}'\n\
             [[traffic]]\nkind = 'bulk'\n"
        );
        let resolved = parse(&text).resolved();
        resolved.lines().find(|line| line.starts_with("queue")).map(str::to_owned).unwrap()
    };
    let least = "14800 bytes (10 full packets, the least)";
    assert_eq!(queues("1ms"), format!("queue = {{ down = \"1bdp\", up = \"1bdp\" }}  # {least}, {least}"));
    assert_eq!(queues("10ms"), "queue = { down = \"1bdp\", up = \"1bdp\" }  # 25000 bytes, 25000 bytes");
}

fn traffic(lines: &str) -> (Traffic, bool) {
    let document = parse(&format!("duration = '9s'\n{PATH}[[traffic]]\n{lines}"));
    assert_eq!(document.scenario, again(&document, Folder(data())).scenario);
    (document.scenario.traffic[0].clone(), document.scenario.settings.tcp.nagle)
}

#[test]
fn requests_and_pages_have_the_documented_defaults() {
    let (request, nagle) = traffic("kind = 'request'\nsize = '8KB'\ncount = 3");
    let kind = TrafficKind::Request { request: 100, size: 8000, interval: Duration::ZERO, count: Some(3) };
    assert_eq!((&request, nagle), (&Traffic::from(kind), false));
    assert_eq!((request.total(), request.connections()), (Some(24_000), 1));
    let (page, nagle) = traffic("kind = 'web'\nsize = '72KiB'\nobjects = 15");
    let (size, objects, connections, sizes, request) = (72 << 10, 15, 6, ObjectSizes::Equal, 100);
    let connections_per = ConnectionsPer::Page;
    let kind = TrafficKind::Web { size, objects, connections, connections_per, sizes, request };
    assert_eq!((&page, nagle), (&Traffic::from(kind), false));
    assert_eq!((page.total(), page.connections(), page.at_once()), (Some(73_728), 6, 6));
    let fresh = traffic("kind = 'web'\nsize = '72KiB'\nobjects = 15\nconnections_per = 'object'").0;
    assert_eq!((fresh.total(), fresh.connections(), fresh.at_once()), (Some(73_728), 15, 6));
    // A connection without a request is not opened.
    assert_eq!(traffic("kind = 'web'\nsize = 1000\nobjects = 4\nsizes = 'lognormal'").0.connections(), 4);
}

#[test]
fn a_call_goes_both_ways_and_has_a_deadline() {
    let (call, nagle) = traffic("kind = 'call'");
    let (audio, deadline) = (Rate::from_bps(32_000), Duration::from_millis(150));
    let kind = TrafficKind::Call { audio, video: None, frame_rate: 30, key_every: 300, deadline };
    let both = Traffic { direction: TrafficDirection::Both, ..kind.into() };
    assert_eq!((&call, nagle, call.total(), call.connections()), (&both, false, None, 1));
    let (stream, _) =
        traffic("kind = 'call'\nvideo = '2mbit'\ndirection = 'up'\ndeadline = '1s'\nframe_rate = 25\nkey_every = 50");
    let (video, deadline) = (Some(Rate::from_bps(2_000_000)), Duration::from_secs(1));
    assert_eq!(stream.kind, TrafficKind::Call { audio, video, frame_rate: 25, key_every: 50, deadline });
    assert_eq!(stream.direction, TrafficDirection::Up);
    let (frames, _) = traffic("kind = 'frames'\nsize = 9\ninterval = '1ms'\ndeadline = '30ms'");
    assert!(matches!(frames.kind, TrafficKind::Frames { deadline: Some(deadline), .. } if deadline.as_millis() == 30));
}

#[test]
fn a_video_has_a_ladder_a_buffer_and_a_rule() {
    let (video, nagle) = traffic("kind = 'video'");
    let secs = Duration::from_secs;
    let TrafficKind::Video { ladder, abr, request, .. } = &video.kind else { panic!("{video:?}") };
    assert_eq!((ladder.name(), abr.name.as_str(), *request, nagle), (Some("pensieve"), "bola", 100, false));
    let stream = video.kind.video().unwrap();
    let rule = PlaybackRule { segment: secs(4), start_at: secs(4), resume_at: secs(4), count: None };
    assert_eq!((stream.rule, stream.buffer, stream.live), (rule, secs(30), None));
    assert_eq!((video.direction, video.total(), video.connections()), (TrafficDirection::Down, None, 1));
    let (own, _) = traffic(
        "kind = 'video'\nladder = ['1mbit', '2.5mbit']\nsegment = '2s'\nlength = '9s'\nstart_at = '6s'\nresume_at = '3s'\n\
         buffer = '12s'\nlive = '8s'\nabr = 'bola(gp=8)'\nflows = 2",
    );
    let stream = own.kind.video().unwrap();
    let rule = PlaybackRule { segment: secs(2), start_at: secs(6), resume_at: secs(3), count: Some(5) };
    assert_eq!((stream.rule, stream.live, own.connections()), (rule, Some(secs(8)), 2));
    assert_eq!(stream.ladder.rates(), [1_000_000, 2_500_000].map(Rate::from_bps));
    let TrafficKind::Video { abr, .. } = &own.kind else { panic!("{own:?}") };
    assert_eq!(abr.with_parameters(), "bola(gp=8)");
}

#[test]
fn several_flows_add_up() {
    let (flows, nagle) = traffic("kind = 'bulk'\nsize = '1MB'\nflows = 20\narrivals = { kind = 'poisson', rate = 5 }");
    let kind = TrafficKind::Bulk { size: Some(1_000_000) };
    assert_eq!(flows, Traffic { flows: 20, arrivals: Arrivals::Poisson { rate: 5.0 }, ..kind.into() });
    assert_eq!((flows.total(), flows.connections(), nagle), (Some(20_000_000), 20, true));
    let (together, _) = traffic("kind = 'frames'\nsize = 9\ninterval = '1ms'\nflows = 2\narrivals = 'together'");
    assert_eq!((together.total(), together.arrivals), (None, Arrivals::Together));
}

#[test]
fn data_flow_down_unless_the_file_says_otherwise() {
    let of = |lines: &str| traffic(lines).0;
    let bulk = "kind = 'bulk'\nsize = '1MB'\nflows = 3";
    assert_eq!((of(bulk).direction, of(bulk).total()), (TrafficDirection::Down, Some(3_000_000)));
    let up = of(&format!("{bulk}\ndirection = 'up'"));
    assert_eq!((up.direction, up.total()), (TrafficDirection::Up, Some(3_000_000)));
    let both = of(&format!("{bulk}\ndirection = 'both'"));
    assert_eq!((both.direction, both.total()), (TrafficDirection::Both, Some(6_000_000)));
    let frames = of("kind = 'frames'\nsize = 9\ninterval = '1ms'\ncount = 5\ndirection = 'both'");
    assert_eq!((frames.direction, frames.total()), (TrafficDirection::Both, Some(90)));
    let document =
        parse(&format!("duration = '9s'\n{PATH}[hosts]\nsender = 'linux'\n[[traffic]]\n{bulk}\ndirection = 'up'"));
    let hosts = [Side::Client, Side::Server].map(|side| document.scenario.host(side));
    assert_eq!(hosts, [Host::Linux, Host::Engine], "the sender of an upload is the client");
}

#[test]
fn shipped_scenarios_read_without_files_and_read_back() {
    for path in files(&root().join("scenarios")) {
        let source = Source { name: path.display().to_string(), text: fs::read_to_string(&path).unwrap() };
        let document = read(&source, &[], &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
        let second = again(&document, Folder(data()));
        assert_eq!(document.scenario, second.scenario, "{}", source.name);
        assert_eq!(document.cells, second.cells);
    }
}

/// The split of the path sets, as docs/lab/forward.md states it: another validation half cannot be drawn unseen.
#[test]
fn the_drawn_path_sets_are_those_of_the_split() {
    let stated = fs::read_to_string(root().join("docs/lab/forward.md")).unwrap();
    for half in ["development", "validation"] {
        let mut digest = Sha256::new();
        for path in files(&root().join("scenarios/forward").join(half)) {
            let text = fs::read_to_string(&path).unwrap();
            digest.update(&text);
            read(&Source { name: path.display().to_string(), text }, &[], &NoFiles)
                .unwrap_or_else(|e| panic!("{e:#?}"));
        }
        let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let row = stated.lines().find(|line| line.starts_with(&format!("| {half} |"))).unwrap();
        assert!(row.contains(&hex), "{half}: {hex}");
    }
}

#[test]
fn the_blest_scenario_is_the_papers() {
    let text = fs::read_to_string(root().join("scenarios/blest-3g-wlan-bulk.toml")).unwrap();
    let s = Document::parse("blest-3g-wlan-bulk.toml", &text).unwrap().scenario;
    assert_eq!((s.duration, s.warmup, s.repeat), (Some(Duration::from_secs(90)), Duration::from_secs(60), 50));
    let [wlan, umts] = &s.topology.paths[..] else { panic!() };
    assert_eq!((rate(&wlan.down), wlan.down.delay), (Rate::from_bps(25_000_000), Duration::from_millis(25)));
    assert_eq!((wlan.down.loss, wlan.up.loss), (LossSpec::Bernoulli(0.01), LossSpec::None));
    assert_eq!((queue(&wlan.down), queue(&umts.down)), (QueueSpec::Packets(100), QueueSpec::Packets(3750)));
    assert_eq!((rate(&umts.down), umts.down.delay), (Rate::from_bps(5_000_000), Duration::from_millis(65)));
    assert_eq!((s.settings.send_buffer, s.settings.recv_buffer), (8 << 20, 8 << 20));
    assert_eq!(s.congestion.name, "olia");
}

#[test]
fn jitter_is_a_spread_or_a_table_of_netems_words() {
    let none = one_path("");
    assert!(down(&none).jitter.is_none() && up(&none).jitter.is_none());
    let spread = |ms| JitterSpec { spread: Duration::from_millis(ms), ..JitterSpec::NONE };
    let plain = one_path("jitter = '5ms'\n");
    assert_eq!((&down(&plain).jitter, &up(&plain).jitter), (&spread(5), &spread(5)));
    let text = format!(
        "duration = '10s'\n{PATH}jitter = {{ down = {{ spread = '4ms', correlation = '25%', distribution = 'paretonormal', \
         order = 'free' }}, up = {{ spread = '2ms', distribution = 'steady.dist' }} }}\n\
         [[timeline]]\nat = '1s'\nset = 'path.wlan.jitter'\nvalue = {{ spread = '1ms', distribution = 'normal' }}\n\
         [[timeline]]\nat = '2s'\nset = 'path.wlan.jitter.up'\nvalue = '0s'\n"
    );
    let document = parse(&text);
    let s = &document.scenario;
    let distribution = DelayDistribution::ParetoNormal;
    assert_eq!(down(s).jitter, JitterSpec { correlation: 0.25, distribution, free: true, ..spread(4) });
    let DelayDistribution::Table(table) = &up(s).jitter.distribution else { panic!("a file") };
    assert_eq!(table.as_ref(), &DelayTable::parse("steady.dist", "-8192 0 4096 8192").unwrap());
    let normal = JitterSpec { distribution: DelayDistribution::Normal, ..spread(1) };
    let changes: Vec<_> = s.network_changes().collect();
    let expected = [
        (at(1000), Change::Jitter(0, Direction::Down, normal.clone())),
        (at(1000), Change::Jitter(0, Direction::Up, normal)),
        (at(2000), Change::Jitter(0, Direction::Up, JitterSpec::NONE)),
    ];
    assert_eq!(changes, expected);
    assert_eq!(again(&document, Folder(data())).scenario, document.scenario);
    // A part may be set, and varied, over a plain spread.
    let set = with(&format!("duration = '10s'\n{PATH}jitter = '5ms'\n"), &["path.wlan.jitter.order=free"]).scenario;
    assert_eq!(down(&set).jitter, JitterSpec { free: true, ..spread(5) });
    assert_eq!(swept("path.wlan.jitter", "5ms").map(|swept| (swept.number, swept.unit)), Some((0.005, "s")));
}

#[test]
fn token_buckets_belong_to_a_bottleneck() {
    let none = one_path("");
    assert!(matches!(&down(&none).bottleneck, Bottleneck::Own(own) if own.police.is_none()));
    let text = format!(
        "duration = '9s'\n[[link]]\nname = 'l'\nrate = '20mbit'\nburst = {{ up = '40KB' }}\n\
         police = {{ rate = '5mbit', burst = '2KB' }}\n[[path]]\nname = 'b'\nlink = 'l'\ndelay = '1ms'\n\
         {PATH}burst = '64KB'\npolice = {{ down = {{ rate = '20mbit', burst = '32KB' }} }}\n\
         [[timeline]]\nat = '1s'\nset = 'path.wlan.police.up'\nvalue = {{ rate = '1mbit', burst = '9KB' }}\n\
         [[timeline]]\nat = '2s'\nset = 'link.l.burst'\nvalue = {{ down = '9KB' }}\n"
    );
    let document = parse(&text);
    let s = &document.scenario;
    let bucket = |mbit: u64, burst| BucketSpec { rate: Rate::from_bps(mbit * 1_000_000), burst };
    let Bottleneck::Own(own) = &s.topology.paths[1].down.bottleneck else { panic!("its own") };
    assert_eq!(own.capacity, CapacitySpec::Bucket(bucket(25, 64_000)));
    assert_eq!(own.police, Some(bucket(20, 32_000)));
    let Bottleneck::Own(up) = &s.topology.paths[1].up.bottleneck else { panic!("its own") };
    assert_eq!((&up.capacity, up.police), (&own.capacity, None));
    let link = &s.topology.links[0];
    assert_eq!(link.down.capacity, CapacitySpec::Fixed(Rate::from_bps(20_000_000)));
    assert_eq!(link.up.capacity, CapacitySpec::Bucket(bucket(20, 40_000)));
    assert_eq!((link.down.police, link.up.police), (Some(bucket(5, 2_000)), Some(bucket(5, 2_000))));
    let changes: Vec<_> = s.network_changes().collect();
    let expected = [
        (at(1000), Change::Police(Place::Path(1), Direction::Up, bucket(1, 9_000))),
        (at(2000), Change::Burst(Place::Link(0), Direction::Down, 9_000)),
    ];
    assert_eq!(changes, expected);
    assert_eq!(again(&document, Folder(data())).scenario, document.scenario);
    let set = with(&text, &["path.wlan.police.down.rate=7mbit"]).scenario;
    let Bottleneck::Own(own) = &set.topology.paths[1].down.bottleneck else { panic!("its own") };
    assert_eq!(own.police, Some(bucket(7, 32_000)));
}

#[test]
fn a_trace_has_rate_delay_and_loss_of_each_direction() {
    let text = "duration = '9s'\n[[path]]\nname = 'a'\ntrace = 'drive.csv'\ntrace_start = '1s'\n\
        [[path]]\nname = 'b'\nrate = '5mbit'\ntrace = { down = 'delays.csv' }\ndelay = { up = '7ms' }\ntrace_end = 'hold'\n\
        [[path]]\nname = 'c'\ntrace = 'steady.trace'\ndelay = '1ms'\n";
    let document = parse(text);
    let [a, b, c] = &document.scenario.topology.paths[..] else { panic!("three paths") };
    let steps = |way: &WaySpec| match &way.bottleneck {
        Bottleneck::Own(own) => match &own.capacity {
            CapacitySpec::Steps(steps) => steps.steps().at(at(1600)),
            _ => panic!("no recorded rate"),
        },
        Bottleneck::Route(_) => panic!("shared"),
    };
    assert_eq!((steps(&a.down), steps(&a.up)), (Rate::from_bps(20_000_000), Rate::from_bps(600_000)));
    let delays = |way: &WaySpec| [0, 1000, 3000].map(|now| way.recorded_delay.as_ref().map(|delay| delay.at(at(now))));
    assert_eq!(delays(&a.up), [25, 40, 20].map(|ms| Some(Duration::from_millis(ms))));
    // 25 ms for 1 s, 40 ms for 1.5 s, 20 ms for 1.5 s.
    assert_eq!(a.down.delay, Duration::from_micros(28_750));
    assert_eq!(a.down.recorded_loss.as_ref().map(|loss| loss.at(at(0))), Some(0.02));
    assert_eq!(delays(&b.down), [25, 40, 40].map(|ms| Some(Duration::from_millis(ms))));
    assert_eq!(
        (rate(&b.down), b.up.delay, &b.up.recorded_delay),
        (Rate::from_bps(5_000_000), Duration::from_millis(7), &None)
    );
    assert!(c.down.recorded_delay.is_none());
    assert_eq!(again(&document, Folder(data())).scenario, document.scenario);
}

#[test]
fn options_and_queues_change_in_a_timeline() {
    let text = "duration = '9s'\n[[path]]\nname = 'a'\nrate = '8mbit'\ndelay = '50ms'\nprice = '1/MB'\n\
        [[path]]\nname = 'b'\nlink = 'l'\ndelay = '50ms'\n[[link]]\nname = 'l'\nrate = '16mbit'\n\
        [[timeline]]\nat = '4s'\nset = 'path.a.weight'\nvalue = 2\n\
        [[timeline]]\nat = '3s'\nset = 'path.a.backup'\nvalue = true\n\
        [[timeline]]\nat = '5s'\nset = 'path.a.price'\nvalue = 0\n\
        [[timeline]]\nat = '5s'\nset = 'path.a.cap'\nvalue = '5MB'\n\
        [[timeline]]\nat = '1s'\nset = 'path.a.queue'\nvalue = '2bdp'\n\
        [[timeline]]\nat = '1s'\nset = 'link.l.queue.up'\nvalue = '7p'\n\
        [[timeline]]\nat = '2s'\nset = 'path.b.reorder'\nvalue = { probability = 0.1, by = '3ms' }\n";
    let document = Document::parse("x.toml", text).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    let s = &document.scenario;
    let reorder = ReorderSpec { probability: 0.1, by: Duration::from_millis(3) };
    let queue = |direction| Change::Queue(Place::Path(0), direction, DropTail::Bytes(200_000));
    let expected = [
        (at(1000), queue(Direction::Down)),
        (at(1000), queue(Direction::Up)),
        (at(1000), Change::Queue(Place::Link(0), Direction::Up, DropTail::Packets(7))),
        (at(2000), Change::Reorder(1, Direction::Down, reorder)),
    ];
    assert_eq!(s.network_changes().collect::<Vec<_>>(), expected);
    let options: Vec<_> = s.option_changes(0).collect();
    assert_eq!(options.iter().map(|(when, _)| *when).collect::<Vec<_>>(), [3000, 4000, 5000, 5000].map(at));
    assert!(options.iter().all(|(_, options)| options.backup));
    assert_eq!(options[1].1.policy, PathPolicy { price: 1e-6, cap: None, weight: Some(2.0) });
    assert_eq!(options[3].1.policy, PathPolicy { price: 0.0, cap: Some(5_000_000), weight: Some(2.0) });
    assert_eq!(s.option_changes(1).count(), 0);
    let again = Document::parse("x.toml", &document.resolved()).unwrap().scenario;
    assert_eq!(again.timeline, s.timeline);
}

#[test]
fn a_route_crosses_links_in_order_and_its_answers_in_reverse() {
    let text = "duration = '9s'\n[[link]]\nname = 'a'\nrate = '20mbit'\ndelay = { down = '10ms', up = '12ms' }\n\
        loss = '1%'\narq = { loss = '5%', attempts = 3, delay = '8ms' }\n[[link]]\nname = 'b'\nrate = '8mbit'\n\
        [[path]]\nname = 'p'\nroute = ['a', 'b']\n[[path]]\nname = 'q'\nroute = ['b']\ndelay = '20ms'\n\
        [[path]]\nname = 'r'\nlink = 'b'\ndelay = '20ms'\n\
        [[cross]]\nkind = 'tcp'\nroute = ['b', 'a']\n[[cross]]\nkind = 'udp'\nrate = '1mbit'\nroute = ['a']\n\
        [[timeline]]\nat = '1s'\nset = 'link.a.delay.up'\nvalue = '15ms'\n\
        [[timeline]]\nat = '2s'\nset = 'link.b.loss'\nvalue = '3%'\n";
    let document = parse(text);
    let s = &document.scenario;
    let [p, q, r] = &s.topology.paths[..] else { panic!("three paths") };
    assert_eq!((p.down.bottleneck.route(), p.up.bottleneck.route()), (&[0, 1][..], &[1, 0][..]));
    assert_eq!((&q.down, &q.up), (&r.down, &r.up), "a link is a route of one");
    assert_eq!(s.topology.round_trip(p), Duration::from_millis(22));
    let [a, b] = &s.topology.links[..] else { panic!("two links") };
    let down = a.behind(Direction::Down).unwrap();
    assert_eq!((down.loss, down.radio.arq.attempts), (LossSpec::Bernoulli(0.01), Some(3)));
    assert_eq!(a.behind(Direction::Up).unwrap().loss, LossSpec::None);
    // 8 Mbit/s × 40 ms, the longer of 22 ms and 40 ms.
    assert_eq!(b.down.queue, QueueSpec::Bytes(40_000));
    assert_eq!(
        s.cross.iter().map(|cross| cross.over.clone()).collect::<Vec<_>>(),
        [Over::Links(vec![1, 0]), Over::Links(vec![0])]
    );
    let expected = [
        (at(1000), Change::Behind(0, Direction::Up, BehindChange::Delay(Duration::from_millis(15)))),
        (at(2000), Change::Behind(1, Direction::Down, BehindChange::Loss(LossSpec::Bernoulli(0.03)))),
    ];
    assert_eq!(s.network_changes().collect::<Vec<_>>(), expected);
    // A part that the timeline changes is there from the beginning.
    assert!(b.behind(Direction::Down).is_some_and(|way| way.loss == LossSpec::None));
    assert_eq!(again(&document, Folder(data())).scenario, document.scenario);
    assert_eq!(
        with(text, &["link.a.delay=3ms", "link.b.rate=9mbit"]).scenario.topology.delay(p, Direction::Up),
        Duration::from_millis(3)
    );
}
