//! Streams of every length.

use crate::common::{alone, ms, path};
use crate::transfer::{BOTH, MIB, both_ways, plain, plan, transfer};
use anabranch_units::Side;

/// No byte, a few bytes, sizes around a segment, around 64 KiB.
fn sizes() -> Vec<(u64, u64)> {
    let mut sizes: Vec<u64> = vec![0, 1, 2];
    sizes.extend(1399..=1500);
    sizes.extend([65_535, 65_536, 65_537, MIB]);
    let both = sizes.iter().map(|size| (*size, *size));
    let single = [0, 1, 1400, 1420, 65_537].into_iter().flat_map(|size| [(size, 0), (0, size)]);
    both.chain(single).collect()
}

fn every_size(engine: Side, v6: bool, multipath: bool) {
    let Some(_alone) = alone() else { return };
    let mut plan = if multipath { plan(engine, 2) } else { plain(engine) };
    plan.v6 = v6;
    let sizes = sizes();
    let outcome = transfer(&plan, &sizes, 16, ms(60_000));
    outcome.assert_in_order();
    let spoken = match engine {
        Side::Client => "MPTcpExtMPCapableSYNRX",
        Side::Server => "MPTcpExtMPCapableSYNTX",
    };
    let connections = if multipath { sizes.len() as u64 } else { 0 };
    assert_eq!(outcome.counter(spoken), connections);
}

#[test]
fn every_size_engine_client() {
    every_size(Side::Client, false, true);
}

#[test]
fn every_size_engine_server() {
    every_size(Side::Server, false, true);
}

#[test]
fn every_size_engine_client_v6() {
    every_size(Side::Client, true, true);
}

#[test]
fn every_size_engine_server_v6() {
    every_size(Side::Server, true, true);
}

#[test]
fn every_size_plain_tcp() {
    for engine in BOTH {
        every_size(engine, false, false);
    }
}

#[test]
fn every_size_plain_tcp_v6() {
    for engine in BOTH {
        every_size(engine, true, false);
    }
}

/// 64 MiB each way over two paths of 300 Mbit/s.
fn large(engine: Side) {
    let Some(_alone) = alone() else { return };
    let mut plan = plan(engine, 2);
    plan.paths = vec![path("a", 300, 2), path("b", 300, 5)];
    let outcome = both_ways(&plan, 64 * MIB);
    outcome.assert_clean(&[]);
    for way in ["MPTcpExtMPJoinSynTx", "MPTcpExtMPJoinSynRx"] {
        let joined = (way == "MPTcpExtMPJoinSynRx") == (engine == Side::Client);
        assert_eq!(outcome.counter(way), u64::from(joined), "{way}");
    }
}

#[test]
fn sixty_four_mib_each_way_engine_client() {
    large(Side::Client);
}

#[test]
fn sixty_four_mib_each_way_engine_server() {
    large(Side::Server);
}

#[test]
fn one_gib_to_the_kernel() {
    let Some(_alone) = alone() else { return };
    let mut plan = plan(Side::Server, 2);
    plan.paths = vec![path("a", 1000, 1), path("b", 1000, 1)];
    let outcome = transfer(&plan, &[(1 << 30, 0)], 1, ms(120_000));
    outcome.assert_clean(&[]);
}
