//! A kernel as a host: a namespace, one device per path, addresses, routes, MPTCP endpoints.

use super::{ClientPath, Counters, KernelSettings, counters, facts};
use crate::{LabError, Namespace, Tun};
use anabranch_sim::address;
use anabranch_units::{PathId, Side};
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::IpAddr;

/// The addresses: the client has one per path, the server one that all paths reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv6.
    pub v6: bool,
    /// The number of paths.
    pub paths: usize,
}

impl Addresses {
    /// The client's address on a path.
    pub fn client(&self, path: usize) -> IpAddr {
        address(self.v6, PathId(path as u8), 0, Side::Client)
    }

    /// The server's address.
    pub fn server(&self) -> IpAddr {
        address(self.v6, PathId(0), 0, Side::Server)
    }

    /// The path of a client address.
    pub fn path(&self, client: IpAddr) -> Option<usize> {
        (0..self.paths).find(|path| self.client(*path) == client)
    }

    /// The client's addresses with their paths.
    pub fn routes(&self) -> Vec<(IpAddr, usize)> {
        (0..self.paths).map(|path| (self.client(path), path)).collect()
    }
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
        let settings = settings.clone().fitted(addresses.v6, over.len());
        let namespace = Namespace::new()?;
        prepare(&namespace, addresses, &settings)?;
        let open = |path| Tun::open(&device(path), settings.mtu(addresses.v6, path), settings.offload);
        let open = || (0..addresses.paths).map(open).collect::<Result<Vec<_>, _>>();
        let devices = namespace.enter(open)??;
        let mut script = String::new();
        devices_up(addresses, &mut script);
        if settings.mptcp {
            let _ = writeln!(script, "mptcp limits set subflow {ENDPOINTS} add_addr_accepted {ENDPOINTS}");
        }
        match side {
            Side::Client => {
                let backup = |path: usize| backup.get(path) == Some(&true);
                let paths = over.iter().enumerate().map(|(rank, path)| (*path, rank == 0));
                for (path, first) in paths {
                    ClientPath::new(addresses, path, first).comes(&settings, backup(path), &mut script);
                }
            }
            Side::Server => server(addresses, &settings.route, &mut script),
        }
        namespace.command("ip", &batch(addresses), &script)?;
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
        list.push(("mtu".into(), self.settings.mtu_list(self.addresses.v6, self.addresses.paths)));
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
fn prepare(namespace: &Namespace, addresses: Addresses, settings: &KernelSettings) -> Result<(), LabError> {
    let disable = if addresses.v6 { "0" } else { "1" };
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
fn devices_up(addresses: Addresses, script: &mut String) {
    let _ = writeln!(script, "link set lo up");
    for path in 0..addresses.paths {
        // By netlink: its ioctl is refused in a user namespace.
        let _ = writeln!(script, "link set {} txqueuelen {QUEUE} up", device(path));
    }
}

/// Arguments with which `ip` reads its commands from standard input.
pub(super) fn batch(addresses: Addresses) -> [&'static str; 3] {
    [if addresses.v6 { "-6" } else { "-4" }, "-batch", "-"]
}

/// The prefix length of a single address.
pub(super) fn host_prefix(addresses: Addresses) -> u8 {
    if addresses.v6 { 128 } else { 32 }
}

fn server(addresses: Addresses, route: &str, script: &mut String) {
    let (server, prefix) = (addresses.server(), host_prefix(addresses));
    let nodad = if addresses.v6 { " nodad" } else { "" };
    let _ = writeln!(script, "addr add {server}/{prefix} dev lo{nodad}");
    for path in 0..addresses.paths {
        let client = addresses.client(path);
        let _ = writeln!(script, "route add {client}/{prefix} dev {} src {server}{route}", device(path));
    }
}
