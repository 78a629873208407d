//! Charts over time: one window and one choice of names for all.

use super::browser::Browser;
use super::page_of;
use anabranch_report::chart::*;
use anabranch_report::{Figure, Report, Section};
use serde_json::json;
use tempfile::TempDir;

fn curve(name: &str, value: impl Fn(usize) -> f64) -> Curve {
    let mean = (0..400).map(|i| Some(value(i))).collect();
    Curve { name: name.into(), step_s: 0.1, mean, ..Curve::default() }
}

fn figure(label: &str, curves: Vec<Curve>) -> Figure {
    let panels = vec![Panel { axis: Axis::linear(label), curves }];
    let chart = Chart::TimeSeries(TimeSeries { panels, warmup_s: 10.0 });
    Figure { title: label.into(), caption: String::new(), group: String::new(), folded: false, chart }
}

/// Two charts of two schedulers over 40 s, in the first a burst.
fn shown() -> Option<(TempDir, Browser)> {
    let burst = |i: usize| if i == 200 { 430.0 } else { 5.0 };
    let goodput = figure("goodput, Mbit/s", vec![curve("minrtt", burst), curve("blest", |_| 6.0)]);
    let window = figure("cwnd, packets", vec![curve("minrtt", |i| i as f64), curve("blest", |i| 2.0 * i as f64)]);
    let section = Section { id: "t".into(), figures: vec![goodput, window], ..Section::default() };
    let report =
        Report { sections: vec![section], schedulers: vec!["minrtt".into(), "blest".into()], ..Report::default() };
    page_of(&report)
}

/// The numbers at an axis of a figure.
fn ticks(page: &mut Browser, figure: u32, axis: &str) -> Vec<f64> {
    let texts = format!(
        "[...document.querySelectorAll('#t-figure-{figure} [data-part=\"{axis}-axis tick label\"] text')].map((text) => +text.textContent)"
    );
    serde_json::from_value(page.value(&texts)).unwrap()
}

/// First and last second of a figure.
fn times(page: &mut Browser, figure: u32) -> (f64, f64) {
    let ticks = ticks(page, figure, "x");
    (ticks[0], *ticks.last().unwrap())
}

#[test]
fn a_burst_does_not_flatten_the_rest_and_is_told() {
    let Some((_folder, mut page)) = shown() else { return };
    assert!(*ticks(&mut page, 1, "y").last().unwrap() <= 10.0, "{:?}", ticks(&mut page, 1, "y"));
    let remarks = page.text("document.querySelector('#t-figure-1 .remarks').textContent");
    assert!(remarks.contains("cut off, the greatest is 430"), "{remarks}");
    // Values that only rise are no burst.
    assert!(*ticks(&mut page, 2, "y").last().unwrap() >= 750.0);
    let warm_up = "document.querySelector('#t-figure-1 .warmup rect').getBoundingClientRect().width \
                   / document.querySelector('#t-figure-1 .brush .overlay').getBoundingClientRect().width";
    assert!((page.number(warm_up) - 0.25).abs() < 0.01, "10 s of 40 are shaded");
}

#[test]
fn a_drag_or_a_key_in_one_chart_moves_all() {
    let Some((_folder, mut page)) = shown() else { return };
    let of =
        |what: &str| format!("document.querySelector('#t-figure-1 .brush .overlay').getBoundingClientRect().{what}");
    let (left, width) = (page.number(&of("x")), page.number(&of("width")));
    let y = page.number(&of("y")) + 60.0;
    let press = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
    page.mouse("mousePressed", left + width * 0.5, y, press.clone());
    page.mouse("mouseMoved", left + width * 0.7, y, press.clone());
    page.mouse("mouseReleased", left + width * 0.75, y, json!({ "button": "left", "clickCount": 1 }));
    page.wait_for("overTime.window !== null");
    for figure in [1, 2] {
        let (from, to) = times(&mut page, figure);
        assert!((19.0..22.0).contains(&from) && (26.0..=28.0).contains(&to), "{figure}: {from} to {to}");
    }
    page.value("document.querySelector('#t-figure-2 .chart').focus()");
    page.press("Home");
    assert_eq!(times(&mut page, 1), (0.0, 40.0));
    page.press("+");
    let (from, to) = times(&mut page, 1);
    assert!(from > 5.0 && to < 35.0 && times(&mut page, 2) == (from, to), "{from} to {to}");
    page.press("ArrowRight");
    assert!(times(&mut page, 1).0 > from);
    // Never beyond the end.
    (0..20).for_each(|_| page.press("ArrowRight"));
    assert!(times(&mut page, 1).1 <= 40.0);
    page.value(
        "[...document.querySelectorAll('#t-figure-1 .keys button')].find((b) => b.textContent === 'Show all').click()",
    );
    assert_eq!(times(&mut page, 2), (0.0, 40.0));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_name_is_hidden_in_all_charts() {
    let Some((_folder, mut page)) = shown() else { return };
    let lines = |page: &mut Browser| {
        [1, 2].map(|figure| {
            page.number(&format!("document.querySelectorAll('#t-figure-{figure} [data-part=line] path').length"))
        })
    };
    assert_eq!(lines(&mut page), [2.0, 2.0]);
    let button = "document.querySelector('#t-figure-1 .legend button')";
    page.value(&format!("{button}.focus()"));
    page.value(&format!("{button}.click()"));
    assert_eq!(lines(&mut page), [1.0, 1.0]);
    assert_eq!(page.text(&format!("{button}.getAttribute('aria-pressed')")), "false");
    assert_eq!(page.value(&format!("document.activeElement === {button}")), true);
    page.value(&format!("{button}.click()"));
    assert_eq!(lines(&mut page), [2.0, 2.0]);
}

#[test]
fn the_numbers_of_the_shown_times_are_a_table_and_all_of_them_a_file() {
    let Some((_folder, mut page)) = shown() else { return };
    page.value("save = (name, text) => { window.saved = [name, text.join('')]; }; 0");
    page.value("overTime.show([19.95, 20.25])");
    // A summary has the focus of the keyboard.
    page.value("document.querySelector('#t-figure-1 .numbers summary').focus()");
    page.value("document.activeElement.click()");
    page.wait_for("document.querySelector('#t-figure-1 .values table') !== null");
    let rows = "[...document.querySelectorAll('#t-figure-1 .values tr')].map((row) => [...row.children].map((cell) => cell.textContent))";
    let expected = json!([
        ["time, s", "goodput, Mbit/s, minrtt", "goodput, Mbit/s, blest"],
        ["19.95", "5", "6"],
        ["20.05", "430", "6"],
        ["20.15", "5", "6"],
        ["20.25", "5", "6"],
    ]);
    assert_eq!(page.value(rows), expected);
    page.value("document.querySelector('#t-figure-1 .values button').click()");
    let [name, text]: [String; 2] = serde_json::from_value(page.value("window.saved")).unwrap();
    assert_eq!((name.as_str(), text.lines().count()), ("t-goodput.csv", 401));
    let head = "\"time, s\",\"goodput, Mbit/s, minrtt\",\"goodput, Mbit/s, blest\"";
    assert_eq!(text.lines().take(2).collect::<Vec<_>>(), [head, "0.05,5,6"]);
    // At 420 px it scrolls in its own box, by keyboard too.
    page.screen(420, 900, true);
    assert!(page.number("document.documentElement.scrollWidth - innerWidth") <= 0.0);
    assert_eq!(page.number("document.querySelector('#t-figure-1 .values .wide').tabIndex"), 0.0);
    page.photograph("numbers-420", Some("#t-figure-1"));
    assert_eq!(page.complaints, Vec::<String>::new());
}
