//! Why captures cannot be analysed.

use std::io;

/// A capture that cannot be used.
#[derive(Debug)]
pub struct Fault {
    /// The number of the capture, from 0.
    pub capture: usize,
    /// The fault.
    pub kind: FaultKind,
}

/// A fault of a capture.
#[derive(Debug)]
pub enum FaultKind {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The file has no bytes.
    Empty,
    /// The file begins like no capture.
    NoCapture,
    /// The file ends or is damaged within its header.
    NoHeader,
    /// The link type, with this number, is not read.
    Link(u32),
}

impl FaultKind {
    /// The fault, as the end of a sentence about the file.
    pub fn what(&self) -> String {
        match self {
            Self::Unreadable(error) => format!("cannot be read: {error}"),
            Self::Empty => "is empty".into(),
            Self::NoCapture => "is neither pcap nor pcapng".into(),
            Self::NoHeader => "ends or is damaged within its header".into(),
            Self::Link(number) => format!("has the link type {number}, which is not read"),
        }
    }

    /// The remedy.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "name a file that you may read; of a directory, name the captures in it",
            Self::Empty => "let the capturing program end first: tcpdump writes whole packets at once with -U",
            Self::NoCapture => "name a file that tcpdump -w, dumpcap or `anabranch run --pcap` wrote, uncompressed",
            Self::NoHeader => "capture again: nothing in the file can be read",
            Self::Link(_) => {
                "capture on an Ethernet, `any` or TUN interface: Ethernet, Linux cooked, raw IP and loopback are read"
            }
        }
    }
}
