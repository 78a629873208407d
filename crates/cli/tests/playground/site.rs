//! The documentation in Chromium, as `site/build.sh` left it in target/site. `./test` builds it and runs these tests.

use crate::axe;
use crate::browser::Browser;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::{fs, thread};

/// Pages with live figures, in the order of the site.
const FIGURES: [&str; 7] = [
    "docs/README.html",
    "docs/concepts/scheduler.html",
    "docs/concepts/head-of-line-blocking.html",
    "docs/concepts/receive-window.html",
    "docs/concepts/bufferbloat.html",
    "docs/concepts/coupled-congestion-control.html",
    "docs/concepts/failover.html",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/site").canonicalize().expect("site/build.sh made it")
}

/// Whether the site was made with the WebAssembly module.
fn has_playground() -> bool {
    let has = folder().join("playground").is_dir();
    if !has {
        eprintln!("SKIPPED: the site was made without the playground");
    }
    has
}

/// A browser, and the address of a server as any web server is: files by their names, no further header. It ends with the test.
fn opened() -> Option<(String, Browser)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let folder = folder();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let folder = folder.clone();
            thread::spawn(move || answer(stream.unwrap(), &folder));
        }
    });
    let mut page = Browser::start()?;
    page.prefer("light");
    page.screen(1400, 900, false);
    Some((url, page))
}

fn answer(mut stream: TcpStream, folder: &Path) -> Option<()> {
    let lines: Vec<String> =
        BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let name = lines.first()?.split(' ').nth(1)?.split(['?', '#']).next()?.trim_start_matches('/');
    let (status, bytes) = match fs::read(folder.join(if name.is_empty() { "index.html" } else { name })) {
        Ok(bytes) => ("200 OK", bytes),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let kind = match name.rsplit('.').next() {
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("html") | None => "text/html",
        _ => "application/octet-stream",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        bytes.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes)).ok()
}

/// The reader moves to the live figure.
fn scroll(page: &mut Browser) {
    page.value("document.querySelector('.live').scrollIntoView({ block: 'center', behavior: 'instant' })");
}

/// A part of the first live figure.
fn inside(what: &str) -> String {
    format!("document.querySelector('.live iframe')?.contentDocument?.{what}")
}

#[test]
#[ignore = "target/site is made by site/build.sh"]
fn every_live_figure_runs_its_scenario_to_the_end() {
    if !has_playground() {
        return;
    }
    let Some((url, mut page)) = opened() else { return };
    let with_figures: Vec<String> = fs::read_dir(folder().join("docs/concepts"))
        .unwrap()
        .map(|entry| format!("docs/concepts/{}", entry.unwrap().file_name().to_string_lossy()))
        .collect();
    page.screen(1400, 400, false);
    assert!(with_figures.iter().all(|name| FIGURES.contains(&name.as_str())), "{with_figures:?}");
    for name in FIGURES {
        page.open_served(&url, name);
        // It begins when it is seen.
        assert_eq!(page.text("document.querySelector('.live iframe').src"), "", "{name}");
        scroll(&mut page);
        page.wait_for(&format!("/^[0-9a-f]{{32}}$/.test({})", inside("getElementById('digest')?.textContent")));
        let wanted = page.text("new URLSearchParams(document.querySelector('.live').dataset.fragment).get('preset')");
        assert_eq!(page.text(&inside("getElementById('preset').value")), wanted, "{name}");
        assert_eq!(page.value(&inside("getElementById('problem').hidden")), true, "{name}");
        let short = name.rsplit('/').next().unwrap().trim_end_matches(".html");
        page.photograph(&format!("site-figure-{short}"), Some(".live"));
        // The reader moves a path, and the link to the playground has the change.
        page.value(&inside("querySelector('.knob[data-what=delay]').focus()"));
        page.value(&inside("querySelector('.knob[data-what=delay]').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }))"));
        page.wait_for("document.querySelector('.live iframe').contentWindow.location.hash.includes('delay')");
        page.value(
            "document.querySelector('.live > p a').addEventListener('click', (event) => event.preventDefault())",
        );
        page.value("document.querySelector('.live > p a').click()");
        assert!(page.text("document.querySelector('.live > p a').href").contains("delay"), "{name}");
        assert_eq!(page.complaints, Vec::<String>::new(), "{name}");
    }
}

#[test]
#[ignore = "target/site is made by site/build.sh"]
fn without_webassembly_a_figure_is_a_sentence_with_a_link() {
    if !has_playground() {
        return;
    }
    let Some((url, mut page)) = opened() else { return };
    page.ask("Page.addScriptToEvaluateOnNewDocument", json!({ "source": "delete globalThis.WebAssembly" }));
    page.open_served(&url, FIGURES[1]);
    assert_eq!(page.number("document.querySelectorAll('iframe').length"), 0.0);
    assert!(page.text("document.querySelector('.live').textContent").contains("needs JavaScript and WebAssembly"));
    let link = page.text("document.querySelector('.live a').getAttribute('href')");
    assert!(link.starts_with("../../playground/index.html#preset="), "{link}");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
#[ignore = "target/site is made by site/build.sh"]
fn the_search_finds_schedulers_keys_metrics_and_classes() {
    let Some((url, mut page)) = opened() else { return };
    for (word, target) in [
        ("BLEST", "docs/schedulers.html#blest"),
        ("ecf", "docs/schedulers.html#ecf"),
        ("olia", "docs/congestion.html#olia"),
        ("recv_buffer", "docs/reference/keys.html"),
        ("ofo_mean_bytes", "docs/reference/metrics.html"),
        ("failover", "docs/concepts/failover.html"),
        ("Scenario.load", "docs/reference/python.html#anabranch.Scenario.load"),
    ] {
        page.open_served(&url, &format!("search.html?q={word}"));
        page.wait_for("/found|matching/.test(document.querySelector('#search-results .search-summary, #search-results p')?.textContent)");
        let found: Vec<String> = serde_json::from_value(
            page.value("[...document.querySelectorAll('#search-results li a')].map((one) => one.getAttribute('href'))"),
        )
        .unwrap();
        assert!(found.iter().any(|link| link == target), "{word}: {found:?}");
    }
    page.photograph("site-search", None);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
#[ignore = "target/site is made by site/build.sh"]
fn pages_fit_a_phone_and_have_contrast_in_either_theme() {
    let Some((url, mut page)) = opened() else { return };
    let Some(script) = axe::script() else { return };
    // With the parts of long pages that have all kinds of text.
    let names = [
        ("README", "document"),
        ("concepts/head-of-line-blocking", "document"),
        ("schedulers", "{ include: ['#blest'] }"),
        ("lab/conformance", ""),
        ("reference/keys", "{ include: ['#connection'] }"),
        ("reference/python", "{ include: ['#functions'] }"),
    ];
    for (name, part) in names {
        page.open_served(&url, &format!("docs/{name}.html"));
        page.value(&format!("{script};0"));
        for scheme in ["light", "dark"] {
            page.prefer(scheme);
            for (width, mobile) in [(1400, false), (420, true)] {
                page.screen(width, 900, mobile);
                let wide = page.number("document.documentElement.scrollWidth - innerWidth");
                assert!(wide <= 0.0, "{name}, {scheme}, {width}: {wide} px too wide");
                if !mobile && !part.is_empty() {
                    assert_eq!(axe::findings(&mut page, part), Vec::<String>::new(), "{name}, {scheme}");
                }
                if name.starts_with("concepts") {
                    scroll(&mut page);
                    let ground = |of: &str| format!("getComputedStyle({of}).backgroundColor");
                    let figure = ground("document.querySelector('.live iframe').contentDocument.body");
                    page.wait_for(&format!("{} === {figure}", ground("document.body")));
                }
                let shot = page.ask("Page.captureScreenshot", json!({ "format": "png" }));
                keep(&format!("site-{}-{scheme}-{width}", name.replace('/', "-")), shot["data"].as_str().unwrap());
            }
        }
        assert_eq!(page.complaints, Vec::<String>::new(), "{name}");
    }
}

/// The visible part of a page, for readers of the test.
fn keep(name: &str, data: &str) {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let folder = folder().join("../screenshots");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
}
