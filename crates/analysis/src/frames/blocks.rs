//! The records of pcap, and the blocks of pcapng (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

use super::file::Bytes;
use super::{FaultKind, link};
use pcap_file::pcap::{PcapReader, RawPcapPacket};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};
use std::io::{Chain, Cursor, ErrorKind, Read};

type Whole = Chain<Cursor<Vec<u8>>, Bytes>;

/// The records of a file, one by one.
pub(crate) enum Blocks {
    Pcap(Box<PcapReader<Whole>>),
    PcapNg { reader: Box<PcapNgReader<Whole>>, interfaces: Vec<Described>, section: u32 },
}

/// An interface of a pcapng section.
pub(crate) struct Described {
    link: DataLink,
    /// `if_tsresol`.
    resolution: u8,
    /// `if_tsoffset` in nanoseconds.
    offset: u64,
    name: String,
}

/// A frame's bytes, still in the reader's buffer.
pub(crate) struct Raw<'a> {
    /// Number in the file.
    pub interface: u32,
    pub name: &'a str,
    pub link: DataLink,
    /// Since 1970.
    pub nanos: u64,
    pub data: &'a [u8],
    /// Bytes that the frame had.
    pub original: usize,
    /// The capturing host sent it, or received it.
    pub sent: Option<bool>,
}

/// The next item of a file.
pub(crate) enum Met<T> {
    Packet(T),
    /// A block that has no packet.
    Other,
    End,
    /// Nothing more can be read, and why.
    Damage(&'static str),
}

/// Interfaces of one section of a file; more are damage.
const MOST_INTERFACES: usize = 1 << 12;
const DAMAGED: &str = "it is damaged there";

impl Blocks {
    /// Recognises the format by the first four bytes.
    pub fn open(mut bytes: Bytes) -> Result<Self, FaultKind> {
        let mut magic = Vec::new();
        let read = bytes.by_ref().take(4).read_to_end(&mut magic).map_err(FaultKind::Unreadable)?;
        let begins = u32::from_be_bytes(core::array::from_fn(|i| magic.get(i).copied().unwrap_or(0)));
        let whole = Cursor::new(magic).chain(bytes);
        match begins {
            _ if read == 0 => Err(FaultKind::Empty),
            0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 => {
                let reader = Box::new(PcapReader::new(whole).map_err(headless)?);
                let link = reader.header().datalink;
                if link::is_known(link) { Ok(Self::Pcap(reader)) } else { Err(FaultKind::Link(link.into())) }
            }
            0x0a0d_0d0a => {
                let reader = Box::new(PcapNgReader::new(whole).map_err(headless)?);
                Ok(Self::PcapNg { reader, interfaces: Vec::new(), section: 0 })
            }
            _ => Err(FaultKind::NoCapture),
        }
    }

    /// Hands the next packet to `take`.
    pub fn next<T>(&mut self, take: impl FnOnce(Raw<'_>) -> T) -> Met<T> {
        let (reader, interfaces, section) = match self {
            Self::Pcap(reader) => return from_pcap(reader, take),
            Self::PcapNg { reader, interfaces, section } => (reader, interfaces, section),
        };
        match reader.next_block() {
            None => Met::End,
            Some(Err(error)) => Met::Damage(why(&error)),
            Some(Ok(Block::EnhancedPacket(packet))) => from_block(&packet, interfaces, *section, take),
            Some(Ok(Block::InterfaceDescription(_))) if interfaces.len() >= MOST_INTERFACES => Met::Damage(DAMAGED),
            Some(Ok(Block::InterfaceDescription(block))) => {
                interfaces.push(Described::of(&block));
                Met::Other
            }
            Some(Ok(Block::SectionHeader(_))) => {
                interfaces.clear();
                *section = section.wrapping_add(1);
                Met::Other
            }
            Some(Ok(_)) => Met::Other,
        }
    }
}

fn headless(error: PcapError) -> FaultKind {
    match error {
        PcapError::IoError(error) if error.kind() != ErrorKind::UnexpectedEof => FaultKind::Unreadable(error),
        _ => FaultKind::NoHeader,
    }
}

fn why(error: &PcapError) -> &'static str {
    match error {
        PcapError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => "it ends in the middle of a packet",
        PcapError::IoError(_) => "it cannot be read further",
        _ => DAMAGED,
    }
}

fn from_pcap<T>(reader: &mut PcapReader<Whole>, take: impl FnOnce(Raw<'_>) -> T) -> Met<T> {
    let header = reader.header();
    let unit = if header.ts_resolution == TsResolution::NanoSecond { 1 } else { 1000 };
    let RawPcapPacket { ts_sec, ts_frac, orig_len, data, .. } = match reader.next_raw_packet() {
        None => return Met::End,
        Some(Err(error)) => return Met::Damage(why(&error)),
        Some(Ok(raw)) => raw,
    };
    let nanos = u64::from(ts_sec) * 1_000_000_000 + u64::from(ts_frac) * unit;
    let (link, original) = (header.datalink, orig_len as usize);
    Met::Packet(take(Raw { interface: 0, name: "", link, nanos, data: &data, original, sent: None }))
}

fn from_block<T>(
    packet: &EnhancedPacketBlock<'_>,
    interfaces: &[Described],
    section: u32,
    take: impl FnOnce(Raw<'_>) -> T,
) -> Met<T> {
    let Some(of) = interfaces.get(packet.interface_id as usize) else { return Met::Damage(DAMAGED) };
    let flags = packet.options.iter().find_map(|option| match option {
        EnhancedPacketOption::Flags(flags) => Some(flags & 3),
        _ => None,
    });
    // §4.3.1: 1 is inbound, 2 outbound
    let sent = flags.and_then(|direction| match direction {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    });
    let nanos = nanos(packet.timestamp.as_nanos() as u64, of.resolution).saturating_add(of.offset);
    let interface = section.wrapping_mul(MOST_INTERFACES as u32).wrapping_add(packet.interface_id);
    let (data, original) = (&packet.data[..], packet.original_len as usize);
    Met::Packet(take(Raw { interface, name: &of.name, link: of.link, nanos, data, original, sent }))
}

/// Nanoseconds from ticks, of which a second has a power of ten, or of two if the highest bit is set (§4.2).
fn nanos(ticks: u64, resolution: u8) -> u64 {
    const SECOND: u128 = 1_000_000_000;
    let exponent = u32::from(resolution & 0x7f);
    let per_second = if resolution & 0x80 == 0 { 10u128.checked_pow(exponent) } else { 1u128.checked_shl(exponent) };
    let nanos = per_second.map_or(0, |per_second| u128::from(ticks) * SECOND / per_second);
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

impl Described {
    fn of(block: &InterfaceDescriptionBlock<'_>) -> Self {
        // §4.2: microseconds unless given
        let mut of = Self { link: block.linktype, resolution: 6, offset: 0, name: String::new() };
        for option in &block.options {
            match option {
                InterfaceDescriptionOption::IfTsResol(exponent) => of.resolution = *exponent,
                InterfaceDescriptionOption::IfTsOffset(seconds) => of.offset = seconds.saturating_mul(1_000_000_000),
                InterfaceDescriptionOption::IfName(name) => of.name = name.chars().take(64).collect(),
                _ => {}
            }
        }
        of
    }
}
