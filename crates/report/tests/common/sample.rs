//! A report in which everything occurs, with names that try to break out of it.

use anabranch_recorders::{Fate, Timeline, TimelinePacket};
use anabranch_report::chart::*;
use anabranch_report::{Column, Figure, MadeBy, Report, Section, Table, Verdict};
use anabranch_reproduce::Class;
use anabranch_trace::{Decision, Decisions, Outcome, SeenPath, SendKind};

/// Would be a script, and an image that fetches, if anything let it.
pub const HOSTILE: &str = "</script><script>document.title='broken'</script>\"'><img src=http://127.0.0.1:9/x onerror=document.title='broken'>{{ 7*7 }}";

pub fn report() -> Report {
    let figures = vec![bars(), lines(), distribution(), series(), scatter()];
    let charts = Section {
        id: "charts".into(),
        title: format!("Charts {HOSTILE}"),
        about: vec!["Every kind.".into(), HOSTILE.into()],
        figures,
        tables: vec![table()],
        verdicts: vec!["goodput".into()],
        ..Section::default()
    };
    let timelines = Section {
        id: "timelines".into(),
        title: "Packet timelines".into(),
        figures: vec![figure("minrtt", false, Chart::Timeline(timeline(20_000)))],
        ..Section::default()
    };
    Report {
        title: "A report in which everything occurs".into(),
        subtitle: HOSTILE.into(),
        answer: vec!["blest has the highest goodput.".into(), HOSTILE.into()],
        made_by: MadeBy { version: "0.1.0".into(), git_commit: Some("0123abc".into()) },
        settings: vec![("machine".into(), "2 cores".into()), (HOSTILE.into(), HOSTILE.into())],
        seeds: (1..=20).collect(),
        scenario_texts: vec![(HOSTILE.into(), format!("name = '{HOSTILE}'\n{}", "x".repeat(300)))],
        schedulers: ["fifo", "roundrobin", "minrtt", "daps", "otias", "blest"].map(str::to_owned).to_vec(),
        verdicts: verdicts(),
        sections: vec![charts, timelines],
        packets: None,
    }
}

fn verdicts() -> Vec<Verdict> {
    let verdict = |item: &str, class, reason: &str| Verdict {
        item: item.into(),
        claim: format!("BLEST raises {item} against minRTT in 3G+WLAN"),
        place: "Fig 8a".into(),
        published: "+12 %".into(),
        ours: "+10.4 % (8.1 to 12.6, n = 50)".into(),
        class,
        reason: reason.into(),
    };
    vec![
        verdict("goodput", Class::InSize, "direction and magnitude"),
        verdict("completion", Class::Direction, "background traffic is not given"),
        verdict("OFO", Class::UnderNone, HOSTILE),
        verdict("web", Class::Open, "the number of flows is missing"),
    ]
}

fn figure(title: &str, folded: bool, chart: Chart) -> Figure {
    Figure { title: title.into(), caption: format!("Caption of {title}."), group: String::new(), folded, chart }
}

fn mean(mean: f64, half: f64) -> Mean {
    Mean { mean, low: Some(mean - half), high: Some(mean + half), n: 20 }
}

fn bars() -> Figure {
    let bar = |group: &str, row: &str, value: f64, published| Bar {
        group: group.into(),
        row: row.into(),
        ours: Some(mean(value, 0.25)),
        published,
    };
    let bars = vec![
        bar("3G+WLAN", "minrtt+pr", 5.9, Some(6.1)),
        bar("3G+WLAN", "blest", 6.6, Some(6.8)),
        bar("3G+WLAN", "daps", 4.2, None),
        bar("WLAN+WLAN", "minrtt+pr", 9.1, None),
        bar("WLAN+WLAN", "blest", 9.2, Some(9.2)),
        bar("WLAN+WLAN", HOSTILE, -0.5, None),
    ];
    figure("Goodput", false, Chart::Bars(Bars { axis: Axis::linear("goodput, Mbit/s"), bars }))
}

fn lines() -> Figure {
    let line = |name: &str, slope: f64| Line {
        name: name.into(),
        points: [16.0, 64.0, 256.0, 1024.0, 8192.0].map(|x: f64| (x, mean(slope * x.sqrt(), 0.1 * x.sqrt()))).to_vec(),
        published: vec![(64.0, slope * 8.5), (1024.0, slope * 30.0)],
    };
    let x = Axis { log: true, ..Axis::linear("file size, KB") };
    let lines = vec![line("minrtt", 0.5), line("otias", 0.42), line("blest", 0.35)];
    figure("Completion time", false, Chart::Lines(Lines { x, y: Axis::linear("completion, s"), lines }))
}

fn distribution() -> Figure {
    let density = |name: &str, rate: f64| Density {
        name: name.into(),
        shares: (0..60).map(|x| (x, (1.0 - rate) * libm::pow(rate, x as f64))).collect(),
    };
    let curves = vec![density("fifo", 0.95), density("daps", 0.8), density("otias", 0.6)];
    let (x, y) = (Axis::linear("occupancy, packets"), Axis { log: true, ..Axis::linear("share of arrivals") });
    figure("Reorder-buffer occupancy", false, Chart::Distribution(Distribution { x, y, curves }))
}

fn series() -> Figure {
    let curve = |name: &str, scale: f64| {
        let wave = |i: usize| scale * (2.0 + libm::sin(i as f64 / 9.0));
        Curve {
            name: name.into(),
            start_s: 0.0,
            step_s: 0.1,
            mean: (0..200).map(|i| (i > 5).then(|| wave(i))).collect(),
            low: (0..200).map(|i| (i > 5).then(|| 0.8 * wave(i))).collect(),
            high: (0..200).map(|i| (i > 5).then(|| 1.2 * wave(i))).collect(),
        }
    };
    let panel = |label: &str, scale: f64| Panel {
        axis: Axis::linear(label),
        curves: vec![curve("wlan", scale), curve("3g", 2.2 * scale)],
    };
    let ofo = Panel { axis: Axis::linear("OFO, KiB"), curves: vec![curve("", 30_000.0)] };
    let panels = vec![ofo, panel("cwnd, packets", 20.0), panel("SRTT, s", 0.05), panel("queue, packets", 400.0)];
    figure("Over time", false, Chart::TimeSeries(TimeSeries { panels, warmup_s: 2.0 }))
}

fn scatter() -> Figure {
    let points = (0..40).map(|i| (1.0 + f64::from(i) / 8.0, 20.0 * f64::from(i % 7) + 15.0 * f64::from(i))).collect();
    let model = (0..50).map(|i| (1.0 + f64::from(i) / 10.0, 13.0 * f64::from(i))).collect();
    let set = |name: &str, points| Points { name: name.into(), points };
    let (x, y) = (Axis::linear("RTT ratio γ"), Axis::linear("head start, packets"));
    let scatter =
        Scatter { x, y, sets: vec![set("measured", points)], models: vec![set("model", model)], r2: Some(0.8758) };
    figure("Delayed start", false, Chart::Scatter(scatter))
}

fn table() -> Table {
    let columns = ["scheduler", "goodput, Mbit/s", "completion, s", "OFO mean, KiB", "retransmitted, packets", "price"];
    let head = |(i, name): (usize, &str)| if i == 0 { Column::text(name) } else { Column::numeric(name) };
    let row = |name: &str| {
        [name, "5.92 ± 0.24", "12.41 ± 0.31", "1083 ± 213", "174.8 ± 20.1", "0.31"].map(str::to_owned).to_vec()
    };
    Table {
        id: "means".into(),
        title: "Means & intervals".into(),
        columns: columns.into_iter().enumerate().map(head).collect(),
        rows: ["minrtt+pr", "blest", HOSTILE].map(row).to_vec(),
        note: "± is the half-width of the 95 % interval.".into(),
        folded: false,
    }
}

/// A fast path of 25 ms and a slow one of 90 ms, every sixth packet on the slow one: what follows it waits. Each 97th packet
/// is lost and retransmitted.
pub fn timeline(count: usize) -> Timeline {
    let mut packets: Vec<TimelinePacket> = Vec::new();
    let mut in_order: f64 = 0.0;
    for i in 0..count {
        let sent_s = 0.001 * i as f64;
        let path = usize::from(i % 6 == 5);
        let data_start = 1400 * i as u64;
        let lost = i % 97 == 96;
        let delay = [0.025, 0.09][path];
        let arrived_s = if lost { sent_s + 0.11 } else { sent_s + delay };
        in_order = in_order.max(arrived_s);
        let first = TimelinePacket {
            data_start,
            data_end: data_start + 1400,
            path,
            bound_s: sent_s - if path == 1 { 0.004 } else { 0.0 },
            sent_s,
            arrived_s: (!lost).then_some(arrived_s),
            subflow_in_order_s: (!lost).then_some(arrived_s),
            delivered_s: (!lost).then_some(in_order),
            kind: SendKind::First,
            fate: if lost { Fate::Lost } else { Fate::Delivered },
        };
        packets.push(first);
        if lost {
            let sent_s = sent_s + 0.085;
            let again = TimelinePacket {
                path: 0,
                bound_s: sent_s,
                sent_s,
                arrived_s: Some(sent_s + 0.025),
                subflow_in_order_s: Some(sent_s + 0.025),
                delivered_s: Some(in_order),
                fate: Fate::Delivered,
                kind: SendKind::Opportunistic,
                ..first
            };
            packets.push(again);
        }
    }
    packets.sort_by(|a, b| a.sent_s.total_cmp(&b.sent_s));
    packets.truncate(count);
    let decisions = Some(decisions(&packets));
    Timeline { paths: vec!["wlan".into(), "3g".into()], duration_s: 0.001 * count as f64 + 0.2, packets, decisions }
}

/// One for each packet that was sent for the first time, with a slow path whose RTT grows.
fn decisions(packets: &[TimelinePacket]) -> Decisions {
    let path = |room, srtt_s, planned: Option<f64>| SeenPath {
        usable: true,
        room,
        left: 0,
        srtt_s: Some(srtt_s),
        cwnd: 30,
        in_flight: 30 - room,
        queued: 0,
        state: planned.into_iter().collect(),
    };
    let first = packets.iter().filter(|packet| packet.kind == SendKind::First);
    let decision = |packet: &TimelinePacket| Decision {
        at_s: packet.bound_s,
        outcome: Outcome::Bound,
        backlog_bytes: 100_000,
        window_bytes: 50_000 + packet.data_start % 7000,
        paths: vec![
            path(packet.path as u32 ^ 1, 0.05, Some(3.0)),
            path(packet.path as u32, 0.18 + packet.sent_s / 1e3, None),
        ],
        state: vec![1.25],
    };
    let mut rows: Vec<Decision> = first.map(decision).collect();
    rows.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    Decisions { state: vec!["lambda".into()], path_state: vec!["planned".into()], rows }
}
