//! `advise`: what it says of someone's lines, and of input that is no lines.

mod common;

use common::{errors, output};
use serde_json::Value;

const LINES: [&str; 4] = ["--path", "a=20mbit,10ms,0.5%,2bdp", "--path", "b=10mbit,20ms"];

#[test]
fn it_says_what_to_do_why_and_how() {
    let text = output(&[&["advise"], &LINES[..], &["--for", "downloads", "--scheduler", "minrtt,blest"]].concat());
    for part in [
        "For downloads: use ",
        "more goodput than over a alone",
        "Open on a",
        "of 24 draws",
        "± is a 95 % interval over 24 simulated draws",
        "rates, delays and queues lie within 10 % of the input, losses within 30 %",
        "anabranch proxy SERVER --via a,b --server-key KEY --scheduler",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_document_has_an_entry_for_each_use() {
    let arguments = ["--for", "downloads,calls", "--scheduler", "minrtt", "--format", "json", "--error", "0"];
    let document: Value = serde_json::from_str(&output(&[&["advise"], &LINES[..], &arguments].concat())).unwrap();
    let uses: Vec<&str> = document["uses"].as_array().unwrap().iter().map(|one| one["for"].as_str().unwrap()).collect();
    assert_eq!((uses, &document["draws"], &document["error"]), (vec!["downloads", "calls"], &24.into(), &0.0.into()));
}

#[test]
fn input_that_is_no_lines_is_refused_in_a_sentence() {
    let cases: [(&[&str], &str, &str); 9] = [
        (&["--path", "a=20mbit,10ms"], "has one line: there is nothing to choose", "a second --path"),
        (&["--path", "a"], "there is no `=` after the name", "NAME=RATE,DELAY,LOSS,QUEUE"),
        (&["--path", "a=20mbit"], "a rate and a delay at least", "half of a ping"),
        (&["--path", "a=1mbit,1ms,0%,1bdp,5"], "more than four values", "NAME=RATE"),
        (&["--path", "a=1mbit,1ms,cost=5"], "`cost` is neither `price` nor `cap`", "NAME=RATE"),
        (&["--path", "a=20mbits,10ms", "--path", "b=1mbit,1ms"], "20mbits", "rate"),
        (&["wifi-lte", "--for", "download"], "download", "downloads"),
        (&["wifi-lte", "--error", "100"], "the error of the input is out of range", "10 %"),
        (&["wifi-let"], "wifi-let", "wifi-lte"),
    ];
    for (arguments, what, help) in cases {
        let text = errors(&[&["advise"], arguments].concat(), 2);
        let text = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(text.contains(what) && text.contains(help), "{arguments:?}: {text}");
    }
}
