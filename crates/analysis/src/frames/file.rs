//! One capture file, read as a stream.

use super::blocks::{Blocks, Met, Raw};
use super::link::{self, NoPacket};
use super::packet::{self, NoSegment};
use super::{Fault, Frame, Place, Skipped};
use anabranch_units::Instant;
use std::collections::BTreeMap;
use std::io::Read;

/// The bytes of a capture, from its beginning.
pub type Bytes = Box<dyn Read>;

/// A capture file: its frames one by one. It is never held.
pub(crate) struct File {
    number: usize,
    blocks: Blocks,
    tally: Tally,
    /// The reason why the file was not read to its end.
    pub cut: Option<&'static str>,
    last: Instant,
}

/// Counts of a file so far.
#[derive(Default)]
pub(crate) struct Tally {
    pub skipped: Skipped,
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// The number of each interface: by the file's blocks, and by the link layer.
    numbers: BTreeMap<(u32, u32), u16>,
}

impl File {
    /// Opens a capture: pcap or pcapng, by its first bytes.
    pub fn open(number: usize, bytes: Bytes) -> Result<Self, Fault> {
        let blocks = Blocks::open(bytes).map_err(|kind| Fault { capture: number, kind })?;
        Ok(Self { number, blocks, tally: Tally::default(), cut: None, last: Instant::ZERO })
    }

    /// Counts of the frames that were read so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The next frame with a segment; `None` at the end, or where the file is damaged.
    pub fn next(&mut self) -> Option<Frame> {
        while self.cut.is_none() {
            let tally = &mut self.tally;
            match self.blocks.next(|raw| tally.take(&raw)) {
                Met::Packet(Some(mut frame)) => {
                    // Several queues of a device write in a slightly wrong order.
                    self.last = self.last.max(frame.now);
                    frame.now = self.last;
                    frame.place.file = self.number as u16;
                    return Some(frame);
                }
                Met::Packet(None) | Met::Other => {}
                Met::End => return None,
                Met::Damage(why) => self.cut = Some(why),
            }
        }
        None
    }
}

impl Tally {
    /// The segment of a frame; counts the frame if it has none.
    fn take(&mut self, raw: &Raw<'_>) -> Option<Frame> {
        self.skipped.frames += 1;
        let missing = raw.original.saturating_sub(raw.data.len());
        let known = link::is_known(raw.link);
        let inside = if known { link::inside(raw.link, raw.data) } else { Err(NoPacket::Foreign) };
        let read = inside.map_err(NoSegment::from).and_then(|inside| Ok((packet::read(inside.ip, missing)?, inside)));
        let ((packet, id), inside) = read.map_err(|no| self.skipped.count(no, known)).ok()?;
        self.skipped.snapped += u64::from(missing > 0);
        let interfaces = &mut self.interfaces;
        let number = *self.numbers.entry((raw.interface, inside.interface)).or_insert_with(|| {
            interfaces.push(match inside.interface {
                0 => raw.name.to_owned(),
                index => format!("interface {index}"),
            });
            (interfaces.len() - 1).min(usize::from(u16::MAX)) as u16
        });
        let place = Place { file: 0, interface: number };
        Some(Frame { now: Instant::from_nanos(raw.nanos), place, sent: raw.sent.or(inside.sent), id, packet })
    }
}
