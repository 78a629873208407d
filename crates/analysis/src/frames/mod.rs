//! Frames of captures as values: one stream over several files, in the order of time.

mod blocks;
mod fault;
mod file;
mod link;
mod packet;

pub use fault::{Fault, FaultKind};
pub use file::Bytes;

use anabranch_units::Instant;
use anabranch_wire::Packet;
use file::File;
use packet::NoSegment;
use serde::Serialize;
use std::io;

/// Where a packet was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub file: u16,
    pub interface: u16,
}

/// One TCP packet of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub now: Instant,
    pub place: Place,
    /// The capturing host sent it, or received it, where the capture says so.
    pub sent: Option<bool>,
    /// The IPv4 identification.
    pub id: u16,
    /// The packet, whose payload has the true length and no contents.
    pub packet: Packet,
}

/// Counts of frames, and of those that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// All frames.
    pub frames: u64,
    /// Frames of which the capture kept a part; those with whole headers are used.
    pub snapped: u64,
    /// Left out: other protocols than TCP.
    pub foreign: u64,
    /// Left out: on an interface whose link type is not read.
    pub unknown_link: u64,
    /// Left out: fragments.
    pub fragments: u64,
    /// Left out: too little of the headers was kept.
    pub cut: u64,
    /// Left out: headers that contradict themselves.
    pub malformed: u64,
}

impl Skipped {
    fn count(&mut self, no: NoSegment, known_link: bool) {
        *match no {
            _ if !known_link => &mut self.unknown_link,
            NoSegment::Foreign => &mut self.foreign,
            NoSegment::Fragment => &mut self.fragments,
            NoSegment::Cut => &mut self.cut,
            NoSegment::Malformed => &mut self.malformed,
        } += 1;
    }
}

/// A capture's name, and how to read it from its beginning.
pub struct Capture {
    /// For messages.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn Fn() -> io::Result<Bytes>>,
}

/// Facts about a capture file after reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaptureInfo {
    /// Name of the file.
    pub name: String,
    /// Interfaces; without a name where the file has none.
    pub interfaces: Vec<String>,
    /// Counts of its frames.
    pub frames: Skipped,
    /// Why it was not read to its end.
    pub cut: Option<&'static str>,
}

/// The frames of all files, merged by time.
pub(crate) struct Frames {
    files: Vec<File>,
    next: Vec<Option<Frame>>,
    names: Vec<String>,
}

impl Frames {
    /// Opens all captures.
    pub fn open(captures: &[Capture]) -> Result<Self, Fault> {
        let open = |(number, capture): (usize, &Capture)| {
            let bytes = (capture.open)().map_err(|e| Fault { capture: number, kind: FaultKind::Unreadable(e) })?;
            File::open(number, bytes)
        };
        let files = captures.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        let names = captures.iter().map(|capture| capture.name.clone()).collect();
        let mut frames = Self { next: files.iter().map(|_| None).collect(), files, names };
        (0..frames.files.len()).for_each(|n| frames.refill(n));
        Ok(frames)
    }

    fn refill(&mut self, n: usize) {
        self.next[n] = self.files[n].next();
    }

    /// Facts about each file, as far as it was read.
    pub fn info(&self) -> Vec<CaptureInfo> {
        let info = |(file, name): (&File, &String)| CaptureInfo {
            name: name.clone(),
            interfaces: file.tally().interfaces.clone(),
            frames: file.tally().skipped,
            cut: file.cut,
        };
        self.files.iter().zip(&self.names).map(info).collect()
    }
}

impl Iterator for Frames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let times = self.next.iter().enumerate().filter_map(|(n, frame)| Some((frame.as_ref()?.now, n)));
        let (_, n) = times.min()?;
        let frame = self.next[n].take();
        self.refill(n);
        frame
    }
}
