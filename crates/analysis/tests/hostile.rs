//! Damaged captures: an error or a result, never a panic.

#![allow(clippy::disallowed_methods, reason = "tests run on a host with files")]

mod common;

use anabranch_analysis::FaultKind;
use anabranch_units::Rng;

#[test]
fn mutated_and_truncated_captures_give_an_error_or_a_result() {
    let mut rng = Rng::stream(7, "mutations");
    let (mut results, mut errors, mut cut) = (0, 0, 0);
    for n in 0..400 {
        let name = common::CAPTURES[n % common::CAPTURES.len()];
        let mut bytes = common::bytes(name);
        // Every fourth keeps its length; the others end anywhere, in the header too.
        if n % 4 > 0 {
            let most = if n % 8 == 1 { 40 } else { bytes.len() as u64 };
            bytes.truncate(rng.below(most) as usize);
        }
        let len = bytes.len() as u64;
        for _ in 0..if len > 0 { rng.below(12) } else { 0 } {
            // Half of the changes hit the first 400 bytes: headers of the file and of the handshake.
            let most = if rng.chance(0.5) { len.min(400) } else { len };
            let at = rng.below(most);
            bytes[at as usize] = rng.below(256) as u8;
        }
        match common::of(vec![(name, bytes)]) {
            Ok(analysis) => {
                results += 1;
                cut += usize::from(analysis.captures[0].cut.is_some());
            }
            Err(_) => errors += 1,
        }
    }
    assert!(results > 100 && errors > 20 && cut > 50, "{results} results, {errors} errors, {cut} cut");
}

#[test]
fn what_is_no_capture_is_named() {
    let kind = |bytes: &[u8]| common::of(vec![("x", bytes.to_vec())]).map(|_| ()).map_err(|fault| fault.kind);
    assert!(matches!(kind(b""), Err(FaultKind::Empty)));
    assert!(matches!(kind(b"# a text\n"), Err(FaultKind::NoCapture)));
    assert!(matches!(kind(&common::bytes("join4.p1")[..20]), Err(FaultKind::NoHeader)));
    let mut other = common::bytes("join4.p1");
    other[20..24].copy_from_slice(&147u32.to_le_bytes());
    assert!(matches!(kind(&other), Err(FaultKind::Link(147))));
}

#[test]
fn a_growing_file_is_read_to_its_last_whole_packet() {
    let whole = common::bytes("plain4.p1");
    let analysis = common::of(vec![("growing", whole[..whole.len() - 10].to_vec())]).expect("it is a capture");
    assert_eq!(analysis.captures[0].cut, Some("it ends in the middle of a packet"));
    let all = common::analysed(&["plain4.p1"]);
    assert_eq!(analysis.packets + 1, all.packets);
}
