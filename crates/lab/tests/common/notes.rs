//! A test's record of a run: the engine's events and packets.

use anabranch_recorders::PcapNg;
use anabranch_trace::{CloseReason, Event, Origin, Recorder, Violation};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::{MptcpOption, Packet};
use bytes::Bytes;
use std::fs::File;
use std::io::BufWriter;

/// A packet that the engine sent or received, without its payload.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    /// The engine sent it.
    pub sent: bool,
    /// The network path.
    pub path: PathId,
    pub packet: Packet,
    /// Bytes of payload.
    pub len: usize,
}

impl Seen {
    pub fn has(&self, option: impl Fn(&MptcpOption) -> bool) -> bool {
        self.packet.segment.options.mptcp().iter().any(option)
    }
}

/// Records one engine's packets, if requested, and the events other than single packets.
pub struct Notes {
    engine: Side,
    captured: bool,
    pub packets: Vec<Seen>,
    pub events: Vec<(Instant, PathId, Event)>,
    /// Captures that a test reads.
    pub captures: Vec<PcapNg<Vec<u8>>>,
    file: Option<PcapNg<BufWriter<File>>>,
}

/// A variable that names a directory, into which every test writes a capture, named after the test.
const PCAP: &str = "ANABRANCH_PCAP";

impl Notes {
    pub fn new(engine: Side, captured: bool) -> Self {
        let file = std::env::var(PCAP).ok().map(|directory| {
            let test = std::thread::current().name().unwrap_or("test").replace("::", ".");
            let file = File::create(format!("{directory}/{test}.pcapng")).expect("a capture can be written");
            PcapNg::new(BufWriter::new(file), Vec::new()).expect("a capture can be begun")
        });
        Self { engine, captured, packets: Vec::new(), events: Vec::new(), captures: Vec::new(), file }
    }

    /// Packets that the engine sent.
    pub fn sent(&self) -> impl Iterator<Item = &Seen> {
        self.packets.iter().filter(|seen| seen.sent)
    }

    /// Packets that the engine received.
    pub fn got(&self) -> impl Iterator<Item = &Seen> {
        self.packets.iter().filter(|seen| !seen.sent)
    }

    pub fn has(&self, event: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(_, _, e)| event(e))
    }

    /// Why the engine's connection ended.
    pub fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|(_, _, event)| match event {
            Event::Closed(why) => Some(*why),
            _ => None,
        })
    }

    /// The violations that the engine found in the peer's segments.
    pub fn violations(&self) -> Vec<Violation> {
        let violation = |(_, _, event): &(_, _, Event)| match event {
            Event::Violation(violation) => Some(*violation),
            _ => None,
        };
        self.events.iter().filter_map(violation).collect()
    }
}

impl Recorder for Notes {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        let kept = matches!(
            event,
            Event::Path(_)
                | Event::Closed(_)
                | Event::Violation(_)
                | Event::Fallback
                | Event::Marked
                | Event::Connected(_)
                | Event::Scheduler(_)
                | Event::Timeout { .. }
                | Event::SchedulerValue { .. }
        );
        if kept && origin.host == Some(self.engine) {
            self.events.push((now, origin.path, *event));
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        if let Some(file) = &mut self.file {
            file.packet(now, host, sent, path, packet);
        }
        for capture in &mut self.captures {
            capture.packet(now, host, sent, path, packet);
        }
        if host == self.engine && self.captured {
            let mut packet = packet.clone();
            let len = packet.segment.payload.len();
            // Its payload is a slice of a large buffer.
            packet.segment.payload = Bytes::new();
            self.packets.push(Seen { at: now, sent, path, packet, len });
        }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = file.finish();
        }
    }
}
