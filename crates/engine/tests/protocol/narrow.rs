//! A path drops every packet above a size, as one does whose router sends no ICMP (RFC 2923 §2.1).

use crate::common::pair::{Fate, Pair};
use crate::common::{at, pattern, plain_stamps};
use anabranch_trace::CloseReason;
use anabranch_units::Side;
use anabranch_wire::Flags;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that `writer` writes once the handshake is over.
const BYTES: usize = 100_000;
/// The longest packet that passes.
const MOST: usize = 500;
/// Virtual time, in milliseconds, within which an end must know.
const HOURS_3: u64 = 3 * 3_600_000;

/// Both ends after three hours in which the paths of `narrow` drop long packets, and how many SYNs were sent over those.
fn hours(paths: u8, narrow: fn(u8) -> bool, writer: Side) -> (Pair, usize) {
    let syns = Arc::new(AtomicUsize::new(0));
    let counted = syns.clone();
    let mut pair = Pair::new(paths, plain_stamps(), plain_stamps());
    pair.hook = Box::new(move |_, side, path, p| {
        let syn = side == Side::Client && p.segment.flags.has(Flags::SYN);
        counted.fetch_add(usize::from(syn && narrow(path)), Ordering::Relaxed);
        if narrow(path) && p.len() > MOST { Fate::Drop } else { Fate::Pass }
    });
    // Each end shows the other that it speaks MPTCP.
    pair.write(Side::Client, pattern(0, 100), false).run(at(1_000));
    pair.write(Side::Server, pattern(0, 100), false).run(at(2_000));
    pair.write(writer, pattern(0, BYTES), true).run(at(HOURS_3));
    let sent = syns.load(Ordering::Relaxed);
    (pair, sent)
}

#[test]
fn a_writer_is_told_that_no_path_carries_its_data() {
    for writer in [Side::Client, Side::Server] {
        let (mut pair, syns) = hours(1, |_| true, writer);
        assert_eq!(pair.party(writer).closed(), Some(CloseReason::TimedOut), "{writer:?}");
        // The peer may still have the subflow before, and challenges the first SYN of an attempt.
        assert!(syns <= 12, "{writer:?}: {syns} SYNs");
    }
}

#[test]
fn another_path_carries_all() {
    for writer in [Side::Client, Side::Server] {
        let (mut pair, syns) = hours(2, |path| path == 1, writer);
        let reader = writer.peer();
        let got = pair.party(reader).got.len();
        assert_eq!(got, 100 + BYTES, "{writer:?}");
        assert!(syns <= 12, "{writer:?}: {syns} SYNs");
    }
}
