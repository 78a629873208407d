//! Results folders of strangers: links, names, sizes, types. Nothing outside is written or removed, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/common/stranger.rs"]
mod stranger;

fuzz_target!(|bytes: &[u8]| stranger::play(bytes));
