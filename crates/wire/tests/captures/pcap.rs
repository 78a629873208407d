//! Reading the captures.

use bytes::Bytes;
use pcap_file::pcap::PcapReader;
use std::fs::File;
use std::path::Path;

/// The IP packets of a capture of Ethernet frames.
pub fn packets(name: &str) -> Vec<Bytes> {
    const ETHERNET_HEADER: usize = 14;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wire").join(format!("{name}.pcap"));
    let mut reader = PcapReader::new(File::open(path).expect("the capture is there")).expect("it is a capture");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push(Bytes::from(packet.expect("it is whole").data.into_owned()).slice(ETHERNET_HEADER..));
    }
    packets
}
