//! One transfer between two endpoints with a man in the middle, drawn from the input: the properties of
//! `anabranch-adversary` hold.

#![no_main]

use anabranch_adversary::{Case, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let case = Case::from_bytes(data);
    if let Err(failure) = run(&case) {
        panic!("{}: {failure}", case.class);
    }
});
