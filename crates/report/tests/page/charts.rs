//! Charts of values that are missing, negative or not finite.

use super::browser::Browser;
use super::{PAINTED, page_of};
use anabranch_recorders::{Fate, Timeline, TimelinePacket};
use anabranch_report::chart::*;
use anabranch_report::{Figure, Report, Section};
use anabranch_trace::SendKind;
use tempfile::TempDir;

/// A page with one figure.
fn shown(chart: Chart) -> Option<(TempDir, Browser)> {
    let figure = Figure { title: "A chart".into(), caption: String::new(), group: String::new(), folded: false, chart };
    let section = Section { id: "a".into(), figures: vec![figure], ..Section::default() };
    let schedulers = (0..30).map(|i| format!("scheduler{i}")).collect();
    let report = Report { sections: vec![section], schedulers, ..Report::default() };
    let (folder, browser) = page_of(&report)?;
    assert_eq!(browser.complaints, Vec::<String>::new());
    Some((folder, browser))
}

/// The numbers at an axis of each panel.
fn ticks(page: &mut Browser, axis: &str) -> Vec<Vec<f64>> {
    let texts = format!(
        "[...document.querySelectorAll('.chart svg')].map((svg) => \
         [...svg.querySelectorAll('[data-part=\"{axis}-axis tick label\"] text')].map((text) => +text.textContent.replace('−', '-')))"
    );
    serde_json::from_value(page.value(&texts)).unwrap()
}

fn remarks(page: &mut Browser) -> String {
    page.text("document.querySelector('.remarks').textContent")
}

fn mean(mean: f64, low: f64, high: f64) -> Mean {
    Mean { mean, low: Some(low), high: Some(high), n: 3 }
}

fn bars(axis: Axis, values: &[(&str, &str, Mean)]) -> Chart {
    let bar = |(group, row, mean): &(&str, &str, Mean)| Bar {
        group: (*group).into(),
        row: (*row).into(),
        ours: Some(*mean),
        published: None,
    };
    Chart::Bars(Bars { axis, bars: values.iter().map(bar).collect() })
}

#[test]
fn bars_of_nothing_are_nothing_wide() {
    let zeros = [("", "a", mean(0.0, 0.0, 0.0)), ("", "b", mean(0.0, 0.0, 0.0))];
    let Some((_folder, mut page)) = shown(bars(Axis::linear("timeouts"), &zeros)) else { return };
    let width =
        "Math.max(...[...document.querySelectorAll('[data-part=bar] rect')].map((bar) => +bar.getAttribute('width')))";
    assert_eq!(page.number(width), 0.0);
    assert_eq!((ticks(&mut page, "x")[0][0], *ticks(&mut page, "x")[0].last().unwrap()), (0.0, 1.0));
}

#[test]
fn intervals_of_what_cannot_be_negative_end_at_zero() {
    let wide = [("", "a", mean(5.0, -2000.0, 2010.0)), ("", "b", mean(40.0, 30.0, 50.0))];
    let Some((_folder, mut page)) = shown(bars(Axis::linear("completion, s"), &wide)) else { return };
    assert_eq!(ticks(&mut page, "x")[0][0], 0.0);
    let begin = "document.querySelector('.interval line').getBoundingClientRect().left \
                 - document.querySelector('[data-part=bar] rect').getBoundingClientRect().left";
    assert!(page.number(begin).abs() < 3.0);

    // A quantity that may be negative keeps its interval.
    let signed = Axis { signed: true, ..Axis::linear("aggregation benefit") };
    let (_folder, mut page) = shown(bars(signed, &[("", "a", mean(0.1, -0.4, 0.6))])).unwrap();
    assert!(ticks(&mut page, "x")[0][0] <= -0.4);

    let curve = Curve {
        name: "a".into(),
        step_s: 1.0,
        mean: vec![Some(1.0), Some(2.0)],
        low: vec![Some(-50.0), Some(1.0)],
        high: vec![Some(52.0), Some(3.0)],
        ..Curve::default()
    };
    let panel = Panel { axis: Axis::linear("cwnd, packets"), curves: vec![curve] };
    let (_folder, mut page) = shown(Chart::TimeSeries(TimeSeries { panels: vec![panel], warmup_s: 0.0 })).unwrap();
    assert!(ticks(&mut page, "y").concat().iter().all(|tick| *tick >= 0.0));
    assert!(page.number("document.querySelector('.chart svg').getBoundingClientRect().height") > 300.0);
}

#[test]
fn panels_that_differ_more_than_tenfold_have_axes_of_their_own() {
    let far = [("16 KiB", "a", mean(0.2, 0.1, 0.3)), ("8 MiB", "a", mean(80.0, 70.0, 90.0))];
    let Some((_folder, mut page)) = shown(bars(Axis::linear("completion, s"), &far)) else { return };
    let last = |page: &mut Browser| ticks(page, "x").iter().map(|panel| *panel.last().unwrap()).collect::<Vec<_>>();
    assert!(last(&mut page)[0] < 0.5 && last(&mut page)[1] >= 80.0, "{:?}", last(&mut page));
    assert!(remarks(&mut page).contains("axis of its own"));

    let near = [("1", "a", mean(20.0, 10.0, 30.0)), ("2", "a", mean(80.0, 70.0, 90.0))];
    let (_folder, mut page) = shown(bars(Axis::linear("completion, s"), &near)).unwrap();
    assert_eq!(last(&mut page)[0], last(&mut page)[1]);
    assert_eq!(remarks(&mut page), "");
}

#[test]
fn the_bulk_of_a_distribution_is_seen_beside_its_tail() {
    let tail = |name: &str, far: i64| Density { name: name.into(), shares: vec![(0, 0.6), (7, 0.36), (far, 0.04)] };
    let curves = vec![tail("scheduler0", 224), tail("scheduler1", 290)];
    let chart = Distribution { x: Axis::linear("occupancy, packets"), y: Axis::linear("share"), curves };
    let Some((_folder, mut page)) = shown(Chart::Distribution(chart)) else { return };
    let titles = page.value("[...document.querySelectorAll('.group')].map((title) => title.textContent)");
    assert_eq!(titles, serde_json::json!(["Where 95 % of every row lie", "All"]));
    let ends: Vec<f64> = ticks(&mut page, "x").iter().map(|panel| *panel.last().unwrap()).collect();
    assert!((5.0..=7.0).contains(&ends[0]) && (200.0..=290.0).contains(&ends[1]), "{ends:?}");

    // Without a tail one panel says all.
    let even = Density { name: "scheduler0".into(), shares: (0..20).map(|x| (x, 0.05)).collect() };
    let chart = Distribution { x: Axis::linear("packets"), y: Axis::linear("share"), curves: vec![even] };
    let (_folder, mut page) = shown(Chart::Distribution(chart)).unwrap();
    assert_eq!(ticks(&mut page, "x").len(), 1);
}

#[test]
fn of_lines_that_agree_both_are_seen() {
    let line = |name: &str, last: f64| Line {
        name: name.into(),
        points: [(1.0, 2.0), (2.0, 5.0), (3.0, last)].map(|(x, y)| (x, mean(y, y, y))).to_vec(),
        published: Vec::new(),
    };
    let lines = vec![
        line("scheduler0", 9.0),
        line("scheduler21", 9.0),
        line("scheduler7(delta=1)", 7.0),
        line("scheduler7(delta=2)", 6.0),
    ];
    let chart = Lines { x: Axis::linear("loss, %"), y: Axis::linear("Mbit/s"), lines };
    let Some((_folder, mut page)) = shown(Chart::Lines(chart)) else { return };
    let of = |page: &mut Browser, attribute: &str| -> Vec<String> {
        let lines = "[...document.querySelectorAll('.chart [data-part=line]')]";
        serde_json::from_value(page.value(&format!("{lines}.map((line) => line.getAttribute('{attribute}') ?? '')")))
            .unwrap()
    };
    let widths: Vec<f64> = of(&mut page, "stroke-width").iter().map(|width| width.parse().unwrap()).collect();
    assert!(widths[0] > 2.0 * widths[1] && widths[1] == widths[2], "{widths:?}");
    assert!(remarks(&mut page).starts_with("scheduler21 on scheduler0"), "{}", remarks(&mut page));
    // Places 0, 7 and 21 have one hue.
    let (colours, dashes) = (of(&mut page, "stroke"), of(&mut page, "stroke-dasharray"));
    for i in 0..4 {
        assert!((0..i).all(|j| (&colours[i], &dashes[i]) != (&colours[j], &dashes[j])), "{colours:?} {dashes:?}");
    }
}

/// One packet that was delivered, one lost, one that waits for it and one on its way, when the run ends after a second.
fn unfinished() -> Timeline {
    let packet = |n: u64, arrived_s, delivered_s, fate| TimelinePacket {
        data_start: 1400 * n,
        data_end: 1400 * (n + 1),
        path: 0,
        bound_s: 0.1 * n as f64,
        sent_s: 0.1 * n as f64,
        arrived_s,
        subflow_in_order_s: (n == 0).then_some(0.5).or(arrived_s.map(|at| at + 0.1)),
        delivered_s,
        kind: SendKind::First,
        fate,
    };
    let packets = vec![
        packet(0, Some(0.5), Some(0.5), Fate::Delivered),
        packet(1, None, None, Fate::Lost),
        packet(2, Some(0.7), None, Fate::Waiting),
        packet(3, None, None, Fate::OnTheWay),
    ];
    Timeline { paths: vec!["wlan".into()], duration_s: 1.0, packets, decisions: None }
}

#[test]
fn what_waits_or_is_on_its_way_at_the_end_is_drawn_until_the_end() {
    let Some((_folder, mut page)) = shown(Chart::Timeline(unfinished())) else { return };
    assert_eq!(page.text("document.querySelector('.stage').dataset.to"), "1");
    let packets = "document.querySelector('.stage').packets";
    // Until 0.8 s behind a gap of its subflow, then in the connection's queue.
    for (since, from) in [("arrived", 0.7), ("ordered", 0.8)] {
        let steps = page.value(&format!("((p) => waitingBytes(p, p.{since}))({packets})"));
        assert_eq!(steps, serde_json::json!([[from, 1400], [1, 0]]));
    }
    // How far right each stroke reaches, of the packets in order.
    let reach = |page: &mut Browser, stroke: &str| -> Vec<Option<f64>> {
        let pen = "{ moveTo: () => {}, lineTo: (x) => { most = Math.max(most ?? 0, x); } }";
        let of = format!(
            "[0, 1, 2, 3].map((i) => {{ let most = null; strokes.{stroke}({pen}, {packets}, i, (t) => t, 0, 0); return most; }})"
        );
        serde_json::from_value(page.value(&of)).unwrap()
    };
    assert_eq!(reach(&mut page, "flight"), [Some(0.5), None, Some(0.7), Some(1.0)]);
    assert_eq!(reach(&mut page, "subflow"), [None, None, Some(0.8), None]);
    assert_eq!(reach(&mut page, "queue"), [None, None, Some(1.0), None]);
    assert_eq!(reach(&mut page, "lost"), [None, Some(0.1), None, None]);
    page.value("document.querySelector('.stage').focus()");
    let mut told = || {
        page.press("ArrowUp");
        page.text("document.querySelector('.told').textContent")
    };
    let ends = [
        "waited 0 ms in its subflow, 0 ms in the OFO queue",
        "lost",
        "waited for earlier data at the end",
        "on its way at the end",
    ];
    assert_eq!(ends.map(|end| told().ends_with(end)), [true; 4]);
}

#[test]
fn where_there_are_more_packets_than_pixels_all_paths_are_seen() {
    // Twice as many packets on the first path as on the second, which waits the longer.
    let packet = |n: u64| TimelinePacket {
        data_start: 1400 * n,
        data_end: 1400 * (n + 1),
        path: usize::from(n % 3 == 2),
        bound_s: 1e-4 * n as f64,
        sent_s: 1e-4 * n as f64,
        arrived_s: Some(1e-4 * n as f64 + 0.05),
        subflow_in_order_s: Some(1e-4 * n as f64 + 0.05),
        delivered_s: Some(1e-4 * n as f64 + 0.4),
        kind: SendKind::First,
        fate: Fate::Delivered,
    };
    let paths = vec!["wlan".into(), "3g".into()];
    let chart = Timeline { paths, duration_s: 1.0, packets: (0..6000).map(packet).collect(), decisions: None };
    let Some((_folder, mut page)) = shown(Chart::Timeline(chart)) else { return };
    page.wait_for(PAINTED);
    // Pixels with more blue than red, and with more red than blue.
    let pixels = "(() => { const c = document.querySelector('.stage canvas'); \
                  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let [blue, red] = [0, 0]; \
                  for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) { if (d[i + 2] > d[i] + 60) blue++; if (d[i] > d[i + 2] + 60) red++; } \
                  return [blue, red]; })()";
    let [blue, red]: [f64; 2] = serde_json::from_value(page.value(pixels)).unwrap();
    assert!(blue > 10_000.0 && red > 10_000.0, "{blue} {red}");
    assert!(blue / red < 2.0 && red / blue < 2.0, "{blue} {red}");
    // Sixteen packets at once cover what each covers, and at most a pixel more.
    let strays = "(() => { const { packets, paths } = document.querySelector('.stage'), wide = 1000, high = 200; let strays = [];                   const x = [0, wide], y = [high, -high / 8.4];                   for (const lists of drawnBy(packets, paths.length).values()) for (const list of lists) {                     const singles = list.of.map((i, k) => ({ first: k, until: k + 1, from: list.from[k], to: list.to[k], low: middle(packets, i), high: middle(packets, i), apart: 0 }));                     const [together, single] = [list, { ...list, blocks: singles }].map((one) => {                       const sheet = pixelSheet(wide, high), covered = new Uint8Array(wide * high); coverAll(sheet, packets, one, [0, 1], x, y, 0, 1);                       sheet.take((at, row, length) => covered.fill(1, row * wide + at, row * wide + at + length)); return covered; });                     const near = (set, i) => [-1, 0, 1].some((row) => [-1, 0, 1].some((step) => set[i + row * wide + step]));                     let pixels = 0, missed = 0, far = 0;                     for (let i = 0; i < wide * high; i++) { pixels += single[i]; if (single[i] && !near(together, i)) missed++; if (together[i] && !near(single, i)) far++; }                     if (pixels) strays.push([pixels > 100, missed, far]); }                   return strays; })()";
    let strays: Vec<(bool, u32, u32)> = serde_json::from_value(page.value(strays)).unwrap();
    assert!(strays.len() >= 6 && strays.iter().all(|stray| *stray == (true, 0, 0)), "{strays:?}");
}
