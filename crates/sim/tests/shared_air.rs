//! TCP over shared air: data and acknowledgments divide it.

mod common;

use anabranch_network::{Bottleneck, MediumSpec};
use anabranch_units::{Duration, Instant};
use common::{Delivered, Transfer, path};
use std::sync::Arc;

/// Mbit/s of one TCP from 4 s to 20 s at `mbit`, whose directions divide a medium with this overhead.
fn goodput(mbit: u64, overhead: Option<Duration>) -> f64 {
    let mut transfer = Transfer::new(vec![path("wifi", mbit * 1000, 5, 130)]);
    transfer.settings.mptcp = false;
    for way in transfer.paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
        if let Bottleneck::Own(own) = &mut way.bottleneck {
            own.medium = overhead.map(|overhead| Arc::new(MediumSpec { name: "air".into(), overhead, packets: 1 }));
        }
    }
    let mut delivered = Delivered { from: Instant::from_millis(4_000), ..Delivered::default() };
    transfer.world().run(Instant::from_millis(20_000), &mut delivered).expect("a legal run");
    delivered.bytes[0] as f64 * 8.0 / 16e6
}

/// The closed form: 1448 bytes of payload in 1500, and an acknowledgment of 52 bytes for two of them.
#[test]
fn acknowledgments_take_their_part_of_the_air() {
    for (mbit, overhead_us) in [(20, None), (20, Some(0)), (54, Some(150)), (54, Some(20))] {
        let overhead = f64::from(overhead_us.unwrap_or(0u32));
        let (packet, acknowledgment) = (overhead + 1500.0 * 8.0 / mbit as f64, overhead + 52.0 * 8.0 / mbit as f64);
        let airtime = 2.0 * packet + if overhead_us.is_some() { acknowledgment } else { 0.0 };
        let (expected, found) =
            (2.0 * 1448.0 * 8.0 / airtime, goodput(mbit, overhead_us.map(|us| Duration::from_micros(us.into()))));
        // Some packets have an acknowledgment of their own: at most a few per cent.
        assert!(
            (0.97..=1.005).contains(&(found / expected)),
            "{mbit} Mbit/s, {overhead_us:?} µs: {found}, not {expected}"
        );
    }
}
