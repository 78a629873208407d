//! `path.mtu`, `path.mtu_signal` and `path.ip`, beside the hosts that must obey them.

use super::fields::Fields;
use super::network::Network;
use crate::diagnostic::Code;
use crate::scenario::{Host, Hosts, MtuSignal, TimelineChange, TimelineEntry, opens_a_version_late};
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

/// Reports path `n` if a client that is a kernel would not join it: the server announces its address of an IP version at the beginning, and
/// the kernel forgets what it has no path to.
fn check_start(
    report: &mut Report,
    fields: &Fields<'_>,
    (n, network): (usize, &Network),
    (hosts, client): (&Hosts, Host),
) {
    let version = network.options[n].version(hosts);
    if let Some(node) = fields.written("start").filter(|_| client == Host::Linux)
        && opens_a_version_late(&network.options, hosts, n)
    {
        report
            .error(
                Code::Conflict,
                node.at,
                format!("a Linux client joins no first path of IPv{version} that appears later"),
            )
            .label("the other paths of its IP version appear later, too, if there are any")
            .help("let a path of this version be there from the beginning, or let this engine be the client");
    }
}

/// Checks `mtu`, `mtu_signal` and `ip` of all `paths`. `timeline`: its changes, if they have no mistake.
pub(super) fn check(
    report: &mut Report,
    paths: &[Fields<'_>],
    timeline: Option<&[TimelineEntry]>,
    network: &Network,
    (hosts, client): (&Hosts, Host),
) {
    for (n, ((fields, path), options)) in paths.iter().zip(&network.topology.paths).zip(&network.options).enumerate() {
        let nodes = fields.places("mtu");
        for direction in [Direction::Down, Direction::Up] {
            if let (Some(node), Some(mtu)) = (nodes.get(direction), path.way(direction).mtu) {
                check_least(report, node, mtu, options.version(hosts));
            }
        }
        check_start(report, fields, (n, network), (hosts, client));
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
