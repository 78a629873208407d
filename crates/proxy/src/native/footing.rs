//! The network under a command: its devices, its keeper, and the interfaces as the keeper reports them.

use super::ground::Ground;
use super::link::NativeLink;
use super::privilege;
use super::protocol::{Orders, Ready, Turn, Turns};
use anabranch_lab::Tun;
use anabranch_link::LinkError;
use anabranch_units::PathId;
use std::net::Ipv4Addr;

/// The MTU of a device until its interface is known.
const MTU: u16 = 1_500;

/// A network that is set up. Dropped, it is taken back: the devices have to be closed before.
#[derive(Debug)]
pub(super) struct Footing {
    ground: Ground,
    turns: Turns,
    /// The last turn of each interface, even while it is gone.
    last: Turns,
}

/// A network that was just set up.
#[derive(Debug)]
pub(super) struct Laid {
    pub footing: Footing,
    pub link: NativeLink,
    /// The engine's address on each path.
    pub addresses: Vec<Ipv4Addr>,
    /// The least MTU of the interfaces that there are, in bytes.
    pub mtu: u32,
    pub change: Change,
}

/// A change of the interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Those that can be used.
    pub present: Vec<PathId>,
    /// Paths of `present` with another address than before: data left over them is lost.
    pub moved: Vec<PathId>,
    /// The address of each, while it can be used.
    pub sources: Vec<Option<Ipv4Addr>>,
}

/// Opens the device of each path; they are named after this process.
fn devices(count: usize) -> Result<(Vec<String>, Vec<Tun>), LinkError> {
    let names: Vec<String> = (0..count).map(|path| format!("anab{}-{path}", std::process::id())).collect();
    let devices =
        names.iter().map(|name| Tun::open(name, MTU, true).map(Tun::keep_mappings)).collect::<Result<Vec<_>, _>>()?;
    Ok((names, devices))
}

impl Footing {
    /// Sets the network up, and gives all privileges up. Connections of other hosts to the `ports` come to the devices. To be called before any thread
    /// starts; files that are made later are those of the user that the process becomes.
    ///
    /// # Errors
    /// A program is missing, or the system refuses something.
    pub fn lay(interfaces: Vec<String>, ports: Vec<u16>) -> Result<Laid, LinkError> {
        let mut ground = Ground::start()?;
        let (names, devices) = devices(interfaces.len())?;
        let Ready { addresses, mtu, turns } = ground.set_up(&Orders { interfaces, devices: names, ports })?;
        privilege::leave()?;
        let link = NativeLink::new(addresses.iter().copied().zip(devices));
        let mut footing = Self { ground, turns: Turns::new(), last: Turns::new() };
        let change = footing.take(turns);
        Ok(Laid { footing, link, addresses, mtu, change })
    }

    /// The interfaces' change, if there is one.
    ///
    /// # Errors
    /// The keeper has ended.
    pub fn look(&mut self) -> Result<Option<Change>, LinkError> {
        Ok(self.ground.look()?.map(|turns| self.take(turns)))
    }

    fn take(&mut self, turns: Turns) -> Change {
        let last = |path: usize| self.last.get(path).copied().flatten();
        let with = |is: &dyn Fn(usize, Turn) -> bool| {
            let all = turns.iter().enumerate();
            all.filter(|(path, turn)| turn.is_some_and(|turn| is(*path, turn)))
                .map(|(path, _)| PathId(path as u8))
                .collect::<Vec<_>>()
        };
        let change = Change {
            present: with(&|_, _| true),
            moved: with(&|path, turn| last(path).is_some_and(|last| last != turn)),
            sources: turns.iter().map(|turn| turn.map(|turn| turn.source)).collect(),
        };
        self.last = (0..turns.len()).map(|path| turns[path].or(last(path))).collect();
        self.turns = turns;
        change
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        let missing = self.turns.iter().enumerate().filter(|(_, turn)| turn.is_none());
        missing.map(|(path, _)| PathId(path as u8))
    }
}
