//! Whole transfers.

mod common;

use anabranch_sim::Halt;
use anabranch_units::Instant;
use common::{Delivered, Transfer, path};

#[test]
fn a_sized_transfer_ends_with_its_last_byte() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    t.size = Some(1_000_000);
    let mut seen = Delivered { verbose: std::env::var("SHOW").is_ok(), ..Delivered::default() };
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut seen), Ok(Halt::Done));
    assert_eq!(seen.bytes, [1_000_000]);
    assert!(world.now() < Instant::from_millis(1_500), "{}", world.now());
}

#[test]
fn two_paths_carry_more_than_one() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100), path("b", 10_000, 20, 100)]);
    t.size = Some(4_000_000);
    let mut seen = Delivered { verbose: std::env::var("SHOW").is_ok(), ..Delivered::default() };
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut seen), Ok(Halt::Done));
    assert_eq!(seen.bytes, [4_000_000]);
    assert!(world.now() < Instant::from_millis(2_200), "{}", world.now());
    assert_eq!((seen.stalls, seen.timeouts), (0, 0));
}
