//! Captures of Linux kernels, and how to analyse captures.

#![allow(dead_code, reason = "each test file uses its own part")]

use anabranch_analysis::{Analysis, Bytes, Capture, Fault, analyse};
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// The captures in `tests/data/wire`: one file for each path of a client's host.
pub const CAPTURES: [&str; 14] = [
    "addaddr_port4.p1",
    "addaddr_port4.p2",
    "backup4.p2",
    "fastclose4.p1",
    "fastclose4.p2",
    "join4.p1",
    "join4.p2",
    "join4_csum.p1",
    "join4_csum.p2",
    "join6.p1",
    "join6.p2",
    "plain4.p1",
    "rmaddr_prio4.p1",
    "rmaddr_prio4.p2",
];

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wire").join(format!("{name}.pcap"))
}

pub fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(name)).expect("the capture is there")
}

/// A capture that lies in memory.
pub fn capture(name: &str, bytes: Vec<u8>) -> Capture {
    Capture { name: name.into(), open: Box::new(move || Ok(Box::new(Cursor::new(bytes.clone())) as Bytes)) }
}

/// Several captures as one analysis.
pub fn of(captures: Vec<(&str, Vec<u8>)>) -> Result<Analysis, Fault> {
    let captures: Vec<Capture> = captures.into_iter().map(|(name, bytes)| capture(name, bytes)).collect();
    analyse(&captures, None)
}

pub fn analysed(names: &[&str]) -> Analysis {
    of(names.iter().map(|name| (*name, bytes(name))).collect()).expect("they are captures")
}
