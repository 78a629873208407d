//! `path.mtu`, `path.mtu_signal` and `path.ip`, beside the hosts that must obey them.

use super::fields::Fields;
use super::network::Network;
use crate::diagnostic::Code;
use crate::scenario::{Host, Hosts, MtuSignal};
use crate::tree::{Node, Report};
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

/// Checks the MTUs of all `paths`, and those that the timeline's `changes` set.
pub(super) fn check(
    report: &mut Report,
    paths: &[Fields<'_>],
    changes: &[Fields<'_>],
    network: &Network,
    hosts: &Hosts,
) {
    let changed = |name: &str| {
        let of = format!("path.{name}.mtu");
        let sets = changes.iter().filter_map(|change| change.written("set"));
        sets.filter(|set| set.as_text().is_some_and(|text| text.starts_with(&of))).collect::<Vec<_>>()
    };
    for ((fields, path), options) in paths.iter().zip(&network.topology.paths).zip(&network.options) {
        let nodes = fields.places("mtu");
        for direction in [Direction::Down, Direction::Up] {
            if let (Some(node), Some(mtu)) = (nodes.get(direction), path.way(direction).mtu) {
                check_least(report, node, mtu, options.ip.unwrap_or(hosts.ip));
            }
        }
        let linux = [hosts.sender, hosts.receiver].contains(&Host::Linux);
        if let Some(node) = fields.written("ip").filter(|_| linux && options.ip.is_some_and(|ip| ip != hosts.ip)) {
            report
                .error(Code::Conflict, node.at, "a Linux host has paths of one IP version here")
                .label(format!("hosts.ip is {}", hosts.ip))
                .help("let this engine be both hosts, or give all paths the version of hosts.ip");
        }
        let changed = changed(&path.name);
        if let Some(node) = fields.written("mtu_signal").filter(|_| options.mtu_signal != MtuSignal::Interface)
            && nodes.down.or(nodes.up).is_none()
            && changed.is_empty()
        {
            report
                .error(Code::Conflict, node.at, "`mtu_signal` is of a path that has an `mtu`")
                .label("this path has none")
                .help("give the path an mtu, or leave `mtu_signal` out");
        }
        for set in changed.into_iter().filter(|_| linux && options.mtu_signal == MtuSignal::Interface) {
            report
                .error(Code::Conflict, set.at, "a Linux host keeps the MTU of its interfaces")
                .label("needs engines as hosts")
                .help("let a router say so (mtu_signal = \"icmp\"), or let this engine be both hosts");
        }
    }
}
