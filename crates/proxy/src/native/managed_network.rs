//! The network of a command, as its keeper makes it, follows the interfaces, and takes it back.

use super::plan::{self, PathScript};
use super::protocol::{InterfaceState, InterfaceStates, KeeperConfig, NetworkReady};
use super::system::{InterfaceRoutes, Route, SystemNetwork, shown};
use super::undo_log::{Forwarding, UndoLog, all_forward, forwards, set_forwarding};
use anabranch_lab::tool;
use anabranch_link::LinkError;
use anabranch_units::Rng;
use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;

/// The MTU of an interface that does not exist yet.
const MTU: u32 = 1_500;

/// The state of an interface.
#[derive(Debug, Default)]
struct ManagedInterface {
    seen: Option<InterfaceRoutes>,
    state: u32,
    /// The address with which connections leave by it, even while it is gone.
    source: Option<Ipv4Addr>,
    /// The interface forwards for us alone.
    guarded: bool,
}

/// A network that is set up. Dropped, it is taken back.
#[derive(Debug)]
pub(super) struct ManagedNetwork {
    config: KeeperConfig,
    log: UndoLog,
    managed: Vec<ManagedInterface>,
}

fn ip(script: &str) -> Result<(), LinkError> {
    Ok(tool::run("ip", &["-4", "-batch", "-"], script).map(drop)?)
}

fn nft(script: &str) -> Result<(), LinkError> {
    Ok(tool::run("nft", &["-f", "-"], script).map(drop)?)
}

/// A device of ours forwards, and has no IPv6, whose first packet would be a router solicitation.
fn prepare(device: &str) -> Result<(), LinkError> {
    set_forwarding(device)?;
    // Without IPv6 in the system there is no such file.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
    Ok(())
}

/// The number of the block that these interfaces get if it is free: the same after a restart, so that segments of connections before it,
/// which connection tracking still translates, are answered with resets.
fn usual_block(interfaces: &[String]) -> u32 {
    Rng::stream(0, &interfaces.join(",")).bits() as u32
}

impl ManagedNetwork {
    /// Sets everything up, after it has taken back what was left behind.
    ///
    /// # Errors
    /// A program is missing or fails, or an interface is in use. Nothing remains then.
    pub fn begin(config: KeeperConfig) -> Result<Self, LinkError> {
        plan::check(&config.interfaces)?;
        // A missing program is named before anything is changed.
        tool::run("nft", &["--version"], "")?;
        let lock = UndoLog::lock()?;
        UndoLog::clear(&config.interfaces)?;
        let used = SystemNetwork::read("all")?.used();
        let Some(block) = plan::free_block(&used, usual_block(&config.interfaces)) else {
            let what = "198.18.0.0/15, from which the devices get addresses, is in use".to_owned();
            return Err(LinkError::Network { what, help: Some("`ip route show table all` shows by whom".to_owned()) });
        };
        let count = config.interfaces.len();
        let addresses: Vec<Ipv4Addr> = (0..count).map(|path| plan::address(block, path)).collect();
        let log = UndoLog::new(config.interfaces.clone(), addresses)?;
        log.save()?;
        drop(lock);
        let managed = (0..count).map(|_| ManagedInterface::default()).collect();
        let mut network = Self { config, log, managed };
        network.make()?;
        network.look()?;
        Ok(network)
    }

    fn script(&self, path: usize) -> PathScript<'_> {
        let KeeperConfig { interfaces, devices, .. } = &self.config;
        PathScript { interface: &interfaces[path], device: &devices[path], address: self.log.addresses[path] }
    }

    fn scripts(&self) -> impl Iterator<Item = PathScript<'_>> {
        (0..self.managed.len()).map(|path| self.script(path))
    }

    fn make(&self) -> Result<(), LinkError> {
        nft(&plan::ruleset(&self.log.table, self.scripts(), !self.config.ports.is_empty()))?;
        self.config.devices.iter().try_for_each(|device| prepare(device))?;
        let script: String = self.scripts().map(|script| script.rules() + &script.routes(None)).collect();
        ip(&script)
    }

    /// The state of what is set up.
    pub fn ready(&self) -> NetworkReady {
        let mtus = self.managed.iter().map(|managed| managed.seen.as_ref().map_or(MTU, |seen| seen.interface.mtu));
        NetworkReady { addresses: self.log.addresses.clone(), mtu: mtus.min().unwrap_or(MTU), states: self.states() }
    }

    /// The interfaces' state.
    pub fn states(&self) -> InterfaceStates {
        let state = |managed: &ManagedInterface| {
            managed.seen.as_ref()?;
            Some(InterfaceState { number: managed.state, source: managed.source? })
        };
        self.managed.iter().map(state).collect()
    }

    /// Makes sure that nothing is forwarded without the rules of nftables.
    ///
    /// # Errors
    /// The table of them is gone.
    pub fn check(&self) -> Result<(), LinkError> {
        // Unless it can be listed nothing is known; it is looked for at the next change.
        if self.log.has_table().unwrap_or(true) {
            return Ok(());
        }
        let what = format!("another program removed the nftables table inet {}", self.log.table);
        let help = "`nft flush ruleset` does, with which /etc/nftables.conf may begin. Start this command again after each reload of nftables; \
                    systemd does so by Restart=on-failure";
        Err(LinkError::Network { what, help: Some(help.to_owned()) })
    }

    /// Follows the interfaces. True if something has changed that connections notice.
    ///
    /// # Errors
    /// A program fails: an interface may have gone meanwhile.
    pub fn look(&mut self) -> Result<bool, LinkError> {
        let system = SystemNetwork::read("main")?;
        let before = self.states();
        for path in 0..self.managed.len() {
            let seen = system.see(&self.config.interfaces[path]);
            if seen != self.managed[path].seen || self.has_lost_routes(path) {
                self.change(path, seen)?;
            }
        }
        Ok(before != self.states())
    }

    /// An interface that went and came back between two looks looks the same, but the kernel has removed its routes from every table.
    fn has_lost_routes(&self, path: usize) -> bool {
        if self.managed[path].seen.is_none() {
            return false;
        }
        let PathScript { interface, address, .. } = self.script(path);
        // A table without any route is none, which is a failure of `ip`.
        let routes: Vec<Route> =
            shown(&["route", "show", "table", &plan::table(address).to_string()]).unwrap_or_default();
        !routes.iter().any(|route| route.dev.as_deref() == Some(interface))
    }

    /// Routes follow the interface. Connections are lost with its address.
    fn change(&mut self, path: usize, seen: Option<InterfaceRoutes>) -> Result<(), LinkError> {
        if seen.is_some() {
            self.forward(path)?;
        }
        // Until it is done, the interface is none.
        self.managed[path].seen = None;
        let script = self.script(path);
        let source = seen.as_ref().and_then(InterfaceRoutes::source);
        if let Some(source) = source.filter(|_| source != self.managed[path].source) {
            nft(&script.translation(&self.log.table, source, &self.config.ports))?;
            let managed = &mut self.managed[path];
            (managed.source, managed.state) = (Some(source), managed.state + 1);
        }
        let script = self.script(path);
        let table = plan::table(script.address);
        ip(&format!("route flush table {table}\n{}", script.routes(seen.as_ref())))?;
        self.managed[path].seen = seen;
        Ok(())
    }

    /// Lets answers through from an interface to its device.
    fn forward(&mut self, path: usize) -> Result<(), LinkError> {
        let interface = &self.config.interfaces[path];
        if forwards(interface) != Some(false) {
            return Ok(());
        }
        if !self.managed[path].guarded {
            nft(&self.script(path).guard(&self.log.table))?;
            self.managed[path].guarded = true;
        }
        if !self.log.forwarding.iter().any(|one| one.interface == *interface) {
            self.log.forwarding.push(Forwarding { interface: interface.clone(), all: all_forward() });
            self.log.save()?;
        }
        set_forwarding(interface)
    }
}

impl Drop for ManagedNetwork {
    fn drop(&mut self) {
        if let Err(error) = self.log.undo() {
            // The next start repeats it. Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "taking the network back: {error}");
        }
    }
}
