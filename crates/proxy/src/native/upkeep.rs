//! The network of a command, as its keeper makes it, follows the interfaces, and takes it back.

use super::machine::{Machine, Route, Seen, shown};
use super::plan::{self, Way};
use super::protocol::{Orders, Ready, Turn, Turns};
use super::record::{Forwarding, Record, all_forward, forwards, set_forwarding};
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
struct Known {
    seen: Option<Seen>,
    turn: u32,
    /// The address with which connections leave by it, even while it is gone.
    source: Option<Ipv4Addr>,
    /// The interface forwards for us alone.
    guarded: bool,
}

/// A network that is set up. Dropped, it is taken back.
#[derive(Debug)]
pub(super) struct Upkeep {
    orders: Orders,
    record: Record,
    known: Vec<Known>,
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

impl Upkeep {
    /// Sets everything up, after it has taken back what was left behind.
    ///
    /// # Errors
    /// A program is missing or fails, or an interface is in use. Nothing remains then.
    pub fn begin(orders: Orders) -> Result<Self, LinkError> {
        plan::check(&orders.interfaces)?;
        // A missing program is named before anything is changed.
        tool::run("nft", &["--version"], "")?;
        let lock = Record::lock()?;
        Record::clear(&orders.interfaces)?;
        let used = Machine::read("all")?.used();
        let Some(block) = plan::free_block(&used, usual_block(&orders.interfaces)) else {
            let what = "198.18.0.0/15, from which the devices get addresses, is in use".to_owned();
            return Err(LinkError::Ground { what, help: Some("`ip route show table all` shows by whom".to_owned()) });
        };
        let count = orders.interfaces.len();
        let addresses: Vec<Ipv4Addr> = (0..count).map(|path| plan::address(block, path)).collect();
        let record = Record::new(orders.interfaces.clone(), addresses)?;
        record.save()?;
        drop(lock);
        let known = (0..count).map(|_| Known::default()).collect();
        let mut upkeep = Self { orders, record, known };
        upkeep.make()?;
        upkeep.look()?;
        Ok(upkeep)
    }

    fn way(&self, path: usize) -> Way<'_> {
        let Orders { interfaces, devices, .. } = &self.orders;
        Way { interface: &interfaces[path], device: &devices[path], address: self.record.addresses[path] }
    }

    fn ways(&self) -> impl Iterator<Item = Way<'_>> {
        (0..self.known.len()).map(|path| self.way(path))
    }

    fn make(&self) -> Result<(), LinkError> {
        nft(&plan::ruleset(&self.record.table, self.ways(), !self.orders.ports.is_empty()))?;
        self.orders.devices.iter().try_for_each(|device| prepare(device))?;
        let script: String = self.ways().map(|way| way.rules() + &way.routes(None)).collect();
        ip(&script)
    }

    /// The state of what is set up.
    pub fn ready(&self) -> Ready {
        let mtus = self.known.iter().map(|known| known.seen.as_ref().map_or(MTU, |seen| seen.interface.mtu));
        Ready { addresses: self.record.addresses.clone(), mtu: mtus.min().unwrap_or(MTU), turns: self.turns() }
    }

    /// The interfaces' state.
    pub fn turns(&self) -> Turns {
        let turn = |known: &Known| {
            known.seen.as_ref()?;
            Some(Turn { number: known.turn, source: known.source? })
        };
        self.known.iter().map(turn).collect()
    }

    /// Makes sure that nothing is forwarded without the rules of nftables.
    ///
    /// # Errors
    /// The table of them is gone.
    pub fn check(&self) -> Result<(), LinkError> {
        // Unless it can be listed nothing is known; it is looked for at the next change.
        if self.record.has_table().unwrap_or(true) {
            return Ok(());
        }
        let what = format!("another program removed the nftables table inet {}", self.record.table);
        let help = "`nft flush ruleset` does, with which /etc/nftables.conf may begin. Start this command again after each reload of nftables; \
                    systemd does so by Restart=on-failure";
        Err(LinkError::Ground { what, help: Some(help.to_owned()) })
    }

    /// Follows the interfaces. True if something has changed that connections notice.
    ///
    /// # Errors
    /// A program fails: an interface may have gone meanwhile.
    pub fn look(&mut self) -> Result<bool, LinkError> {
        let machine = Machine::read("main")?;
        let before = self.turns();
        for path in 0..self.known.len() {
            let seen = machine.see(&self.orders.interfaces[path]);
            if seen != self.known[path].seen || self.has_lost_routes(path) {
                self.change(path, seen)?;
            }
        }
        Ok(before != self.turns())
    }

    /// An interface that went and came back between two looks looks the same, but the kernel has removed its routes from every table.
    fn has_lost_routes(&self, path: usize) -> bool {
        if self.known[path].seen.is_none() {
            return false;
        }
        let Way { interface, address, .. } = self.way(path);
        // A table without any route is none, which is a failure of `ip`.
        let routes: Vec<Route> =
            shown(&["route", "show", "table", &plan::table(address).to_string()]).unwrap_or_default();
        !routes.iter().any(|route| route.dev.as_deref() == Some(interface))
    }

    /// Routes follow the interface. Connections are lost with its address.
    fn change(&mut self, path: usize, seen: Option<Seen>) -> Result<(), LinkError> {
        if seen.is_some() {
            self.forward(path)?;
        }
        // Until it is done, the interface is none.
        self.known[path].seen = None;
        let way = self.way(path);
        let source = seen.as_ref().and_then(Seen::source);
        if let Some(source) = source.filter(|_| source != self.known[path].source) {
            nft(&way.translation(&self.record.table, source, &self.orders.ports))?;
            let known = &mut self.known[path];
            (known.source, known.turn) = (Some(source), known.turn + 1);
        }
        let way = self.way(path);
        let table = plan::table(way.address);
        ip(&format!("route flush table {table}\n{}", way.routes(seen.as_ref())))?;
        self.known[path].seen = seen;
        Ok(())
    }

    /// Lets answers through from an interface to its device.
    fn forward(&mut self, path: usize) -> Result<(), LinkError> {
        let interface = &self.orders.interfaces[path];
        if forwards(interface) != Some(false) {
            return Ok(());
        }
        if !self.known[path].guarded {
            nft(&self.way(path).guard(&self.record.table))?;
            self.known[path].guarded = true;
        }
        if !self.record.forwarding.iter().any(|one| one.interface == *interface) {
            self.record.forwarding.push(Forwarding { interface: interface.clone(), all: all_forward() });
            self.record.save()?;
        }
        set_forwarding(interface)
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Err(error) = self.record.undo() {
            // The next start repeats it. Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "taking the network back: {error}");
        }
    }
}
