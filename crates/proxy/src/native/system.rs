//! The system's addresses, routes and rules, as `ip -json` shows them.

use anabranch_lab::tool;
use anabranch_link::LinkError;
use ipnet::Ipv4Net;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::Ipv4Addr;

/// An interface with its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Interface {
    pub ifname: String,
    pub ifindex: u32,
    pub mtu: u32,
    pub addr_info: Vec<Address>,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Address {
    pub local: Ipv4Addr,
    #[serde(default)]
    pub prefixlen: u8,
}

/// A route; one with several next hops has their gateways and devices in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Route {
    /// A block, an address or `default`.
    pub dst: String,
    pub dev: Option<String>,
    pub gateway: Option<Ipv4Addr>,
    /// A gateway of another family.
    pub via: Option<Via>,
    pub metric: Option<u32>,
    /// The source address that it prefers.
    pub prefsrc: Option<Ipv4Addr>,
    pub flags: Vec<String>,
    /// Absent or `unicast` for one that leads somewhere.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub nexthops: Vec<Route>,
}

/// A gateway with its family.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Via {
    pub family: String,
    pub host: String,
}

/// A policy rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Rule {
    pub table: Option<String>,
}

impl Route {
    /// The route leads somewhere, and its interface is up.
    fn is_usable(&self) -> bool {
        let dead = self.flags.iter().any(|flag| ["linkdown", "dead"].contains(&flag.as_str()));
        !dead && self.kind.as_deref().is_none_or(|kind| kind == "unicast")
    }

    /// The same through one interface.
    fn through(&self, interface: &str) -> Vec<Self> {
        let is = |route: &&Self| route.dev.as_deref() == Some(interface) && route.is_usable();
        let hops = self.nexthops.iter().filter(is).map(|hop| Self {
            dst: self.dst.clone(),
            metric: self.metric,
            nexthops: Vec::new(),
            ..hop.clone()
        });
        [self].into_iter().filter(is).cloned().chain(hops).collect()
    }

    /// The block that it is for; `None` for a default route.
    fn block(&self) -> Option<Ipv4Net> {
        self.dst.parse().ok().or_else(|| Some(Ipv4Net::from(self.dst.parse::<Ipv4Addr>().ok()?)))
    }
}

/// One interface, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterfaceRoutes {
    pub interface: Interface,
    /// Routes of the main table.
    pub routes: Vec<Route>,
}

impl InterfaceRoutes {
    /// The address by which hosts behind the default route are reached: the one that the route names, else the one in the gateway's
    /// network, else the first. Without such a route: the first.
    pub fn source(&self) -> Option<Ipv4Addr> {
        let addresses = &self.interface.addr_info;
        let usual = self.routes.iter().find(|route| route.dst == "default");
        let shares = |address: &&Address, gateway: &Ipv4Addr| {
            Ipv4Net::new(address.local, address.prefixlen).is_ok_and(|net| net.contains(gateway))
        };
        let near =
            |route: &Route| addresses.iter().find(|address| route.gateway.is_some_and(|one| shares(address, &one)));
        let near = || usual.and_then(near).or(addresses.first()).map(|address| address.local);
        usual.and_then(|route| route.prefsrc).or_else(near)
    }
}

/// All that `ip` shows.
#[derive(Debug, Default)]
pub(super) struct SystemNetwork {
    interfaces: Vec<Interface>,
    routes: Vec<Route>,
}

/// The output of `ip -json` for these arguments. It prints nothing where there is nothing.
pub(super) fn shown<T: DeserializeOwned + Default>(arguments: &[&str]) -> Result<T, LinkError> {
    let text = tool::run("ip", &[&["-json", "-4"], arguments].concat(), "")?;
    read(&text).map_err(|error| LinkError::Network {
        what: format!("`ip -json -4 {}` printed what cannot be read: {error}", arguments.join(" ")),
        help: None,
    })
}

fn read<T: DeserializeOwned + Default>(text: &str) -> serde_json::Result<T> {
    if text.trim().is_empty() { Ok(T::default()) } else { serde_json::from_str(text) }
}

impl SystemNetwork {
    /// The machine's interfaces and the routes of this table.
    pub fn read(table: &str) -> Result<Self, LinkError> {
        Ok(Self { interfaces: shown(&["address", "show"])?, routes: shown(&["route", "show", "table", table])? })
    }

    /// An interface with an address and a route.
    pub fn see(&self, name: &str) -> Option<InterfaceRoutes> {
        let interface = self.interfaces.iter().find(|one| one.ifname == name && !one.addr_info.is_empty())?.clone();
        let routes: Vec<Route> = self.routes.iter().flat_map(|route| route.through(name)).collect();
        (!routes.is_empty()).then_some(InterfaceRoutes { interface, routes })
    }

    /// All blocks of addresses that interfaces or routes use.
    pub fn used(&self) -> Vec<Ipv4Net> {
        let addresses = self.interfaces.iter().flat_map(|one| &one.addr_info);
        let own = addresses.filter_map(|address| Some(Ipv4Net::new(address.local, address.prefixlen).ok()?.trunc()));
        own.chain(self.routes.iter().filter_map(Route::block)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As iproute2 6.1 prints it.
    const ADDRESSES: &str = r#"[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP"],"mtu":65536,"qdisc":"noqueue",
        "addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host","label":"lo"}]},
        {"ifindex":2,"ifname":"wlan0","flags":["UP"],"mtu":1400,
        "addr_info":[{"family":"inet","local":"10.1.0.5","prefixlen":24,"scope":"global"}]},
        {"ifindex":3,"ifname":"usb0","flags":["UP"],"mtu":1500,
        "addr_info":[{"family":"inet","local":"10.2.0.5","prefixlen":24}]},{}]"#;
    const ROUTES: &str = r#"[{"dst":"default","gateway":"10.1.0.1","dev":"wlan0","protocol":"dhcp","metric":600,"flags":[]},
        {"dst":"default","gateway":"10.2.0.1","dev":"usb0","metric":700,"flags":["linkdown"]},
        {"dst":"10.1.0.0/24","dev":"wlan0","protocol":"kernel","scope":"link","prefsrc":"10.1.0.5","flags":[]},
        {"type":"unreachable","dst":"10.9.0.0/16","dev":"lo","flags":[]},
        {"dst":"192.0.2.7","metric":5,"flags":[],"nexthops":[{"gateway":"10.1.0.2","dev":"wlan0","weight":1,"flags":[]},
        {"via":{"family":"inet6","host":"fe80::1"},"dev":"usb0","weight":1,"flags":["onlink"]}]}]"#;

    fn system() -> SystemNetwork {
        SystemNetwork { interfaces: read(ADDRESSES).unwrap(), routes: read(ROUTES).unwrap() }
    }

    #[test]
    fn an_interface_has_its_routes_of_one_and_of_several_next_hops() {
        let seen = system().see("wlan0").unwrap();
        assert_eq!((seen.interface.ifindex, seen.interface.mtu), (2, 1400));
        let ends: Vec<_> = seen.routes.iter().map(|route| (route.dst.as_str(), route.gateway, route.metric)).collect();
        let gateway = |last| Some(Ipv4Addr::new(10, 1, 0, last));
        let expected =
            [("default", gateway(1), Some(600)), ("10.1.0.0/24", None, None), ("192.0.2.7", gateway(2), Some(5))];
        assert_eq!(ends, expected);
        let usb = system().see("usb0").unwrap();
        assert!(usb.routes.len() == 1 && usb.routes[0].via.is_some(), "one whose link is down leads nowhere: {usb:?}");
        assert_eq!(system().see("eth0"), None);
        assert_eq!(read::<Vec<Rule>>("\n").unwrap(), []);
    }

    #[test]
    fn hosts_behind_the_gateway_see_the_address_in_its_network() {
        let mut seen = system().see("wlan0").unwrap();
        assert_eq!(seen.source(), Some(Ipv4Addr::new(10, 1, 0, 5)));
        seen.interface.addr_info.insert(0, Address { local: Ipv4Addr::new(10, 8, 0, 1), prefixlen: 24 });
        assert_eq!(seen.source(), Some(Ipv4Addr::new(10, 1, 0, 5)));
        seen.routes[0].prefsrc = Some(Ipv4Addr::new(10, 8, 0, 1));
        assert_eq!(seen.source(), Some(Ipv4Addr::new(10, 8, 0, 1)));
        seen.routes.clear();
        assert_eq!(seen.source(), Some(Ipv4Addr::new(10, 8, 0, 1)), "the first");
    }

    #[test]
    fn every_address_and_route_is_in_use() {
        let used = system().used();
        for block in ["127.0.0.0/8", "10.2.0.0/24", "10.9.0.0/16", "192.0.2.7/32"] {
            assert!(used.contains(&block.parse().unwrap()), "{block}: {used:?}");
        }
        assert!(used.iter().all(|block| block.prefix_len() > 0), "a default route is no use");
    }
}
