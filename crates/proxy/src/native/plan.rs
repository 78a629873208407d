//! Which addresses, tables and rules are made: texts for `ip` and `nft`.

use super::system::{InterfaceRoutes, Route};
use anabranch_carrier::MAX_PATHS;
use anabranch_link::LinkError;
use ipnet::Ipv4Net;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Addresses for benchmarks, which no network on the internet has (RFC 2544 appendix C.2.2).
const RANGE: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
/// One of its blocks is taken.
const BLOCK: u8 = 24;
/// Policy rules of ours stand before those of others: they are for our addresses alone.
const PREFERENCE: u32 = 198;
/// Packets that a device holds for us: the default of 500 overflows silently at speed.
const QUEUE: u32 = 10_000;

/// A block that overlaps none of those that are `used`; the search begins at the one with this number.
pub(super) fn free_block(used: &[Ipv4Net], begin: u32) -> Option<Ipv4Net> {
    let all: Vec<Ipv4Net> = RANGE.subnets(BLOCK).ok()?.collect();
    let free = |block: &&Ipv4Net| !used.iter().any(|one| one.contains(*block) || block.contains(one));
    all.iter().cycle().skip(begin as usize % all.len()).take(all.len()).find(free).copied()
}

/// The engine's address on a path; its last number is that of a carrier's client.
pub(super) fn address(block: Ipv4Net, path: usize) -> Ipv4Addr {
    let [a, b, c, _] = block.network().octets();
    Ipv4Addr::new(a, b, c, path as u8 + 1)
}

/// The routing table of an address: its own number, which no other table has.
pub(super) fn table(address: Ipv4Addr) -> u32 {
    address.into()
}

/// Names go into scripts.
///
/// # Errors
/// A name that no script can have, or too many of them.
pub(super) fn check(interfaces: &[String]) -> Result<(), LinkError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if let Some(name) = interfaces.iter().find(|name| name.is_empty() || !name.chars().all(fits)) {
        let what = format!("the interface {name:?}: letters, digits, `_`, `.`, `:` and `-` alone can be used");
        return Err(LinkError::Network { what, help: None });
    }
    if interfaces.len() > MAX_PATHS {
        return Err(LinkError::Network { what: format!("at most {MAX_PATHS} interfaces can be used"), help: None });
    }
    Ok(())
}

/// A path, as scripts name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathScript<'a> {
    pub interface: &'a str,
    pub device: &'a str,
    pub address: Ipv4Addr,
}

impl PathScript<'_> {
    /// For `ip -batch`: the device, and the rules by which packets from its address and to it find the path's own table.
    pub fn rules(&self) -> String {
        let Self { device, address, .. } = self;
        let table = table(*address);
        format!(
            "link set {device} txqueuelen {QUEUE} up\n\
             rule add pref {PREFERENCE} from {address} lookup {table}\n\
             rule add pref {PREFERENCE} to {address} lookup {table}\n"
        )
    }

    /// For `ip -batch`: the table. Where the interface leads nowhere, nothing leaves by another one.
    pub fn routes(&self, seen: Option<&InterfaceRoutes>) -> String {
        let Self { interface, device, address } = self;
        let table = table(*address);
        let mut script = format!(
            "route replace {address}/32 dev {device} table {table}\n\
             route replace unreachable default metric {} table {table}\n",
            u32::MAX
        );
        if let Some(seen) = seen {
            let _ = writeln!(script, "link set {device} mtu {}", seen.interface.mtu);
        }
        // Those to the gateways come first.
        let mut routes: Vec<&Route> = seen.iter().flat_map(|seen| &seen.routes).collect();
        routes.sort_by_key(|route| route.gateway.is_some() || route.via.is_some());
        for Route { dst, gateway, via, metric, flags, .. } in routes {
            let _ = write!(script, "route replace {dst} ");
            let _ = match (gateway, via) {
                (Some(gateway), _) => write!(script, "via {gateway} "),
                (None, Some(via)) => write!(script, "via {} {} ", via.family, via.host),
                (None, None) => Ok(()),
            };
            let _ = write!(script, "dev {interface} table {table}");
            let _ = metric.map_or(Ok(()), |metric| write!(script, " metric {metric}"));
            let onlink = if flags.iter().any(|flag| flag == "onlink") { " onlink" } else { "" };
            let _ = writeln!(script, "{onlink}");
        }
        script
    }

    /// For `nft`, in the table `name`: from now on connections of the device leave with this address, and those of others to these ports of it come to
    /// the device. Those that exist keep theirs, even when the interface goes and comes back, which would end them under `masquerade`.
    pub fn translation(&self, name: &str, source: Ipv4Addr, ports: &[u16]) -> String {
        let Self { device, address, .. } = self;
        let mut script =
            format!("flush chain inet {name} {device}\nadd rule inet {name} {device} snat ip to {source}\n");
        if !ports.is_empty() {
            let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let _ = write!(
                script,
                "flush chain inet {name} {device}-in\n\
                 add rule inet {name} {device}-in ip daddr {source} tcp dport {{ {ports} }} dnat ip to {address}\n"
            );
        }
        script
    }

    /// For `nft`, in the table `name`: an interface for which forwarding of IPv4 is switched on forwards for no other host.
    pub fn guard(&self, name: &str) -> String {
        let Self { interface, device, .. } = self;
        format!("add rule inet {name} forward meta nfproto ipv4 iifname \"{interface}\" oifname != \"{device}\" drop\n")
    }
}

/// For `ip -batch`: takes back rules and tables of an address.
pub(super) fn removal(address: Ipv4Addr) -> String {
    let table = table(address);
    format!(
        "rule del pref {PREFERENCE} from {address} lookup {table}\n\
         rule del pref {PREFERENCE} to {address} lookup {table}\n\
         route flush table {table}\n"
    )
}

/// The rules of what may pass to a device, for `nft`. Without a listener answers alone: what connection tracking does not know, or finds invalid, has no such state. With
/// one also what our translation has sent there, which it does with the first packet of a connection.
fn admission(device: &str, listens: bool) -> String {
    match listens {
        false => format!("oifname \"{device}\" ct state != {{ established, related }} drop\n"),
        // A packet that is not tracked has no status, which no comparison would match.
        true => format!(
            "oifname \"{device}\" ct state {{ invalid, untracked }} drop\n\
             oifname \"{device}\" ct state new ct status & dnat == 0 drop\n"
        ),
    }
}

/// For `nft`: the table `name`. A device's packets have its address, and leave by its interface alone, with the interface's address; what comes back
/// is [admitted](admission). MSS options are those of the interface's MTU at most. Programs of this host reach no device of a server; the engine of a
/// proxy may connect to an address of this host, whose answers come that way.
pub(super) fn ruleset<'a>(name: &str, scripts: impl Iterator<Item = PathScript<'a>>, listens: bool) -> String {
    let [mut chains, mut first, mut to, mut from, mut forward, mut own] = [const { String::new() }; 6];
    for PathScript { interface, device, address } in scripts {
        let _ = writeln!(first, "iifname \"{device}\" ip saddr != {address} drop");
        let _ = writeln!(chains, "chain {device} {{\n}}");
        if listens {
            let _ = writeln!(chains, "chain {device}-in {{\n}}");
            let _ = writeln!(to, "iifname \"{interface}\" goto {device}-in");
            let _ = writeln!(own, "oifname \"{device}\" meta l4proto tcp drop");
        }
        let _ = writeln!(from, "ip saddr {address} oifname \"{interface}\" goto {device}");
        let _ = write!(
            forward,
            "iifname \"{device}\" oifname != \"{interface}\" drop\n\
             oifname \"{device}\" iifname != \"{interface}\" drop\n{}\
             iifname \"{device}\" tcp flags syn tcp option maxseg size set rt mtu\n\
             oifname \"{device}\" tcp flags syn tcp option maxseg size set rt mtu\n",
            admission(device, listens)
        );
    }
    let chain =
        |name: &str, hook: &str, rules: &str| format!("chain {name} {{\ntype {hook}; policy accept;\n{rules}}}\n");
    let serving = if listens {
        chain("destination", "nat hook prerouting priority -100", &to)
            + &chain("output", "filter hook output priority 0", &own)
    } else {
        String::new()
    };
    format!(
        "table inet {name} {{\n{chains}{}{serving}{}{}}}\n",
        chain("prerouting", "filter hook prerouting priority -300", &first),
        chain("postrouting", "nat hook postrouting priority 100", &from),
        chain("forward", "filter hook forward priority 0", &forward),
    )
}

#[cfg(test)]
mod tests {
    use super::super::system::Interface;
    use super::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    #[test]
    fn a_block_is_taken_that_nothing_uses() {
        assert_eq!(free_block(&[], 0), Some(net("198.18.0.0/24")));
        assert_eq!(free_block(&[], 513), Some(net("198.18.1.0/24")));
        assert_eq!(free_block(&[net("198.18.0.0/16")], 0), Some(net("198.19.0.0/24")), "a block around it");
        assert_eq!(free_block(&[net("198.18.5.9/32")], 5), Some(net("198.18.6.0/24")), "an address in it");
        assert_eq!(free_block(&[net("198.18.0.0/16"), net("198.19.0.0/16")], 7), None);
        assert_eq!(address(net("198.18.5.0/24"), 15), Ipv4Addr::new(198, 18, 5, 16));
    }

    #[test]
    fn names_that_could_be_commands_are_refused() {
        let check = |name: &str| check(&[name.to_owned()]);
        assert!(["wlan0", "eth0.5", "br-1_a"].iter().all(|name| check(name).is_ok()));
        assert!(["", "a b", "a\nb", "a\"b", "a;b"].iter().all(|name| check(name).is_err()));
    }

    #[test]
    fn a_proxy_admits_answers_alone_and_a_server_what_comes_to_its_ports() {
        let script = PathScript { interface: "wlan0", device: "anab7-0", address: Ipv4Addr::new(198, 18, 5, 1) };
        let source = Ipv4Addr::new(10, 1, 0, 5);
        let proxy = ruleset("t", [script].into_iter(), false) + &script.translation("t", source, &[]);
        assert!(proxy.contains("oifname \"anab7-0\" ct state != { established, related } drop"), "{proxy}");
        assert!(!proxy.contains("dnat") && !proxy.contains("hook output") && !proxy.contains("-in"), "{proxy}");
        let server = ruleset("t", [script].into_iter(), true) + &script.translation("t", source, &[80, 8080]);
        assert!(!server.contains("!= { established"), "{server}");
        for part in [
            "chain destination {\ntype nat hook prerouting priority -100; policy accept;\niifname \"wlan0\" goto anab7-0-in\n}",
            "chain output {\ntype filter hook output priority 0; policy accept;\noifname \"anab7-0\" meta l4proto tcp drop\n}",
            "oifname \"anab7-0\" ct state { invalid, untracked } drop",
            "oifname \"anab7-0\" ct state new ct status & dnat == 0 drop",
            "add rule inet t anab7-0-in ip daddr 10.1.0.5 tcp dport { 80, 8080 } dnat ip to 198.18.5.1",
        ] {
            assert!(server.contains(part), "{part}: {server}");
        }
    }

    #[test]
    fn a_table_has_the_routes_of_its_interface_and_no_other_way_out() {
        let address = Ipv4Addr::new(198, 18, 5, 1);
        let script = PathScript { interface: "wlan0", device: "anab7-0", address };
        let number = u32::from(address);
        let nowhere = format!(
            "route replace 198.18.5.1/32 dev anab7-0 table {number}\n\
             route replace unreachable default metric 4294967295 table {number}\n"
        );
        assert_eq!(script.routes(None), nowhere);
        let gateway = Some(Ipv4Addr::new(10, 1, 0, 1));
        let route = |dst: &str, gateway, metric, flags: &[&str]| Route {
            dst: dst.into(),
            gateway,
            metric,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ..Route::default()
        };
        let routes = vec![route("default", gateway, Some(600), &["onlink"]), route("10.1.0.0/24", None, None, &[])];
        let seen = InterfaceRoutes { interface: Interface { mtu: 1400, ..Interface::default() }, routes };
        let expected = format!(
            "{nowhere}link set anab7-0 mtu 1400\n\
             route replace 10.1.0.0/24 dev wlan0 table {number}\n\
             route replace default via 10.1.0.1 dev wlan0 table {number} metric 600 onlink\n"
        );
        assert_eq!(script.routes(Some(&seen)), expected);
    }
}
