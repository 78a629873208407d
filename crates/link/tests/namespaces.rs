//! Downloads over two interfaces that are shaped (`tbf`), between two namespaces. Needs root; SKIPPED without.

mod common;

use anabranch_units::Duration;
use common::MSS;
use common::ground::Ground;

const RATE: &str = "20mbit";
const SIZE: u64 = 16 << 20;

/// Downloads while `steps` happen, each as soon as so many bytes have come.
fn download_with(ground: &Ground, steps: &[(u64, &(dyn Fn() + Sync))]) -> anabranch_carrier::Counters {
    let mut step = 0;
    let (got, counters) = ground.download(SIZE, |bytes| {
        if let Some((_, act)) = steps.get(step).filter(|(at, _)| bytes >= *at) {
            act();
            step += 1;
        }
    });
    assert!(got.finished && got.bytes == SIZE, "{got:?}");
    assert_eq!(step, steps.len(), "everything happened during the download");
    counters
}

#[test]
fn one_download_uses_both_interfaces() {
    let Some(ground) = Ground::new(Some(RATE)) else { return };
    let (got, _) = ground.download(SIZE, |_| {});
    assert!(got.finished && got.bytes == SIZE, "{got:?}");
    // Less than one interface takes for these bytes, headers left out: a busy machine may need longer, so the first try is not
    // the last.
    let alone = Duration::from_secs_f64(SIZE as f64 * 8.0 / 20e6);
    let again = || ground.download(SIZE, |_| {}).0;
    assert!(got.took < alone || (0..3).any(|_| again().took < alone), "{got:?}");
}

#[test]
fn an_interface_that_fails_in_mid_download_costs_no_byte() {
    let Some(ground) = Ground::new(Some(RATE)) else { return };
    download_with(
        &ground,
        &[
            (2 << 20, &|| ground.cut(0)),
            (6 << 20, &|| ground.raise(0)),
            (8 << 20, &|| ground.cut(1)),
            (10 << 20, &|| ground.raise(1)),
        ],
    );
}

#[test]
fn an_interface_that_gets_another_address_is_followed() {
    let Some(ground) = Ground::new(Some(RATE)) else { return };
    let change = |n, host| {
        ground.address(n, host);
        ground.raise(n);
    };
    let counters = download_with(&ground, &[(2 << 20, &|| change(0, 7)), (6 << 20, &|| change(1, 8))]);
    assert!(counters.moved >= 2, "{counters:?}");
}

/// A host on the way marks what exceeds a rate: the datagrams' marks become their packets', the sender slows down, and nothing is lost.
#[test]
fn marks_on_the_way_slow_the_sender_down_without_a_loss() {
    let Some(ground) = Ground::new(Some(RATE)) else { return };
    if let Err(error) = ground.mark(0, 1_000) {
        println!("SKIPPED: nftables cannot set the ECN field here: {error}");
        return;
    }
    let carried = ground.carry(&["va0"], MSS, 8 << 20, |_| {});
    assert!(carried.got.finished, "{:?}", carried.got);
    let (marks, congestion) = (carried.marks, carried.congestion);
    assert!(marks.taken > 100 && marks.refused == 0, "{marks:?}");
    assert!(congestion.marked > 10, "{congestion:?}");
    // The losses that the sender assumes are no judge: a busy machine holds packets back.
    assert_eq!(ground.dropped(0), 0, "the kernel saw a loss");
}
