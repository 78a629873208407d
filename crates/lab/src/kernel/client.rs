//! A path of a client that is a kernel, as commands for `ip -batch`.

use super::host::{device, host_prefix};
use super::{Addresses, KernelSettings};
use std::fmt::Write;

/// First routing table of the paths.
const TABLE: usize = 100;

/// The client's address, routes and MPTCP endpoint on a path. Its device is there and up all the time.
#[derive(Clone, Copy, Debug)]
pub struct ClientPath {
    addresses: Addresses,
    path: usize,
    /// Metric of its routes for packets without a source address.
    metric: usize,
}

// Writing to a string cannot fail.
impl ClientPath {
    /// The path of this index. The `first` is preferred by connections that name no address.
    pub fn new(addresses: Addresses, path: usize, first: bool) -> Self {
        Self { addresses, path, metric: if first { 1 } else { 2 + path } }
    }

    /// Appends what makes the path usable.
    pub fn comes(&self, settings: &KernelSettings, backup: bool, script: &mut String) {
        let (address, prefix, device) = (self.addresses.client(self.path), self.prefix(), device(self.path));
        let nodad = if self.addresses.v6 { " nodad" } else { "" };
        let _ = writeln!(script, "addr add {address}/{prefix} dev {device}{nodad}");
        // Packets from this address leave by this device, whatever their destination.
        let _ = writeln!(script, "rule add from {address} table {}", self.table());
        let route = &settings.route;
        for target in self.routes() {
            let _ = writeln!(script, "route add {target}{route}");
        }
        if settings.mptcp {
            // The first path too: a connection that begins on another path joins over it.
            let kind = if backup { "subflow backup" } else { "subflow" };
            let _ = writeln!(script, "mptcp endpoint add {address} dev {device} id {} {kind}", self.id());
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
        let address = self.addresses.client(self.path);
        let _ = writeln!(script, "rule del from {address} table {}", self.table());
        let _ = writeln!(script, "addr del {address}/{} dev {}", self.prefix(), device(self.path));
    }

    /// Appends what makes a backup of its subflows, or none.
    pub fn set_backup(&self, backup: bool, script: &mut String) {
        let kind = if backup { "backup" } else { "nobackup" };
        let _ = writeln!(script, "mptcp endpoint change id {} {kind}", self.id());
    }

    /// Routes of the path: by source address, to the server, to everything else.
    fn routes(&self) -> [String; 3] {
        let (address, device, metric) = (self.addresses.client(self.path), device(self.path), self.metric);
        let (server, prefix) = (self.addresses.server(), self.prefix());
        [
            format!("default dev {device} table {}", self.table()),
            format!("{server}/{prefix} dev {device} src {address} metric {metric}"),
            format!("default dev {device} src {address} metric {metric}"),
        ]
    }

    fn prefix(&self) -> u8 {
        host_prefix(self.addresses)
    }

    fn table(&self) -> usize {
        TABLE + self.path
    }

    /// Identifier of the endpoint.
    fn id(&self) -> usize {
        self.path + 1
    }
}
