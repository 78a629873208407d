//! `path.mtu`, `path.mtu_signal` and `path.ip`, beside the hosts that must obey them.

use super::fields::Fields;
use super::network::Network;
use crate::diagnostic::Code;
use crate::scenario::{Host, Hosts, MtuSignal, TimelineChange, TimelineEntry};
use crate::tree::{Node, Report};
use anabranch_network::Change;
use anabranch_units::Direction;

/// The least MTU of a path of IPv6 (RFC 8200 §5).
const LEAST_V6: u32 = 1280;

/// Reports an MTU that the IP version does not allow.
pub(super) fn check_least(report: &mut Report, node: &Node, mtu: u32, ip: u8) {
    if ip == 6 && mtu < LEAST_V6 {
        report
            .error(Code::ImpossibleValue, node.at, format!("IPv6 has no path of less than {LEAST_V6} bytes"))
            .label(format!("{mtu} bytes (RFC 8200 §5)"))
            .help(format!("write {LEAST_V6} or more, or give the path ip = 4"));
    }
}

/// Checks `mtu`, `mtu_signal` and `ip` of all `paths`. `timeline`: its changes, if they have no mistake.
pub(super) fn check(
    report: &mut Report,
    paths: &[Fields<'_>],
    timeline: Option<&[TimelineEntry]>,
    network: &Network,
    hosts: &Hosts,
) {
    for (n, ((fields, path), options)) in paths.iter().zip(&network.topology.paths).zip(&network.options).enumerate() {
        let nodes = fields.places("mtu");
        for direction in [Direction::Down, Direction::Up] {
            if let (Some(node), Some(mtu)) = (nodes.get(direction), path.way(direction).mtu) {
                check_least(report, node, mtu, options.version(hosts));
            }
        }
        let differs = hosts.any_is(Host::Linux) && options.version(hosts) != hosts.ip;
        if let Some(node) = fields.written("ip").filter(|_| differs) {
            report
                .error(Code::Conflict, node.at, "a Linux host has paths of one IP version here")
                .label(format!("hosts.ip is {}", hosts.ip))
                .help("let this engine be both hosts, or give all paths the version of hosts.ip");
        }
        let sets =
            |entry: &TimelineEntry| matches!(entry.change, TimelineChange::Network(Change::Mtu(of, ..)) if of == n);
        let changes = timeline.is_none_or(|timeline| timeline.iter().any(sets));
        if let Some(node) = fields.written("mtu_signal").filter(|_| options.mtu_signal != MtuSignal::Interface)
            && nodes.down.or(nodes.up).is_none()
            && !changes
        {
            report
                .error(Code::Conflict, node.at, "`mtu_signal` is of a path that has an `mtu`")
                .label("this path has none")
                .help("give the path an mtu, or leave `mtu_signal` out");
        }
    }
}
