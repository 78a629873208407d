//! A kernel as a host: a namespace, one device per path, addresses, routes, MPTCP endpoints.

use super::{ClientPath, Counters, KernelSettings, counters, facts};
use crate::{LabError, Namespace, Tun};
use anabranch_sim::address;
use anabranch_units::{PathId, Side};
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::IpAddr;

/// The addresses: the client has one per path, the server one per IP version, which all paths of that version reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Whether each path is of IPv6.
    pub v6: Vec<bool>,
}

impl Addresses {
    /// The number of paths.
    pub fn paths(&self) -> usize {
        self.v6.len()
    }

    /// Some paths are of IPv4 and some of IPv6.
    pub fn mixed(&self) -> bool {
        self.v6.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// The client's address on a path.
    pub fn client(&self, path: usize) -> IpAddr {
        address(self.v6[path], PathId(path as u8), 0, Side::Client)
    }

    /// The server's address on a path.
    pub fn server(&self, path: usize) -> IpAddr {
        server_address(self.v6[path])
    }

    /// The server's addresses: one, or one per IP version.
    pub fn servers(&self) -> Vec<IpAddr> {
        self.versions().map(server_address).collect()
    }

    /// Whether IPv4 is in use (`false`), and IPv6 (`true`).
    fn versions(&self) -> impl Iterator<Item = bool> + '_ {
        [false, true].into_iter().filter(|v6| self.v6.contains(v6))
    }

    /// The paths of an IP version.
    fn of(&self, v6: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.paths()).filter(move |path| self.v6[*path] == v6)
    }

    /// The path of a client address.
    pub fn path(&self, client: IpAddr) -> Option<usize> {
        (0..self.paths()).find(|path| self.client(*path) == client)
    }

    /// The client's addresses with their paths.
    pub fn routes(&self) -> Vec<(IpAddr, usize)> {
        (0..self.paths()).map(|path| (self.client(path), path)).collect()
    }
}

/// The server's address of an IP version.
fn server_address(v6: bool) -> IpAddr {
    address(v6, PathId(0), 0, Side::Server)
}

/// A network namespace with a TUN device per path.
#[derive(Debug)]
pub struct KernelHost {
    /// The namespace.
    pub namespace: Namespace,
    /// Devices of the host, in the order of the paths.
    pub devices: Vec<Tun>,
    /// The addresses of both hosts.
    pub addresses: Addresses,
    /// Settings of the host.
    pub settings: KernelSettings,
    /// Counters at the end of setup.
    before: Counters,
}

/// Packets that a device holds for us: the default of 500 overflows silently at speed.
const QUEUE: u32 = 10_000;

/// MPTCP_PM_ADDR_MAX of Linux (net/mptcp/protocol.h): a client's endpoints, one for each path; and the subflows that either end adds to the first.
const ENDPOINTS: usize = 8;

/// Refuses more paths than the kernel at this end uses.
///
/// # Errors
/// [`LabError::TooManyPaths`].
pub fn check_paths(side: Side, paths: usize) -> Result<(), LabError> {
    let most = match side {
        Side::Client => ENDPOINTS,
        Side::Server => 1 + ENDPOINTS,
    };
    if paths > most { Err(LabError::TooManyPaths { paths, most }) } else { Ok(()) }
}

/// The device of a path.
pub(super) fn device(path: usize) -> String {
    format!("path{path}")
}

impl KernelHost {
    /// Sets a host up. `backup` marks the client's backup paths, by index; `over` are the paths in use, of which the
    /// first carries the first subflow.
    ///
    /// # Errors
    /// A lack of privilege; a program or a setting that this system does not have.
    pub fn new(
        side: Side,
        addresses: Addresses,
        over: &[usize],
        backup: &[bool],
        settings: &KernelSettings,
    ) -> Result<Self, LabError> {
        if settings.mptcp {
            check_paths(side, over.len())?;
        }
        let settings = settings.clone().fitted(addresses.v6.contains(&true), over.len());
        let namespace = Namespace::new()?;
        prepare(&namespace, &addresses, &settings)?;
        let open = |path| Tun::open(&device(path), settings.mtu(addresses.v6[path], path), settings.offload);
        let open = || (0..addresses.paths()).map(open).collect::<Result<Vec<_>, _>>();
        let devices = namespace.enter(open)??;
        let mut script = String::new();
        devices_up(addresses.paths(), &mut script);
        if settings.mptcp {
            let _ = writeln!(script, "mptcp limits set subflow {ENDPOINTS} add_addr_accepted {ENDPOINTS}");
        }
        // One call of `ip` takes rules of one IP version.
        for v6 in addresses.versions() {
            match side {
                Side::Client => {
                    for path in over.iter().copied().filter(|path| addresses.v6[*path] == v6) {
                        let backup = backup.get(path) == Some(&true);
                        ClientPath::new(&addresses, path, over[0]).comes(&settings, backup, &mut script);
                    }
                }
                Side::Server => server(&addresses, v6, over.first().copied(), &settings, &mut script),
            }
            namespace.command("ip", &batch(v6), &script)?;
            script.clear();
        }
        let before = counters(&namespace)?;
        Ok(Self { namespace, devices, addresses, settings, before })
    }

    /// Packets that its devices dropped because they were not read in time.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn device_drops(&self) -> Result<u64, LabError> {
        let table = "/proc/thread-self/net/dev";
        let text = self.namespace.enter(|| std::fs::read_to_string(table))?.map_err(LabError::system(table))?;
        Ok(text.lines().filter_map(dropped).sum())
    }

    /// The settings and the Multipath TCP sysctls, by name.
    ///
    /// # Errors
    /// The namespace is gone.
    pub fn listed(&self) -> Result<Vec<(String, String)>, LabError> {
        let mut list: Vec<(String, String)> = self.settings.list().collect();
        list.push(("mtu".into(), self.settings.mtu_list(&self.addresses.v6)));
        if self.settings.mptcp {
            let others = self.namespace.enter(facts::mptcp_sysctls)?;
            list.extend(
                others.into_iter().filter(|(name, _)| !self.settings.sysctls.iter().any(|(set, _)| set == name)),
            );
        }
        Ok(list)
    }

    /// The increase of its counters since setup.
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

/// Sysctls to set before the devices exist, because a device copies them when it is made.
fn prepare(namespace: &Namespace, addresses: &Addresses, settings: &KernelSettings) -> Result<(), LabError> {
    let disable = if addresses.v6.contains(&true) { "0" } else { "1" };
    // With reverse-path filtering a kernel would drop packets that its own routes would send elsewhere.
    let routing = [
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        // Otherwise the first packet of a device is a router solicitation.
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

/// Sets the devices up. Writing to a string cannot fail.
fn devices_up(paths: usize, script: &mut String) {
    let _ = writeln!(script, "link set lo up");
    for path in 0..paths {
        // By netlink: its ioctl is refused in a user namespace.
        let _ = writeln!(script, "link set {} txqueuelen {QUEUE} up", device(path));
    }
}

/// Arguments with which `ip` reads its commands from standard input.
pub(super) fn batch(v6: bool) -> [&'static str; 3] {
    [if v6 { "-6" } else { "-4" }, "-batch", "-"]
}

/// The prefix that is this address alone.
pub(super) fn alone(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv6() { 128 } else { 32 })
}

/// Adds an address to a device. Writing to a string cannot fail.
pub(super) fn add_address(address: IpAddr, device: &str, script: &mut String) {
    let nodad = if address.is_ipv6() { " nodad" } else { "" };
    let _ = writeln!(script, "addr add {} dev {device}{nodad}", alone(address));
}

/// The server's address and routes of an IP version. A client learns of an address of another version than that of the `first` path by
/// ADD_ADDR (RFC 8684 §3.4.1).
fn server(addresses: &Addresses, v6: bool, first: Option<usize>, settings: &KernelSettings, script: &mut String) {
    let server = server_address(v6);
    add_address(server, "lo", script);
    if settings.mptcp && first.is_some_and(|first| addresses.v6[first] != v6) {
        let _ = writeln!(script, "mptcp endpoint add {server} signal");
    }
    for path in addresses.of(v6) {
        let (client, route) = (alone(addresses.client(path)), &settings.route);
        let _ = writeln!(script, "route add {client} dev {} src {server}{route}", device(path));
    }
}
