//! The page in a browser. Screenshots are left in target/screenshots.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the tests start a browser and talk to it")]

#[path = "page/axe.rs"]
mod axe;
#[path = "common/browser.rs"]
mod browser;
#[path = "page/charts.rs"]
mod charts;
#[path = "page/hostile.rs"]
mod hostile;
#[path = "page/over_time.rs"]
mod over_time;
#[path = "common/sample.rs"]
mod sample;

use anabranch_report::{Report, html};
use browser::Browser;
use sample::HOSTILE;
use std::fs;
use tempfile::TempDir;

/// After the next picture.
const PAINTED: &str = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";

/// The page of `report`, in a folder of its own, in a browser.
fn page_of(report: &Report) -> Option<(TempDir, Browser)> {
    let mut browser = Browser::start()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, html(report)).unwrap();
    browser.prefer("light");
    browser.screen(1200, 900, false);
    browser.open(&file);
    Some((folder, browser))
}

/// The sample's page.
fn opened() -> Option<(TempDir, Browser)> {
    page_of(&sample::report())
}

#[test]
fn the_page_is_whole_and_quiet_and_says_what_the_data_says() {
    let Some((_folder, mut page)) = opened() else { return };
    // Verdicts come first, counted, each as word and sign, and each once: with its section, if it has one.
    assert_eq!(page.text("document.querySelector('#answer .first').textContent"), "blest has the highest goodput.");
    assert_eq!(page.text("document.querySelectorAll('main section')[1].id"), "verdicts");
    let marks = |page: &mut Browser, of: &str| {
        page.value(&format!("[...document.querySelectorAll('{of} .mark')].map((mark) => mark.textContent)"))
    };
    let counts = ["? 1 open", "✓ 1 reproduces in size", "≈ 1 direction", "✗ 1 under none"];
    assert_eq!(marks(&mut page, "#verdicts > .counts"), serde_json::json!(counts));
    assert_eq!(marks(&mut page, "#verdicts .items"), serde_json::json!(["✓ 1 reproduces in size"]));
    let at_the_top = ["≈ direction", "✗ under none", "? open"];
    assert_eq!(marks(&mut page, "#verdicts tbody"), serde_json::json!(at_the_top));
    assert_eq!(marks(&mut page, "#charts tbody"), serde_json::json!(["✓ reproduces in size"]));

    // The drawing is that of the data.
    let drawn = |page: &mut Browser, figure: u32, selector: &str| {
        page.number(&format!("document.querySelectorAll('#charts-figure-{figure} .chart {selector}').length"))
    };
    assert_eq!(drawn(&mut page, 1, "[data-part=bar] rect"), 6.0);
    assert_eq!(drawn(&mut page, 1, ".published path"), 3.0);
    assert_eq!(drawn(&mut page, 1, ".interval line"), 6.0);
    assert_eq!(drawn(&mut page, 2, "[data-part=line] path"), 3.0);
    assert_eq!(drawn(&mut page, 2, "[data-part=area] path"), 3.0);
    assert_eq!(drawn(&mut page, 2, ".published path"), 6.0);
    assert_eq!(drawn(&mut page, 3, "[data-part=line] path"), 3.0);
    assert_eq!(drawn(&mut page, 4, "[data-part=line] path"), 7.0);
    assert_eq!(drawn(&mut page, 5, "[data-part=dot] path"), 40.0);
    let words = page.text("document.querySelector('#charts-figure-1 svg[role=img]').getAttribute('aria-label')");
    assert!(
        words.starts_with("Bars: goodput, Mbit/s. 3G+WLAN, minrtt+pr 5.9 (5.65 to 6.15), published 6.1;"),
        "{words}"
    );
    assert!(
        page.text("document.querySelector('#charts-figure-5 .tools p').textContent")
            .contains("R² of the model: 0.8758")
    );
    // The bar of 6.6 ends at 6.6 of the axis.
    let at = "(() => { const svg = document.querySelectorAll('#charts-figure-1 .chart svg')[0]; \
              const bar = svg.querySelectorAll('[data-part=bar] rect')[1].getBoundingClientRect().right; \
              const ticks = [...svg.querySelectorAll('[data-part=\"x-axis tick label\"] text')]; \
              const place = (e) => { const r = e.getBoundingClientRect(); return (r.left + r.right) / 2; }; \
              const zero = ticks.find((e) => e.textContent === '0'), last = ticks.at(-1); \
              return (bar - place(zero)) / (place(last) - place(zero)) * Number(last.textContent); })()";
    assert!((page.number(at) - 6.6).abs() < 0.03, "the bar ends at {}", page.number(at));

    // Names are shown, not obeyed.
    assert_eq!(page.text("document.title"), "A report in which everything occurs");
    assert_eq!(page.text("document.querySelector('.subtitle').textContent"), HOSTILE);
    assert_eq!(page.number("document.querySelectorAll('img').length"), 0.0);

    page.photograph("light", None);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn schedulers_have_one_colour_in_all_charts() {
    let Some((_folder, mut page)) = opened() else { return };
    let bar = page.text("document.querySelectorAll('#charts-figure-1 [data-part=bar] rect')[1].getAttribute('fill')");
    let line = "document.querySelectorAll('#charts-figure-2 [data-part=line]')[2].getAttribute('stroke')";
    assert_eq!((bar.as_str(), page.text(line).as_str()), ("var(--c5)", "var(--c5)"));
    let hollow = "getComputedStyle(document.querySelectorAll('#charts-figure-1 [data-part=bar] rect')[0]).fillOpacity";
    assert!(page.text(hollow).parse::<f64>().unwrap() < 0.5);
}

#[test]
fn the_timeline_zooms_by_wheel_keys_buttons_and_brush_and_tells_packets() {
    let Some((_folder, mut page)) = opened() else { return };
    page.value("document.querySelector('.stage').scrollIntoView({ block: 'center', behavior: 'instant' })");
    let stage = |what: &str| format!("document.querySelector('.stage').{what}");
    let window = |page: &mut Browser| {
        let mut end = |what: &str| page.text(&stage(&format!("dataset.{what}"))).parse::<f64>().unwrap();
        (end("from"), end("to"), end("seen"))
    };
    let picture = format!("{}.querySelector('canvas').toDataURL()", stage("").trim_end_matches('.'));
    let whole = window(&mut page);
    assert_eq!((whole.0, whole.2), (0.0, 20_000.0));
    page.photograph("timeline-whole", Some("#timelines-figure-1"));
    let before = page.text(&picture);

    let (x, y) = (
        page.number(&stage("getBoundingClientRect().x")) + 600.0,
        page.number(&stage("getBoundingClientRect().y")) + 200.0,
    );
    page.mouse("mouseWheel", x, y, serde_json::json!({ "deltaX": 0, "deltaY": -1200 }));
    page.wait_for("document.querySelector('.stage').dataset.seen < 15000");
    let wheeled = window(&mut page);
    assert!(wheeled.0 > whole.0 && wheeled.1 < whole.1, "{wheeled:?}");
    page.wait_for(PAINTED);
    assert_ne!(page.text(&picture), before, "the picture changes with the window");

    page.value(&stage("focus()"));
    (0..5).for_each(|_| page.press("+"));
    page.wait_for(PAINTED);
    page.photograph("timeline-near", Some("#timelines-figure-1"));
    (0..9).for_each(|_| page.press("+"));
    let near = window(&mut page);
    assert!(near.1 - near.0 < 0.2 && near.2 < 400.0, "{near:?}");
    page.press("ArrowRight");
    let later = window(&mut page);
    assert!(later.0 > near.0 && later.1 > near.1, "{later:?}");
    page.press("ArrowUp");
    let told = page.text("document.querySelector('.told').textContent");
    assert!(
        told.contains("bytes ") && told.contains("sent ") && (told.contains("waited") || told.contains("lost")),
        "{told}"
    );

    // Each jump chooses a packet of its kind, and shows it whole.
    for (name, word) in
        [("Longest wait", "waited for bytes"), ("Loss (", "lost"), ("Copy on another path (", "again, opportunistic")]
    {
        page.value(&format!(
            "[...document.querySelectorAll('.jump')].find((b) => b.textContent.startsWith('{name}')).click()"
        ));
        let told = page.text("document.querySelector('.told').textContent");
        let near = window(&mut page);
        assert!(told.to_lowercase().contains(word) && near.1 - near.0 < 1.0, "{name}: {told}, {near:?}");
    }
    page.wait_for(PAINTED);
    page.photograph("timeline-jump", Some("#timelines-figure-1"));

    // The view of the scheduler when it chose, for the packet that was jumped to; a repetition is no choice.
    let why = "document.querySelector('.why').textContent";
    assert!(page.text(why).contains("The packet repeats data"), "{}", page.text(why));
    page.value("[...document.querySelectorAll('.jump')].find((b) => b.textContent.startsWith('Longest')).click()");
    let cells =
        "[...document.querySelectorAll('.why tr')].map((row) => [...row.children].map((cell) => cell.textContent))";
    let expected = serde_json::json!([
        ["path", "smoothed RTT", "window", "in flight", "queued", "room", "room afterwards", "planned, afterwards"],
        ["wlan ✓", "50 ms", "30", "29", "0", "1", "none", "3"],
        ["3g", "197 ms", "30", "30", "0", "none", "none", ""],
    ]);
    assert_eq!(page.value(cells), expected);
    let said = page.text(why);
    assert!(
        said.contains("Before the round in which the scheduler chose, 100 kB waited to be sent")
            && said.contains("After it, the scheduler's lambda was 1.25."),
        "{said}"
    );
    assert!(said.ends_with("wlan has the lowest RTT of the paths that are usable."), "{said}");
    page.photograph("timeline-why", Some("#timelines-figure-1"));

    // Each packet is a row of the file.
    page.value("save = (name, text) => { window.saved = [name, text.join('')]; }; document.querySelector('#timelines .numbers').open = true");
    page.wait_for("document.querySelector('#timelines .values button') !== null");
    page.value("document.querySelector('#timelines .values button').click()");
    let lines = page.value("window.saved[1].split('\\n').length");
    assert_eq!((page.text("window.saved[0]").as_str(), lines), ("timelines-minrtt.csv", serde_json::json!(20_002)));
    let second = "3g,7000,1400,first,0.001,0.005,0.095,0.095,0.095,0.180005,30,29,0,1,100000";
    assert_eq!(page.text("window.saved[1].split('\\n').find((line) => line.startsWith('3g'))"), second);

    // The saved drawing holds the same strokes and no variables.
    let svg = page.text(&stage("drawing()"));
    assert!(svg.starts_with("<svg") && svg.contains("<path") && !svg.contains("var("), "{}", &svg[..300]);

    page.press("Home");
    assert_eq!(window(&mut page).2, 20_000.0);
    page.value(
        "[...document.querySelectorAll('.timeline .keys button')].find((b) => b.textContent === 'Zoom in').click()",
    );
    assert!(window(&mut page).2 < 20_000.0);
    // A window dragged in the strip below.
    page.press("Home");
    let strip = |what: &str| format!("document.querySelector('.overview').getBoundingClientRect().{what}");
    let (x, y) = (page.number(&strip("x")) + 400.0, page.number(&strip("y")) + 25.0);
    // All is selected at first: a press outside begins a new window.
    page.value(
        "[...document.querySelectorAll('.timeline .keys button')].find((b) => b.textContent === 'Zoom in').click()",
    );
    let press = serde_json::json!({ "button": "left", "buttons": 1, "clickCount": 1 });
    page.mouse("mousePressed", x, y, press.clone());
    page.mouse("mouseMoved", x + 60.0, y, press.clone());
    page.mouse("mouseReleased", x + 60.0, y, serde_json::json!({ "button": "left", "clickCount": 1 }));
    let brushed = window(&mut page);
    assert!(brushed.0 > 0.0 && brushed.2 < 20_000.0, "{brushed:?}");

    // Fluent: twenty windows are drawn in well under two seconds.
    let time = "(async () => { const s = document.querySelector('.stage'), t = performance.now(); \
                for (let i = 0; i < 20; i++) { s.paint(); } return performance.now() - t; })()";
    page.press("Home");
    let taken = page.number(time);
    assert!(taken < 10_000.0, "twenty drawings of 20 000 packets take {taken} ms");
    eprintln!("twenty drawings of 20 000 packets: {taken:.0} ms");
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// The sentences about a packet on the second path, by what the faster first one could take before and after the round.
#[test]
fn a_path_is_passed_over_only_if_it_had_room_throughout_the_round() {
    let Some((_folder, mut page)) = opened() else { return };
    let said = |page: &mut Browser, seen: &str| {
        let names = "{ paths: ['wlan', 'lte'], state: [], pathState: [] }";
        let why = format!("whyThisPath({{ seen: {seen}, first: true, path: 1, scheduler: 'minrtt', names: {names} }})");
        page.text(&format!("{why}.at(-1).textContent"))
    };
    let seen = |room: u32, left: u32, srtt: f64| {
        let path = |room, left, srtt| {
            format!(
                "{{ usable: true, room: {room}, left: {left}, srtt: {srtt}, cwnd: 30, inFlight: 2, queued: 0, state: [] }}"
            )
        };
        let paths = [path(room, left, srtt), path(9, 3, 0.05)].join(",");
        format!("{{ backlog: 9000, window: 90000, state: [], paths: [{paths}] }}")
    };
    let mut of = |room, left, srtt| said(&mut page, &seen(room, left, srtt));
    assert!(of(28, 4, 0.02).ends_with("the scheduler passed it over."));
    let filled =
        "wlan has the lower RTT. It had room for 28 when the round began, and for none when the round was over.";
    assert_eq!(of(28, 0, 0.02), filled);
    assert_eq!(of(0, 0, 0.02), "wlan has the lower RTT, but no room for a packet.");
    assert_eq!(of(28, 4, 0.05), "lte has the lowest RTT of the paths that are usable.");
    assert!(said(&mut page, "null").starts_with("No view was recorded: only one path could carry data, or"));
}

#[test]
fn numbers_of_a_timeline_follow_its_window_and_wait_until_it_is_drawn() {
    let Some((_folder, mut page)) = opened() else { return };
    let sent = "[...document.querySelectorAll('#timelines-figure-1 .values tbody tr')].map((row) => +row.children[5].textContent)";
    let times = |page: &mut Browser| serde_json::from_value::<Vec<f64>>(page.value(sent)).unwrap();
    page.value("document.querySelector('#timelines-figure-1 .numbers summary').click()");
    page.wait_for("document.querySelector('#timelines-figure-1 .values table') !== null");
    let whole = times(&mut page);
    assert!(whole.len() == 50 && whole[0] == 0.0, "{whole:?}");
    page.value("document.querySelector('.stage').focus()");
    (0..12).for_each(|_| page.press("+"));
    let end = |page: &mut Browser, which: &str| {
        page.text(&format!("document.querySelector('.stage').dataset.{which}")).parse::<f64>().unwrap()
    };
    let (from, to) = (end(&mut page, "from"), end(&mut page, "to"));
    let near = times(&mut page);
    assert!(
        from > 1.0 && !near.is_empty() && near.iter().all(|at| (from - 0.01..to + 0.01).contains(at)),
        "{from} {to} {near:?}"
    );

    // Numbers that are open before the packets are unpacked, or if they cannot be.
    page.value("window.real = unpacked; unpacked = () => new Promise((done) => { window.release = done; }); 0");
    let figure = "document.querySelector('#timelines-figure-1')";
    page.value(&format!("{figure}.querySelector('.stage').remove(); {figure}.querySelector('.values').replaceChildren(); draw({figure}); 0"));
    page.value(&format!("showOpenNumbers({figure})"));
    page.value(&format!("real({figure}, chartOf({figure})).then(release)"));
    page.wait_for("document.querySelector('#timelines-figure-1 .values table') !== null");
    page.value(&format!("unpacked = () => Promise.reject(new Error('no deflate-raw')); draw({figure})"));
    let remarks = page.text(&format!("{figure}.querySelector('.remarks').textContent"));
    assert!(remarks.starts_with("The packets cannot be unpacked and drawn (no deflate-raw)."), "{remarks}");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn dark_follows_the_system_and_the_button() {
    let Some((_folder, mut page)) = opened() else { return };
    let background = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(page.text(background), "rgb(255, 255, 255)");
    page.prefer("dark");
    assert_eq!(page.text(background), "rgb(20, 23, 28)");
    let bar = "getComputedStyle(document.querySelectorAll('#charts-figure-1 [data-part=bar] rect')[1]).fill";
    let dark = page.text(bar);
    page.photograph("dark", None);
    // As the system → light → dark.
    page.value("document.getElementById('theme').click()");
    assert_eq!(page.text(background), "rgb(255, 255, 255)");
    assert_ne!(page.text(bar), dark, "charts follow");
    page.prefer("light");
    page.value("document.getElementById('theme').click()");
    assert_eq!((page.text(background).as_str(), page.text(bar)), ("rgb(20, 23, 28)", dark));
    assert_eq!(page.text("document.getElementById('theme').textContent"), "Theme: dark");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_phone_scrolls_tables_not_the_page() {
    let Some((_folder, mut page)) = opened() else { return };
    page.screen(360, 740, true);
    page.wait_for("document.querySelector('#charts-figure-2 svg').getBoundingClientRect().width <= 360");
    let overflow = page.number("document.documentElement.scrollWidth - innerWidth");
    page.photograph("phone", None);
    assert!(overflow <= 0.0, "{overflow} pixels too wide");
    // A verdict stands below its claim, not beyond the edge; a table of figures scrolls, and says so.
    let right = "Math.max(...[...document.querySelectorAll('#verdicts tbody .mark')].map((m) => m.getBoundingClientRect().right))";
    assert!(page.number(right) <= 360.0);
    assert!(page.number("document.querySelector('#verdicts caption').getBoundingClientRect().height") < 60.0);
    let wide = "document.querySelector('#charts .wide:not(:has(.verdicts))')";
    assert!(page.value(&format!("{wide}.scrollWidth > 360 && {wide}.hasAttribute('data-more')")).as_bool().unwrap());
    let caption = "document.querySelector('.timeline .strip').getBoundingClientRect()";
    assert!(page.number(&format!("{caption}.right")) <= 360.0 && page.number(&format!("{caption}.height")) > 20.0);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn figures_are_saved_as_svg_and_tables_as_files() {
    let Some((_folder, mut page)) = opened() else { return };
    let svg = page.text("exported(document.querySelector('#charts-figure-2 .chart svg'))");
    assert!(svg.contains("#0072b2") || svg.contains("#008f68"), "the light theme's colours");
    assert!(!svg.contains("var("), "{}", &svg[svg.find("var(").unwrap_or(0)..][..80]);
    let read = "decodeBase64(document.querySelector('#charts > .files a[download$=\".csv\"]').href.split(',')[1])";
    assert!(page.text(read).starts_with("scheduler,\"goodput, Mbit/s\""));
    let figure = "decodeBase64(document.querySelector('#charts-figure-1 .tools .copy').dataset.from.split(',')[1])";
    let latex = page.text(figure);
    assert!(
        latex.contains("\\includesvg[width=\\linewidth]{charts-goodput}") && latex.contains("\\caption[Goodput]"),
        "{latex}"
    );
    let read = read.replace(".csv", ".tex");
    assert!(page.text(&read).contains("\\toprule"));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn files_of_figures_have_the_names_that_latex_includes() {
    let Some((_folder, mut page)) = opened() else { return };
    page.value("document.querySelectorAll('details.folded').forEach((one) => { one.open = true; })");
    page.wait_for("document.querySelectorAll('.chart:empty').length === 0");
    page.value("window.saved = []; save = (name) => { saved.push(name); }; 0");
    page.value("document.querySelectorAll('button.svg').forEach((one) => one.click())");
    let saved: Vec<String> = serde_json::from_value(page.value("saved")).unwrap();
    let latex = "[...document.querySelectorAll('figure button.copy[data-panels], figure button.svg + button.copy')].map(latexOf)";
    let latex: Vec<String> = serde_json::from_value(page.value(latex)).unwrap();
    let parts = latex.iter().flat_map(|text| text.split("\\includesvg[width=\\linewidth]{").skip(1));
    let included: Vec<String> = parts.map(|rest| format!("{}.svg", rest.split('}').next().unwrap())).collect();
    assert_eq!(saved, included);
    let mut each = saved.clone();
    each.sort();
    each.dedup();
    assert_eq!(each.len(), saved.len(), "{saved:?}");
    assert!(saved.len() > latex.len() && latex.iter().any(|text| text.contains("subfigure")), "{saved:?}");
    let plain = |name: &String| name.trim_end_matches(".svg").chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    assert!(saved.iter().all(plain), "{saved:?}");
}

/// Prints how long the main thread works per step while a hundred thousand packets are zoomed and moved: docs/report.md.
#[test]
#[ignore = "a measurement"]
fn paint_times_at_a_hundred_thousand_packets() {
    let report = sample::report();
    let mut sections = report.sections.clone();
    sections[1].figures[0].chart = anabranch_report::chart::Chart::Timeline(sample::timeline(100_000));
    let report = Report { sections, packets: Some(100_000), ..report };
    let Some((_folder, mut page)) = page_of(&report) else { return };
    page.screen(1400, 900, false);
    page.value("document.querySelector('.stage').scrollIntoView({ block: 'center' })");
    assert_eq!(page.text("document.querySelector('.stage').dataset.seen"), "100000");
    let key = |key: &str| {
        format!(
            "document.querySelector('.stage').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        )
    };
    // Zoomed in by small steps and out again, moved, and all shown: from a hundred thousand packets to a few.
    let keys = ["Home", "+", "ArrowRight", "ArrowLeft", "+", "ArrowRight", "-", "ArrowLeft", "-", "Home"];
    let steps: Vec<String> = (0..10).flat_map(|_| keys).map(key).collect();
    browser::print_quantiles("report, 100,000 packets: zoom and move", page.work_ms(&steps));
    let point = |n: usize| {
        let at = format!("clientX: 200 + {n} * 9, clientY: 450, bubbles: true");
        format!(
            "document.querySelector('.stage svg > rect').dispatchEvent(new PointerEvent('pointermove', {{ {at} }}))"
        )
    };
    browser::print_quantiles(
        "report, 100,000 packets: pointer",
        page.work_ms(&(0..100).map(point).collect::<Vec<_>>()),
    );
}
