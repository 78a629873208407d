//! tshark counts the packets of each subflow, their payload, and the repeated ones: exactly as the analysis does.

#![allow(clippy::disallowed_methods, reason = "tests run on a host with files and programs")]

mod common;

use anabranch_analysis::Analysis;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Packets, packets with payload, payload bytes, packets without new payload.
type Counts = (u64, u64, u64, u64);
/// Address and port of the source and the target.
type Way = [String; 4];

const FIELDS: [&str; 8] =
    ["ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len"];

/// tshark's fields of each TCP packet; `None` without tshark.
fn fields(file: &Path) -> Option<Vec<Vec<String>>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r"]).arg(file).args(["-Y", "tcp", "-T", "fields", "-e", "tcp.stream"]);
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().inspect_err(|error| eprintln!("SKIPPED: cannot run tshark: {error}")).ok()?;
    assert!(output.status.success(), "tshark reads the capture");
    let text = String::from_utf8(output.stdout).expect("tshark writes UTF-8");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// The sums of tshark's fields: a packet repeats if all of its sequence numbers had been seen.
fn counted(rows: &[Vec<String>]) -> BTreeMap<Way, Counts> {
    let mut counts: BTreeMap<Way, Counts> = BTreeMap::new();
    let mut seen: BTreeMap<Way, BTreeSet<u32>> = BTreeMap::new();
    for row in rows {
        let either = |a: usize, b: usize| if row[a].is_empty() { row[b].clone() } else { row[a].clone() };
        let way = [either(1, 2), row[5].clone(), either(3, 4), row[6].clone()];
        let (seq, len): (u32, u32) = (row[7].parse().expect("a number"), row[8].parse().expect("a number"));
        let of = counts.entry(way.clone()).or_default();
        of.0 += 1;
        if len > 0 {
            let numbers = seen.entry(way).or_default();
            let new = (0..len).filter(|n| numbers.insert(seq.wrapping_add(*n))).count();
            of.1 += 1;
            of.2 += u64::from(len);
            of.3 += u64::from(new == 0);
        }
    }
    counts
}

fn analysed(analysis: &Analysis) -> BTreeMap<Way, Counts> {
    let mut counts = BTreeMap::new();
    for subflow in analysis.connections.iter().flat_map(|connection| &connection.subflows) {
        let ends = [subflow.client, subflow.server].map(|end| [end.ip().to_string(), end.port().to_string()]);
        let [client, server] = ends;
        for way in subflow.ways.iter().filter(|way| way.packets > 0) {
            let (a, b) = if way.from == "client" { (&client, &server) } else { (&server, &client) };
            let name = [a[0].clone(), a[1].clone(), b[0].clone(), b[1].clone()];
            counts.insert(name, (way.packets, way.data.packets, way.data.bytes, way.repeated_packets));
        }
    }
    counts
}

#[test]
fn packets_bytes_and_repetitions_are_those_of_tshark() {
    for name in common::CAPTURES {
        let Some(rows) = fields(&common::path(name)) else { return };
        let analysis = common::analysed(&[name]);
        assert_eq!(analysed(&analysis), counted(&rows), "{name}");
        let streams: BTreeSet<&String> = rows.iter().map(|row| &row[0]).collect();
        let subflows: usize = analysis.connections.iter().map(|c| c.subflows.len()).sum();
        assert_eq!(subflows, streams.len(), "{name}");
    }
}
