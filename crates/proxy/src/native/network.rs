//! The network under a command: its devices, its keeper, and the interfaces as the keeper reports them.

use super::keeper_handle::KeeperHandle;
use super::link::NativeLink;
use super::privilege;
use super::protocol::{InterfaceState, InterfaceStates, KeeperConfig, NetworkReady};
use anabranch_lab::Tun;
use anabranch_link::LinkError;
use anabranch_units::PathId;
use std::net::Ipv4Addr;

/// The MTU of a device until its interface is known.
const MTU: u16 = 1_500;

/// A network that is set up. Dropped, it is taken back: the devices have to be closed before.
#[derive(Debug)]
pub(super) struct NativeNetwork {
    keeper: KeeperHandle,
    states: InterfaceStates,
    /// The last state of each interface, even while it is gone.
    last: InterfaceStates,
}

/// A network that was just set up.
#[derive(Debug)]
pub(super) struct NewNetwork {
    pub network: NativeNetwork,
    pub link: NativeLink,
    /// The engine's address on each path.
    pub addresses: Vec<Ipv4Addr>,
    /// The least MTU of the interfaces that there are, in bytes.
    pub mtu: u32,
    pub change: InterfaceChange,
}

/// A change of the interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InterfaceChange {
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

impl NativeNetwork {
    /// Sets the network up, and gives all privileges up. Connections of other hosts to the `ports` come to the devices. To be called before any thread
    /// starts; files that are made later are those of the user that the process becomes.
    ///
    /// # Errors
    /// A program is missing, or the system refuses something.
    pub fn set_up(interfaces: Vec<String>, ports: Vec<u16>) -> Result<NewNetwork, LinkError> {
        let mut keeper = KeeperHandle::start()?;
        let (names, devices) = devices(interfaces.len())?;
        let NetworkReady { addresses, mtu, states } =
            keeper.set_up(&KeeperConfig { interfaces, devices: names, ports })?;
        privilege::leave()?;
        let link = NativeLink::new(addresses.iter().copied().zip(devices));
        let mut network = Self { keeper, states: InterfaceStates::new(), last: InterfaceStates::new() };
        let change = network.take(states);
        Ok(NewNetwork { network, link, addresses, mtu, change })
    }

    /// The interfaces' change, if there is one.
    ///
    /// # Errors
    /// The keeper has ended.
    pub fn look(&mut self) -> Result<Option<InterfaceChange>, LinkError> {
        Ok(self.keeper.look()?.map(|states| self.take(states)))
    }

    fn take(&mut self, states: InterfaceStates) -> InterfaceChange {
        let last = |path: usize| self.last.get(path).copied().flatten();
        let with = |is: &dyn Fn(usize, InterfaceState) -> bool| {
            let all = states.iter().enumerate();
            all.filter(|(path, state)| state.is_some_and(|state| is(*path, state)))
                .map(|(path, _)| PathId(path as u8))
                .collect::<Vec<_>>()
        };
        let change = InterfaceChange {
            present: with(&|_, _| true),
            moved: with(&|path, state| last(path).is_some_and(|last| last != state)),
            sources: states.iter().map(|state| state.map(|state| state.source)).collect(),
        };
        self.last = (0..states.len()).map(|path| states[path].or(last(path))).collect();
        self.states = states;
        change
    }

    /// The paths whose interfaces cannot be used now.
    pub fn missing(&self) -> impl Iterator<Item = PathId> + '_ {
        let missing = self.states.iter().enumerate().filter(|(_, state)| state.is_none());
        missing.map(|(path, _)| PathId(path as u8))
    }
}
