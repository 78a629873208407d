//! A path of a client that is a kernel, as commands for `ip -batch`.

use super::host::{add_address, alone, device};
use super::{Addresses, KernelSettings};
use std::fmt::Write;
use std::net::IpAddr;

/// First routing table of the paths.
const TABLE: usize = 100;

/// The client's address, routes and MPTCP endpoint on a path. Its device is there and up all the time.
#[derive(Clone, Copy, Debug)]
pub struct ClientPath {
    path: usize,
    address: IpAddr,
    server: IpAddr,
    /// Metric of its routes for packets without a source address.
    metric: usize,
    /// The first subflow is of another IP version: joins lead to an address that the server announces.
    is_other: bool,
}

// Writing to a string cannot fail.
impl ClientPath {
    /// The path of this index. The `first` is preferred by connections that name no address.
    pub fn new(addresses: &Addresses, path: usize, first: usize) -> Self {
        let (address, server) = (addresses.client(path), addresses.server(path));
        let metric = if path == first { 1 } else { 2 + path };
        Self { path, address, server, metric, is_other: addresses.v6[path] != addresses.v6[first] }
    }

    /// Appends what makes the path usable.
    pub fn comes(&self, settings: &KernelSettings, backup: bool, script: &mut String) {
        let (address, device) = (self.address, device(self.path));
        add_address(address, &device, script);
        // Packets from this address leave by this device, whatever their destination.
        let _ = writeln!(script, "rule add from {address} table {}", self.table());
        let route = &settings.route;
        for target in self.routes() {
            let _ = writeln!(script, "route add {target}{route}");
        }
        if settings.mptcp {
            // The first path too: a connection that begins on another path joins over it.
            let backup = if backup { " backup" } else { "" };
            // A kernel joins an announced address from all endpoints with this flag, and from one otherwise.
            let mesh = if self.is_other { " fullmesh" } else { "" };
            let _ =
                writeln!(script, "mptcp endpoint add {address} dev {device} id {} subflow{mesh}{backup}", self.id());
        }
    }

    /// Appends what takes the path away: the endpoint first, so that the kernel can tell its peer over the others.
    pub fn goes(&self, settings: &KernelSettings, script: &mut String) {
        if settings.mptcp {
            let _ = writeln!(script, "mptcp endpoint delete id {}", self.id());
        }
        for target in self.routes() {
            let _ = writeln!(script, "route del {target}");
        }
        let _ = writeln!(script, "rule del from {} table {}", self.address, self.table());
        let _ = writeln!(script, "addr del {} dev {}", alone(self.address), device(self.path));
    }

    /// Appends what makes a backup of its subflows, or none.
    pub fn set_backup(&self, backup: bool, script: &mut String) {
        let kind = if backup { "backup" } else { "nobackup" };
        let _ = writeln!(script, "mptcp endpoint change id {} {kind}", self.id());
    }

    /// Routes of the path: by source address, to the server, to everything else.
    fn routes(&self) -> [String; 3] {
        let (address, device, metric) = (self.address, device(self.path), self.metric);
        [
            format!("default dev {device} table {}", self.table()),
            format!("{} dev {device} src {address} metric {metric}", alone(self.server)),
            format!("default dev {device} src {address} metric {metric}"),
        ]
    }

    fn table(&self) -> usize {
        TABLE + self.path
    }

    /// Identifier of the endpoint.
    fn id(&self) -> usize {
        self.path + 1
    }
}
