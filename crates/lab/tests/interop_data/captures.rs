//! Captures of both ends, as tshark reads them.

use crate::common::{Notes, alone, ms};
use crate::transfer::{plan, transfer_noting};
use anabranch_recorders::PcapNg;
use anabranch_units::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// `fields` of every packet as tshark dissects it with all checksums verified; `None` without tshark.
fn dissect(capture: &[u8], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r", "-", "-T", "fields", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let started = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.inspect_err(|error| eprintln!("SKIPPED: cannot run tshark: {error}")).ok()?;
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(capture).expect("tshark reads"));
        child.wait_with_output().expect("tshark ends")
    });
    assert!(output.status.success(), "tshark reads the capture");
    let lines = String::from_utf8(output.stdout).expect("tshark writes UTF-8");
    Some(lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

const FIELDS: [&str; 7] = [
    "frame.interface_name",
    "tcp.checksum.status",
    "tcp.options.mptcp.subtype",
    "tcp.len",
    "_ws.malformed",
    "_ws.expert.message",
    "mptcp.stream",
];

/// Remarks of tshark that are no fault: a connection that is opened or closed, an acknowledgment with an MPTCP option
/// only (RFC 8684 §3), padding, a window update, a spurious retransmission (a busy machine is late).
const HARMLESS: [&str; 6] =
    ["Connection ", "This frame ", "Duplicate ACK", "4 NOP in a row", "TCP window update", "D-SACK Sequence"];

const BYTES: u64 = 300_000;

/// A transfer over two paths without loss, captured at both ends.
fn captured(engine: Side) {
    let Some(_alone) = alone() else { return };
    let plan = plan(engine, 2);
    let mut notes = Notes::new(engine, false);
    let names = || vec!["one".to_owned(), "two".to_owned()];
    for side in [Side::Client, Side::Server] {
        notes.captures.push(PcapNg::new(Vec::new(), names()).expect("a capture").only(side));
    }
    let mut outcome = transfer_noting(&plan, &[(BYTES, BYTES)], 1, ms(60_000), notes);
    outcome.assert_in_order();
    for (capture, host) in outcome.notes.captures.drain(..).zip(["client", "server"]) {
        let capture = capture.finish().expect("a whole capture");
        let Some(packets) = dissect(&capture, &FIELDS) else { return };
        check(&packets, host);
    }
}

fn check(packets: &[Vec<String>], host: &str) {
    let (mut interfaces, mut subtypes) = (BTreeMap::<&str, u64>::new(), BTreeSet::<&str>::new());
    for packet in packets {
        let [interface, checksum, subtype, len, malformed, remarks, stream] = &packet[..] else { panic!("{packet:?}") };
        assert_eq!(checksum, "1", "a wrong checksum at the {host}: {packet:?}");
        assert_eq!(malformed, "", "{packet:?}");
        for remark in remarks.split(',').filter(|remark| !remark.is_empty()) {
            assert!(HARMLESS.iter().any(|known| remark.starts_with(known)), "{remark} at the {host}: {packet:?}");
        }
        *interfaces.entry(interface).or_default() += len.parse::<u64>().expect("a length");
        subtypes.extend(subtype.split(',').filter(|subtype| !subtype.is_empty()));
        assert!(stream.is_empty() || stream == "0", "both subflows belong to one connection: {packet:?}");
    }
    // MP_CAPABLE, MP_JOIN, DSS (RFC 8684 §7.2).
    assert!(["0", "1", "2"].iter().all(|subtype| subtypes.contains(subtype)), "{subtypes:?}");
    let [one, two] = ["one", "two"].map(|path| interfaces.get(&*format!("{host}:{path}")).copied().unwrap_or(0));
    assert!(one > 0 && two > 0, "{interfaces:?}");
    // Even without loss a byte may travel twice, over two paths.
    assert!((2 * BYTES..3 * BYTES).contains(&(one + two)), "{interfaces:?}");
}

#[test]
fn captured_engine_client() {
    captured(Side::Client);
}

#[test]
fn captured_engine_server() {
    captured(Side::Server);
}
