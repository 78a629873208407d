//! Captures, read back by the library that wrote them and by tshark.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files")]

mod exchange;

use anabranch_recorders::PcapNg;
use anabranch_trace::Recorder;
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::Packet;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The exchange as both hosts saw it, a packet per millisecond, each ten microseconds in flight.
fn record(capture: &mut impl Recorder) {
    for (i, (by_client, path, packet)) in exchange::packets().into_iter().enumerate() {
        let (from, to) = if by_client { (Side::Client, Side::Server) } else { (Side::Server, Side::Client) };
        let sent = 5_000_000_000 + 1_000_001 * i as u64;
        capture.packet(Instant::from_nanos(sent), from, true, path, &packet);
        capture.packet(Instant::from_nanos(sent + 10_000), to, false, path, &packet);
    }
}

fn names() -> Vec<String> {
    vec!["wlan".into()]
}

#[test]
fn captures_hold_what_was_recorded() {
    let mut capture = PcapNg::new(Vec::new(), names()).unwrap();
    record(&mut capture);
    let bytes = capture.finish().unwrap();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap().into_owned() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::RAW);
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                let InterfaceDescriptionOption::IfName(name) = &interface.options[0] else { panic!("a name") };
                interfaces.push(name.to_string());
            }
            Block::EnhancedPacket(packet) => packets.push(packet),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(interfaces, ["client:wlan", "server:wlan", "client:1", "server:1"]);
    let expected = exchange::packets();
    assert_eq!(packets.len(), 2 * expected.len());
    for (i, block) in packets.iter().enumerate() {
        let (by_client, path, packet) = &expected[i / 2];
        let sent = i % 2 == 0;
        let at_client = *by_client == sent;
        assert_eq!(block.interface_id, 2 * u32::from(path.0) + u32::from(!at_client), "packet {i}");
        let time = 5_000_000_000 + 1_000_001 * (i as u64 / 2) + if sent { 0 } else { 10_000 };
        assert_eq!(block.timestamp, Duration::from_nanos(time), "packet {i}");
        assert_eq!(block.options, [EnhancedPacketOption::Flags(if sent { 2 } else { 1 })], "packet {i}");
        assert_eq!(block.original_len as usize, packet.len(), "packet {i}");
        assert_eq!(Packet::parse(block.data.to_vec().into()).as_ref(), Ok(packet), "packet {i}");
    }
}

#[test]
fn one_host_and_the_first_bytes() {
    let mut capture = PcapNg::new(Vec::new(), names()).unwrap().only(Side::Server).snap_len(60);
    record(&mut capture);
    let bytes = capture.finish().unwrap();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut packets = 0;
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let (_, _, expected) = &exchange::packets()[packets];
            assert_eq!(packet.data[..], expected.emit()[..60.min(expected.len())]);
            assert_eq!(packet.original_len as usize, expected.len());
            packets += 1;
        }
    }
    assert_eq!(packets, exchange::packets().len());
}

/// Accepts this many bytes and then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_first_error_is_kept() {
    assert!(PcapNg::new(Full(3), names()).is_err());
    let mut capture = PcapNg::new(Full(500), names()).unwrap();
    record(&mut capture);
    assert_eq!(capture.finish().err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
}

/// The fields of each packet from tshark, or `None` without tshark.
fn tshark(capture: &[u8], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields"]).args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.inspect_err(|e| eprintln!("SKIPPED: cannot run tshark: {e}")).ok()?;
    child.stdin.take().unwrap().write_all(capture).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "tshark reads the capture");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn wireshark_finds_no_fault() {
    let mut capture = PcapNg::new(Vec::new(), names()).unwrap().only(Side::Client);
    record(&mut capture);
    let capture = capture.finish().unwrap();
    let fields = [
        "frame.protocols",
        "frame.interface_name",
        "tcp.options.mptcp.subtype",
        "tcp.checksum.status",
        "_ws.malformed",
        "_ws.expert.message",
        "mptcp.stream",
    ];
    let Some(rows) = tshark(&capture, &fields) else { return };
    assert_eq!(rows.len(), exchange::packets().len());
    let mut subtypes = BTreeMap::<String, usize>::new();
    // Remarks of Wireshark that are no fault: a connection that is opened, closed or reset, an ACK with an MPTCP option
    // only (RFC 8684 §3), and four NOPs, in a row or not, because Linux pads so too.
    let harmless = ["Connection ", "This frame ", "Duplicate ACK", "4 NOP in a row"];
    for (row, (_, path, packet)) in rows.iter().zip(exchange::packets()) {
        let [protocols, interface, subtype, checksum, malformed, remarks, stream] = &row[..] else {
            panic!("fields of {packet}: {row:?}")
        };
        assert!(protocols.starts_with("raw:ip:tcp:mptcp"), "{protocols} in {packet}");
        assert_eq!(interface, if path == PathId(0) { "client:wlan" } else { "client:1" });
        assert_eq!(checksum, "1", "good checksum: {packet}");
        assert_eq!(malformed, "", "{packet}");
        for remark in remarks.split(',').filter(|remark| !remark.is_empty()) {
            assert!(harmless.iter().any(|known| remark.starts_with(known)), "{remark} in {packet}");
        }
        if packet.segment.options.dss().is_some() {
            assert_eq!(stream, "0", "both subflows belong to one connection: {packet}");
        }
        for subtype in subtype.split(',') {
            *subtypes.entry(subtype.into()).or_default() += 1;
        }
    }
    let expected: BTreeMap<String, usize> = exchange::subtypes().into_iter().map(|(s, n)| (s.to_string(), n)).collect();
    assert_eq!(subtypes, expected);
}
