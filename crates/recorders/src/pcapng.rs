//! Packets as a capture that Wireshark reads.

use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::Packet;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::{io, time};

/// Writes every packet that a host sends or receives as pcapng (draft-ietf-opsawg-pcapng): IP packets without link
/// layer (LINKTYPE_RAW), in nanoseconds since the run began. Each host's end of each path is an interface,
/// `client:wlan`. The same run yields the same bytes on every machine.
///
/// After the sink's first error nothing more is written; [`PcapNg::finish`] returns it.
pub struct PcapNg<W: io::Write> {
    writer: PcapNgWriter<W>,
    paths: Vec<String>,
    host: Option<Side>,
    snap_len: u32,
    /// Interfaces described so far; the index is the interface's number.
    interfaces: Vec<(Side, PathId)>,
    bytes: Vec<u8>,
    error: Option<io::Error>,
}

/// Value of the packet block's flags for packets that came in: bits 0 and 1 (§4.3.1).
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;
/// A power of ten, negated.
const NANOSECONDS: u8 = 9;

impl<W: io::Write> PcapNg<W> {
    /// Captures both hosts, whole packets. `paths` are the names of the paths in the order of their [`PathId`]s; the
    /// others are named by number. Writes to `sink` at once; give it a buffer.
    pub fn new(sink: W, paths: Vec<String>) -> io::Result<Self> {
        let writer = PcapNgWriter::with_endianness(sink, Endianness::Little).map_err(io_error)?;
        Ok(Self { writer, paths, host: None, snap_len: 0, interfaces: Vec::new(), bytes: Vec::new(), error: None })
    }

    /// Captures this host alone. A capture of both hosts has every delivered packet twice.
    pub fn only(mut self, host: Side) -> Self {
        self.host = Some(host);
        self
    }

    /// Keeps the first `len` bytes of each packet; zero keeps all.
    pub fn snap_len(mut self, len: u32) -> Self {
        self.snap_len = len;
        self
    }

    /// Flushes and returns the sink, or its first error.
    pub fn finish(self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut sink = self.writer.into_inner();
        sink.flush()?;
        Ok(sink)
    }

    /// Writes an IP packet of any protocol, unchanged. [`Recorder::packet`] does so with the segments of engines.
    pub fn raw(&mut self, now: Instant, host: Side, sent: bool, path: PathId, bytes: &[u8]) {
        if self.error.is_none() && self.host.is_none_or(|only| only == host) {
            self.error = self.write(now, host, sent, path, bytes).err().map(io_error);
        }
    }

    fn write(&mut self, now: Instant, host: Side, sent: bool, path: PathId, bytes: &[u8]) -> Result<(), PcapError> {
        let interface_id = self.interface(host, path)?;
        let kept = if self.snap_len > 0 { bytes.len().min(self.snap_len as usize) } else { bytes.len() };
        self.writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id,
            timestamp: time::Duration::from_nanos(now.as_nanos()),
            original_len: bytes.len() as u32,
            data: Cow::Borrowed(&bytes[..kept]),
            options: vec![EnhancedPacketOption::Flags(if sent { OUTBOUND } else { INBOUND })],
        })?;
        Ok(())
    }

    /// The interface number of a host's end of a path, which is described at its first packet.
    fn interface(&mut self, host: Side, path: PathId) -> Result<u32, PcapError> {
        if let Some(known) = self.interfaces.iter().position(|&end| end == (host, path)) {
            return Ok(known as u32);
        }
        let host_name = match host {
            Side::Client => "client",
            Side::Server => "server",
        };
        let name = match self.paths.get(path.index()) {
            Some(path_name) => format!("{host_name}:{path_name}"),
            None => format!("{host_name}:{path}"),
        };
        self.writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: self.snap_len,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        })?;
        self.interfaces.push((host, path));
        Ok(self.interfaces.len() as u32 - 1)
    }
}

impl<W: io::Write> Recorder for PcapNg<W> {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.clear();
        packet.emit_into(&mut bytes);
        self.raw(now, host, sent, path, &bytes);
        self.bytes = bytes;
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
