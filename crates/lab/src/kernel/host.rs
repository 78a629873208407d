//! A kernel as a host: a namespace, one device a path, addresses, routes, MPTCP endpoints.

use super::{Counters, KernelSettings, counters, facts};
use crate::{LabError, Namespace, Tun};
use anabranch_sim::address;
use anabranch_units::{PathId, Side};
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::IpAddr;

/// Who is where: the client has one address on each path, the server one that is reached over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv6.
    pub v6: bool,
    /// How many paths there are.
    pub paths: usize,
}

impl Addresses {
    /// The client's on a path.
    pub fn client(&self, path: usize) -> IpAddr {
        address(self.v6, PathId(path as u8), 0, Side::Client)
    }

    /// The server's.
    pub fn server(&self) -> IpAddr {
        address(self.v6, PathId(0), 0, Side::Server)
    }

    /// The path on which the client has this address.
    pub fn path(&self, client: IpAddr) -> Option<usize> {
        (0..self.paths).find(|path| self.client(*path) == client)
    }

    /// The client's addresses with their paths.
    pub fn routes(&self) -> Vec<(IpAddr, usize)> {
        (0..self.paths).map(|path| (self.client(path), path)).collect()
    }
}

/// A network namespace with a TUN device for each path.
#[derive(Debug)]
pub struct KernelHost {
    /// Where it is.
    pub namespace: Namespace,
    /// Its devices, in the order of the paths.
    pub devices: Vec<Tun>,
    /// Who is where.
    pub addresses: Addresses,
    /// What was set in it.
    pub settings: KernelSettings,
    /// Counters when it was ready.
    before: Counters,
}

/// Packets that a device holds for us: the default of 500 overflows silently at speed.
const QUEUE: u32 = 10_000;
/// First routing table of the paths.
const TABLE: usize = 100;

/// The device of a path.
fn device(path: usize) -> String {
    format!("path{path}")
}

impl KernelHost {
    /// Sets a host up. `backup` says which of the client's paths are for emergencies only, by index; `over` are the paths
    /// in use, of which the first carries the first subflow.
    ///
    /// # Errors
    /// Neither root nor the like; a program or a setting that this system does not have.
    pub fn new(
        side: Side,
        addresses: Addresses,
        over: &[usize],
        backup: &[bool],
        settings: &KernelSettings,
    ) -> Result<Self, LabError> {
        let settings = settings.clone().fitted(addresses.v6, over.len());
        let namespace = Namespace::new()?;
        prepare(&namespace, addresses, &settings)?;
        let mtu = settings.mtu(addresses.v6);
        let open = || (0..addresses.paths).map(|path| Tun::open(&device(path), mtu)).collect::<Result<Vec<_>, _>>();
        let devices = namespace.enter(open)??;
        let mut script = match side {
            Side::Client => client(addresses, over, &settings.route),
            Side::Server => server(addresses, &settings.route),
        };
        if settings.mptcp {
            let _ = writeln!(script, "mptcp limits set subflow 8 add_addr_accepted 8");
            if side == Side::Client {
                endpoints(addresses, over, backup, &mut script);
            }
        }
        let family = if addresses.v6 { "-6" } else { "-4" };
        namespace.command("ip", &[family, "-batch", "-"], &script)?;
        let before = counters(&namespace)?;
        Ok(Self { namespace, devices, addresses, settings, before })
    }

    /// Packets that its devices dropped because nobody read them in time.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn device_drops(&self) -> Result<u64, LabError> {
        let table = "/proc/thread-self/net/dev";
        let text = self.namespace.enter(|| std::fs::read_to_string(table))?.map_err(LabError::system(table))?;
        Ok(text.lines().filter_map(dropped).sum())
    }

    /// What was set in it, and how Multipath TCP is set there, by name.
    ///
    /// # Errors
    /// The namespace is gone.
    pub fn listed(&self) -> Result<Vec<(String, String)>, LabError> {
        let mut list: Vec<(String, String)> = self.settings.list().collect();
        list.push(("mtu".into(), self.settings.mtu(self.addresses.v6).to_string()));
        if self.settings.mptcp {
            let others = self.namespace.enter(facts::mptcp_sysctls)?;
            list.extend(
                others.into_iter().filter(|(name, _)| !self.settings.sysctls.iter().any(|(set, _)| set == name)),
            );
        }
        Ok(list)
    }

    /// What its kernel has counted since it was set up.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn counted(&self) -> Result<Counters, LabError> {
        let mut now = counters(&self.namespace)?;
        now.retain(|name, value| {
            *value = value.saturating_sub(self.before.get(name).copied().unwrap_or(0));
            *value > 0
        });
        Ok(now)
    }
}

/// Transmitted packets that were dropped, from a device's line: name, eight counters of reception, eight of transmission.
fn dropped(line: &str) -> Option<u64> {
    let (name, counters) = line.split_once(':')?;
    let path = name.trim().starts_with("path");
    counters.split_whitespace().nth(11).filter(|_| path)?.parse().ok()
}

/// Settings, before the devices exist: what a device copies when it is made must be right by then.
fn prepare(namespace: &Namespace, addresses: Addresses, settings: &KernelSettings) -> Result<(), LabError> {
    let disable = if addresses.v6 { "0" } else { "1" };
    // A path is one-way to a kernel that checks where a packet should have come from.
    let routing = [
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        // The first packet of a device would be a router solicitation.
        ("net.ipv6.conf.all.disable_ipv6", disable),
        ("net.ipv6.conf.default.disable_ipv6", disable),
        ("net.ipv6.conf.default.accept_dad", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
    ];
    let routing = routing.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (name, value) in routing.iter().chain(&settings.sysctls) {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        let written = namespace.enter(|| std::fs::write(&file, value))?;
        written.map_err(|source| match source.kind() {
            ErrorKind::NotFound if name.starts_with("net.mptcp.") => LabError::NoMptcp,
            _ => LabError::System { what: format!("setting {name} to \"{value}\""), source },
        })?;
    }
    Ok(())
}

/// Devices up. Writing to a text cannot fail.
fn devices_up(addresses: Addresses, script: &mut String) {
    let _ = writeln!(script, "link set lo up");
    for path in 0..addresses.paths {
        // By netlink: the ioctl for it is refused in a user namespace.
        let _ = writeln!(script, "link set {} txqueuelen {QUEUE} up", device(path));
    }
}

/// Length of a prefix that is one address.
fn host_prefix(addresses: Addresses) -> u8 {
    if addresses.v6 { 128 } else { 32 }
}

fn client(addresses: Addresses, over: &[usize], route: &str) -> String {
    let mut script = String::new();
    devices_up(addresses, &mut script);
    let (server, prefix) = (addresses.server(), host_prefix(addresses));
    let nodad = if addresses.v6 { " nodad" } else { "" };
    for (rank, path) in over.iter().copied().enumerate() {
        let (address, device, table) = (addresses.client(path), device(path), TABLE + path);
        let _ = writeln!(script, "addr add {address}/{prefix} dev {device}{nodad}");
        // What has this address leaves by this device, wherever it goes.
        let _ = writeln!(script, "rule add from {address} table {table}");
        let _ = writeln!(script, "route add default dev {device} table {table}{route}");
        let metric = rank + 1;
        let _ = writeln!(script, "route add {server}/{prefix} dev {device} src {address} metric {metric}{route}");
        let _ = writeln!(script, "route add default dev {device} src {address} metric {metric}{route}");
    }
    script
}

/// The addresses from which a client joins.
fn endpoints(addresses: Addresses, over: &[usize], backup: &[bool], script: &mut String) {
    // The first too: a connection that begins on another path joins over it.
    for path in over.iter().copied() {
        let kind = if backup.get(path) == Some(&true) { "subflow backup" } else { "subflow" };
        let (address, device) = (addresses.client(path), device(path));
        let _ = writeln!(script, "mptcp endpoint add {address} dev {device} id {} {kind}", path + 1);
    }
}

fn server(addresses: Addresses, route: &str) -> String {
    let mut script = String::new();
    devices_up(addresses, &mut script);
    let (server, prefix) = (addresses.server(), host_prefix(addresses));
    let nodad = if addresses.v6 { " nodad" } else { "" };
    let _ = writeln!(script, "addr add {server}/{prefix} dev lo{nodad}");
    for path in 0..addresses.paths {
        let client = addresses.client(path);
        let _ = writeln!(script, "route add {client}/{prefix} dev {} src {server}{route}", device(path));
    }
    script
}
