//! Which addresses are this host's own: what is sent there does not leave it.

use core::net::IpAddr;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io::{Error, Result};

/// The addresses of this host's interfaces, and its routes.
#[derive(Debug)]
pub(crate) struct LocalAddresses {
    addresses: Vec<IpAddr>,
    routes: Socket,
}

impl LocalAddresses {
    /// As they are now.
    ///
    /// # Errors
    /// The system does not list them: it has no file descriptor left, or forbids netlink.
    pub fn look() -> Result<Self> {
        let address = |interface: nix::ifaddrs::InterfaceAddress| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        };
        let addresses = nix::ifaddrs::getifaddrs()?.filter_map(address).collect();
        let routes = Socket::new(NETLINK_ROUTE)?;
        // Of the kernel alone.
        routes.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { addresses, routes })
    }

    /// True for the address of an interface, even of one in another VRF, or if a route makes it local (`ip route add local`).
    ///
    /// # Errors
    /// The system does not say.
    pub fn has(&self, address: IpAddr) -> Result<bool> {
        Ok(self.addresses.contains(&address) || self.is_routed_here(address)?)
    }

    /// rtnetlink(7): the route that a connection to `address` would take.
    fn is_routed_here(&self, address: IpAddr) -> Result<bool> {
        let (family, bits, destination) = match address {
            IpAddr::V4(v4) => (AddressFamily::Inet, 32, RouteAddress::Inet(v4)),
            IpAddr::V6(v6) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(v6)),
        };
        let mut route = RouteMessage::default();
        (route.header.address_family, route.header.destination_prefix_length) = (family, bits);
        route.attributes.push(RouteAttribute::Destination(destination));
        let mut ask = NetlinkMessage::from(RouteNetlinkMessage::GetRoute(route));
        ask.header.flags = NLM_F_REQUEST;
        ask.finalize();
        let mut bytes = vec![0; ask.buffer_len()];
        ask.serialize(&mut bytes);
        self.routes.send(&bytes, 0)?;
        let (answer, _) = self.routes.recv_from_full()?;
        match NetlinkMessage::deserialize(&answer).map_err(Error::other)?.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                Ok(matches!(route.header.kind, RouteType::Local | RouteType::Anycast))
            }
            // There is no route: who connects learns why.
            NetlinkPayload::Error(_) => Ok(false),
            _ => Err(Error::other("rtnetlink answers another question")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::Namespace;

    fn has(text: &str) -> bool {
        LocalAddresses::look().unwrap().has(text.parse().unwrap()).unwrap()
    }

    #[test]
    fn every_host_has_its_loopback_addresses() {
        // No interface has the second one.
        assert!(has("127.0.0.1") && has("127.9.9.9") && !has("192.0.2.1"));
    }

    #[test]
    fn an_address_is_own_if_a_route_alone_makes_it_local() {
        let Ok(namespace) = Namespace::new() else {
            return println!("SKIPPED: no network namespaces can be made here");
        };
        let run = |line: &str| {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            namespace.command("ip", &arguments, "").unwrap();
        };
        run("link set lo up");
        run("route add local 9.9.9.0/24 dev lo");
        run("route add local 8.8.8.8/32 dev lo table main");
        run("-6 route add local 2606:4700::/32 dev lo");
        let found = namespace.enter(|| ["9.9.9.9", "8.8.8.8", "2606:4700::1", "1.1.1.1", "2a00::1"].map(has)).unwrap();
        assert_eq!(found, [true, true, true, false, false]);
    }
}
