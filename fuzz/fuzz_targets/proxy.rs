//! Any bytes of a program at a SOCKS5 port, of a client at a server's proxy and at its measurement service, and any rules and targets as
//! text: no panic, and the same end in whatever pieces the bytes come.
//!
//! The first byte is the size of the pieces, less one, and whether a password is needed.

#![no_main]

use anabranch_measure::read_messages;
use anabranch_proxy::{Forward, Rules, SocksHandshake, SocksResult, Target, read_request};
use libfuzzer_sys::fuzz_target;

/// The end of a negotiation, and all that was said.
fn talk(guarded: bool, bytes: &[u8], size: usize) -> (Vec<u8>, Option<SocksResult>) {
    let (mut handshake, mut said) = (SocksHandshake::new(guarded), Vec::new());
    let mut end = None;
    for piece in bytes.chunks(size) {
        match &mut end {
            Some(SocksResult::Connect { early, .. }) => Vec::extend_from_slice(early, piece),
            Some(SocksResult::Refused) => {}
            None => {
                let outcome = handshake.take(piece, &|user, password| user == password);
                said.extend(outcome.say);
                end = outcome.end;
            }
        }
    }
    (said, end)
}

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let (guarded, size) = (first & 128 != 0, usize::from(first & 127) + 1);
    assert_eq!(talk(guarded, bytes, size), talk(guarded, bytes, bytes.len().max(1)));
    let _ = read_messages(bytes);
    if let Ok(Some(target)) = read_request(bytes) {
        let _ = target.to_string();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(target) = Target::parse(text) {
            assert_eq!(Target::parse(&target.to_string()), Some(target));
        }
        let _ = Forward::parse(text);
        if let Ok(scheduler) = anabranch_scenario::scheduler("fuzz", "minrtt") {
            let _ = Rules::parse("rules", text, scheduler, &["wlan0".to_owned()]);
        }
    }
});
