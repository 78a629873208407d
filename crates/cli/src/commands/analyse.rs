//! `analyse`: what connections did, from captures.

use crate::args::{AnalyseArguments, HostName, ListFormat};
use crate::outcome::Outcome;
use anabranch_analysis::{Analysis, Bytes, Capture, CaptureInfo, Connection, Fate, OneWay, Protocol, Subflow};
use anabranch_report::text::{plain_table, print_table, seconds};
use anabranch_units::Side;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::input::why;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Code of what is wrong with a capture.
const CAPTURE: &str = "anabranch::analyse::capture";

/// Reads the captures and describes their connections.
pub fn analyse(arguments: &AnalyseArguments) -> Result<Outcome, Failure> {
    let captures: Vec<Capture> = arguments.captures.iter().map(|file| capture(file)).collect();
    let host = arguments.host.map(|host| match host {
        HostName::Client => Side::Client,
        HostName::Server => Side::Server,
    });
    let mut analysis = anabranch_analysis::analyse(&captures, host).map_err(|fault| {
        let name = &captures[fault.capture].name;
        Failure::unusable(CAPTURE, format!("{name} {}", fault.kind.what()), Some(fault.kind.help().into()))
    })?;
    if analysis.connections.is_empty() {
        return Err(without_tcp(&analysis));
    }
    if let Some(number) = arguments.connection {
        only(&mut analysis, number)?;
    }
    let notes = notes(&analysis);
    let output = match arguments.format {
        ListFormat::Table => text(&analysis, arguments.most),
        ListFormat::Json => {
            let json = serde_json::to_string_pretty(&analysis);
            json.map_err(|error| Failure::failed(CAPTURE, format!("the analysis is no JSON: {error}")))? + "\n"
        }
    };
    Ok(Outcome { output, notes, ..Outcome::default() })
}

fn capture(file: &Path) -> Capture {
    let path = PathBuf::from(file);
    let open = move || -> io::Result<Bytes> {
        let opened = File::open(&path)?;
        if opened.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        Ok(Box::new(opened))
    };
    let named = move || open().map_err(|error| io::Error::new(error.kind(), why(&error)));
    Capture { name: file.display().to_string(), open: Box::new(named) }
}

fn without_tcp(analysis: &Analysis) -> Failure {
    let frames: u64 = analysis.captures.iter().map(|capture| capture.frames.frames).sum();
    let message = match frames {
        0 => "the capture has no packets".to_owned(),
        _ => format!("none of the {frames} packets is a TCP segment that can be read: {}", skipped(&analysis.captures)),
    };
    let help = "capture with `tcp` as the filter, and at least 128 bytes of each packet";
    Failure::unusable(CAPTURE, message, Some(help.into()))
}

/// Why frames were left out.
fn skipped(captures: &[CaptureInfo]) -> String {
    let sum = |of: fn(&CaptureInfo) -> u64| captures.iter().map(of).sum::<u64>();
    let kinds = [
        (sum(|c| c.frames.foreign), "of another protocol"),
        (sum(|c| c.frames.unknown_link), "of a link type that is not read"),
        (sum(|c| c.frames.fragments), "fragments"),
        (sum(|c| c.frames.cut), "cut within their headers"),
        (sum(|c| c.frames.malformed), "malformed"),
    ];
    let kinds = kinds.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    kinds.collect::<Vec<_>>().join(", ")
}

fn only(analysis: &mut Analysis, number: u32) -> Result<(), Failure> {
    let n = analysis.connections.len();
    analysis.connections.retain(|connection| connection.number == number);
    if analysis.connections.is_empty() {
        let help = format!("the captures have connections 1 to {n}");
        return Err(Failure::unusable(CAPTURE, format!("there is no connection {number}"), Some(help)));
    }
    Ok(())
}

/// Notes on the captures themselves.
fn notes(analysis: &Analysis) -> String {
    let mut notes = String::new();
    for capture in &analysis.captures {
        if let Some(cut) = capture.cut {
            let frames = capture.frames.frames;
            let _ = writeln!(notes, "{} was read up to packet {frames}: {cut}.", capture.name);
        }
    }
    let skipped = skipped(&analysis.captures);
    if !skipped.is_empty() {
        let _ = writeln!(notes, "Left out: {skipped}.");
    }
    if analysis.beyond_packets > 0 {
        let _ = writeln!(notes, "Left out: {} packets of further connections.", analysis.beyond_packets);
    }
    if !analysis.connections.iter().any(|connection| !matches!(connection.protocol, Protocol::Tcp)) {
        let _ = writeln!(notes, "No connection offers Multipath TCP: capture from the first SYN on if one should.");
    }
    notes
}

fn text(analysis: &Analysis, most: usize) -> String {
    let mut text = String::new();
    for connection in analysis.connections.iter().take(most) {
        let _ = writeln!(text, "Connection {}: {}\n", connection.number, connection.story.join(" "));
        text += &table(connection);
        text.push('\n');
    }
    if let Some(more @ 1..) = analysis.connections.len().checked_sub(most) {
        let _ = writeln!(
            text,
            "{more} more connections: --most {} shows them, --connection N one.",
            analysis.connections.len()
        );
    }
    text
}

/// One line for each direction of a subflow that carried packets.
fn table(connection: &Connection) -> String {
    let header =
        ["subflow", "from", "state", "packets", "data", "bytes", "share", "repeated", "reinjected", "RTT", "p95"];
    let mut table = plain_table(header.map(String::from).to_vec());
    for subflow in &connection.subflows {
        for way in subflow.ways.iter().filter(|way| way.packets > 0) {
            table.add_row(row(connection, subflow, way));
        }
    }
    print_table(&table)
}

fn row(connection: &Connection, subflow: &Subflow, way: &OneWay) -> Vec<String> {
    let total = connection.payload_bytes(way.from);
    let share = if total > 0 { 100.0 * way.data.bytes as f64 / total as f64 } else { 0.0 };
    let optional = |value: Option<String>| value.unwrap_or_default();
    vec![
        subflow.number.to_string(),
        way.from.to_owned(),
        fate(subflow.fate).to_owned(),
        way.packets.to_string(),
        way.data.packets.to_string(),
        way.data.bytes.to_string(),
        format!("{share:.0} %"),
        way.repeated_packets.to_string(),
        optional(way.reinjected.map(|tally| tally.packets.to_string())),
        optional(way.rtt.map(|rtt| seconds(rtt.median_s))),
        optional(way.rtt.map(|rtt| seconds(rtt.p95_s))),
    ]
}

const fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Open => "open",
        Fate::Closed => "closed",
        Fate::Reset => "reset",
        Fate::NoAnswer => "no answer",
        Fate::Refused => "refused",
        Fate::Stripped => "option lost",
        Fate::Incomplete => "incomplete",
        Fate::Unknown => "no opening",
    }
}
