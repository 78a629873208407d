//! A report of a stranger: its texts are shown, and none is obeyed.

use crate::{page_of, sample};
use anabranch_report::chart::Chart;
use anabranch_report::{Picture, Report};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All that a text could do in a page, with a number that makes it unlike the others.
fn hostile(n: usize) -> String {
    format!(
        "{n}</script></title></style></textarea>--><script>owned=1</script><img src=x onerror=owned=1><svg onload=owned=1>\
         <meta http-equiv=refresh content='0;url=about:blank'><base href=//x><form action=//x><input autofocus onfocus=owned=1>\
         <iframe srcdoc='<script>top.owned=1</script>'></iframe><a href=javascript:owned=1>\"'`${{owned=1}} {{{{owned}}}} {{% raw %}}"
    )
}

/// Puts a hostile text in the place of every text with which the document still is a report. Texts at one place of the format, such
/// as the titles of all tables, are tried together.
fn taint(document: &mut Value) -> usize {
    let mut places = Vec::new();
    collect(document, String::new(), &mut places);
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for place in places {
        let words = place.split('/').map(|word| if word.parse::<usize>().is_ok() { "*" } else { word });
        alike.entry(words.collect::<Vec<_>>().join("/")).or_default().push(place);
    }
    let mut count = 0;
    for places in alike.into_values() {
        let mut tainted = document.clone();
        for (n, place) in places.iter().enumerate() {
            *tainted.pointer_mut(place).unwrap() = json!(hostile(count + n));
        }
        if Report::deserialize(&tainted).is_ok() {
            count += places.len();
            *document = tainted;
        }
    }
    count
}

/// Pointers (RFC 6901) to all texts.
fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::String(_) => places.push(place),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, one)| collect(one, format!("{place}/{n}"), places)),
        Value::Object(fields) => fields.iter().for_each(|(key, one)| {
            collect(one, format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), places);
        }),
        _ => {}
    }
}

/// The sample with a picture of each kind.
fn with_pictures() -> Report {
    let pictures = json!([
        {"kind": "network", "warmup_s": 0, "paths": [
            {"name": "a", "rate_bps": 1e6, "recorded": false, "link": "l", "delay_s": 0.1, "loss": 0.1, "queue_bytes": 1e5, "queue_packets": null}]},
        {"kind": "gain", "down": {"key": "k", "values": ["1"]}, "across": {"key": "l", "values": ["2"]},
         "maps": [{"title": "t", "cells": [[[12.5, true]]]}], "lower_is_better": false},
        {"kind": "claims", "title": "t", "readings": [{"name": "r", "admissible": true}],
         "claims": [{"label": "l", "text": "x", "stands": ["in size"]}]},
    ]);
    let mut report = sample::report();
    for figure in report.sections.iter_mut().flat_map(|section| &mut section.figures) {
        if let Chart::Timeline(timeline) = &mut figure.chart {
            *timeline = timeline.first(50);
        }
    }
    report.sections[0].pictures = serde_json::from_value::<Vec<Picture>>(pictures).unwrap();
    report
}

#[test]
fn a_picture_is_drawn_from_values_and_a_text_in_its_place_is_refused() {
    let report = json!({"sections": [{"pictures": ["<meta http-equiv=refresh content='0;url=//x'>"]}]});
    assert!(serde_json::from_value::<Report>(report).is_err());
    let policy = anabranch_report::html(&Report::default());
    for part in ["default-src &#x27;none&#x27;", "base-uri &#x27;none&#x27;", "form-action &#x27;none&#x27;"] {
        assert!(policy.contains(part), "{part}");
    }
}

#[test]
fn no_text_of_a_report_becomes_a_part_of_the_page() {
    let mut document = serde_json::to_value(with_pictures()).unwrap();
    let count = taint(&mut document);
    assert!(count > 100, "{count} texts were replaced");
    let report: Report = serde_json::from_value(document).unwrap();
    let Some((folder, mut page)) = page_of(&report) else { return };
    page.wait_for("document.documentElement.dataset.ready === 'yes'");
    // Everything that opens is opened, so that all is drawn.
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    page.value(super::PAINTED);
    assert_eq!(page.text("typeof owned"), "undefined");
    let strange = "[...document.querySelectorAll('img, iframe, form, base, object, embed, input, meta[http-equiv=refresh], \
                   [onerror], [onload], [onfocus], a[href^=javascript]')].map((one) => one.outerHTML)";
    assert_eq!(page.value(strange), json!([]));
    let place = page.text("location.pathname");
    assert_eq!(std::path::Path::new(&place), folder.path().join("report.html"));
    assert_eq!(page.number("document.querySelectorAll('.picture svg').length"), 3.0);
    assert_eq!(page.complaints, Vec::<String>::new());
}
