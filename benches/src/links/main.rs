//! `links`: downloads over two veth pairs between two namespaces, encrypted. Needs root.
//!
//! `links rate`: goodput over both pairs, and over one, as fast as the machine can, and the CPU time of both ends and the kernel
//! between them. `links cut`: both pairs at 20 Mbit/s, one is
//! cut during a download; the longest time without data, in 20 trials.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program with arguments, and common code with threads and sockets"
)]

#[path = "../../../crates/link/tests/common/mod.rs"]
mod common;

use common::ground::Ground;
use cpu_time::ProcessTime;

/// The largest payload on a path of 1,472 bytes: without 32 bytes of the carrier, 20 of IPv4, 60 of TCP at most.
const LARGE: u32 = 1_360;
const TRIALS: u64 = 20;
const SIZE: u64 = 1 << 28;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("rate") => rate(),
        Some("cut") => cut(),
        _ => println!("usage: links rate | links cut"),
    }
}

fn rate() {
    for interfaces in [&["va0", "va1"][..], &["va0"]] {
        for trial in 1..=3 {
            let Some(ground) = Ground::new(None) else { return };
            let begun = ProcessTime::now();
            let (got, _) = ground.download_over(interfaces, LARGE, SIZE, |_| {});
            assert!(got.finished, "{got:?}");
            let each = begun.elapsed().as_secs_f64() / (got.bytes as f64 / f64::from(LARGE)) * 1e6;
            let gigabits = got.bytes as f64 * 8e-9 / got.took.as_secs_f64();
            println!(
                "{} interfaces, trial {trial}: {gigabits:.2} Gbit/s, {each:.2} µs of CPU per segment",
                interfaces.len()
            );
        }
    }
}

fn cut() {
    for trial in 1..=TRIALS {
        let Some(ground) = Ground::new(Some("20mbit")) else { return };
        let (mut done, size) = (false, 8 << 20);
        // At another byte in each trial, and on either interface.
        let at = (1 << 20) + trial * 150_000;
        let (got, _) = ground.download(size, |bytes| {
            if bytes >= at && !std::mem::replace(&mut done, true) {
                ground.cut((trial % 2) as u32);
            }
        });
        assert!(got.finished && done, "{got:?}");
        println!("trial {trial}: the longest silence is {:.0} ms", got.silence.as_secs_f64() * 1e3);
    }
}
