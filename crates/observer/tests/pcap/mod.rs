//! Reading the captures of one connection, one file for each path, in the order of time.

use anabranch_units::{Instant, PathId};
use anabranch_wire::{Flags, Packet};
use bytes::Bytes;
use pcap_file::pcap::PcapReader;
use std::fs::File;
use std::path::Path;

pub struct Captured {
    pub now: Instant,
    pub path: PathId,
    pub by_client: bool,
    pub packet: Packet,
}

/// The packets of `names`; the client is the sender of SYNs.
pub fn captured(names: &[&str]) -> Vec<Captured> {
    const ETHERNET_HEADER: usize = 14;
    let mut all = Vec::new();
    for (path, name) in names.iter().enumerate() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wire").join(format!("{name}.pcap"));
        let mut reader = PcapReader::new(File::open(file).expect("the capture is there")).expect("it is a capture");
        while let Some(record) = reader.next_packet() {
            let record = record.expect("it is whole");
            let now = Instant::from_nanos(record.timestamp.as_nanos() as u64);
            let bytes = Bytes::from(record.data.into_owned()).slice(ETHERNET_HEADER..);
            let packet = Packet::parse(bytes).expect("it parses");
            all.push(Captured { now, path: PathId(path as u8), by_client: false, packet });
        }
    }
    all.sort_by_key(|c| c.now);
    let syns = all.iter().filter(|c| c.packet.segment.flags == Flags::SYN);
    let clients: Vec<_> = syns.map(|c| (c.packet.src, c.packet.segment.src_port)).collect();
    for c in &mut all {
        c.by_client = clients.contains(&(c.packet.src, c.packet.segment.src_port));
    }
    all
}
