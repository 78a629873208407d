//! Two hosts and the network between them: their connections, their addresses.

use crate::host::{Opening, Party};
use anabranch_engine::FourTuple;
use anabranch_engine::connection::PathSetup;
use anabranch_units::{ConnId, Instant, PathId, Side};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The server's port.
pub const PORT: u16 = 5001;

/// The kind of host at one end of a flow.
#[derive(Debug)]
pub enum End {
    /// This engine.
    Engine {
        /// Connections of this end. A server assigns each to the client whose address its setup names, otherwise in the order
        /// of arrival.
        parties: Vec<Party>,
        /// When a client opens them.
        opening: Opening,
    },
    /// A host that the world does not simulate: its packets enter by [`crate::World::inject`] and leave by
    /// [`crate::World::poll_outside`].
    Outside,
}

impl From<Party> for End {
    fn from(party: Party) -> Self {
        Self::Engine { parties: vec![party], opening: Opening::AtOnce(1) }
    }
}

/// One end of a flow, among all hosts of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostId(u32);

impl HostId {
    /// The end of flow number `flow` on `side`.
    pub fn new(flow: usize, side: Side) -> Self {
        Self(flow as u32 * 2 + u32::from(side == Side::Server))
    }

    /// The client and the server of flow number `flow`.
    pub fn both(flow: usize) -> [Self; 2] {
        [Side::Client, Side::Server].map(|side| Self::new(flow, side))
    }

    /// The number of its flow.
    pub fn flow(self) -> usize {
        self.0 as usize / 2
    }

    /// Which end of the flow it is.
    pub fn side(self) -> Side {
        if self.0.is_multiple_of(2) { Side::Client } else { Side::Server }
    }

    /// The other end of the flow.
    pub fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// The number of the host.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The host of a [`Self::number`].
    pub fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// Place in a list of all hosts.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Two hosts and the connections between them.
#[derive(Debug)]
pub struct FlowSetup {
    /// Number of the first connection in traces; the names of the hosts' random streams contain it.
    pub id: ConnId,
    /// When the client connects.
    pub start: Instant,
    /// When both ends abort; `None` = never.
    pub stop: Option<Instant>,
    /// The run is over when all awaited flows are done.
    pub awaited: bool,
    /// If the flow is awaited, it is also done when the client's connections are gone. Otherwise the run cannot end
    /// then.
    pub may_fail: bool,
    /// Captures see its packets.
    pub captured: bool,
    /// The client's end.
    pub client: End,
    /// The server's end.
    pub server: End,
    /// The client's addresses, each with its network path: for packets of no connection, and for subflows between
    /// addresses that the setup does not name.
    pub routes: Vec<(IpAddr, usize)>,
}

impl FlowSetup {
    /// The first flow, from the beginning on and without end, neither awaited nor captured.
    pub fn between(client: End, server: End, routes: Vec<(IpAddr, usize)>) -> Self {
        let (id, start) = (ConnId(0), Instant::ZERO);
        Self { id, start, stop: None, awaited: false, may_fail: false, captured: false, client, server, routes }
    }
}

/// The address of a host of flow `flow` on network path `path`.
pub fn address(v6: bool, path: PathId, flow: u32, side: Side) -> IpAddr {
    let low = u8::from(side == Side::Server);
    if v6 {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, path.0.into(), (flow >> 16) as u16, flow as u16, 0, 1 + u16::from(low)))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, path.0, (flow / 100) as u8, (flow % 100) as u8 * 2 + 1 + low))
    }
}

/// The port from which the client opens connection number `connection`.
pub fn client_port(connection: ConnId) -> u16 {
    49_152 + (connection.0 % 16_384) as u16
}

/// The paths of flow `flow` over the network paths `over` as `side` knows them: id, backup. The client has one address
/// per path, the server one that all paths reach.
pub fn paths_between(v6: bool, flow: u32, side: Side, over: &[(PathId, bool)]) -> Vec<PathSetup> {
    let port = |first: bool| if first { client_port(ConnId(flow)) } else { 0 };
    over.iter()
        .enumerate()
        .map(|(n, &(id, backup))| {
            let client = SocketAddr::new(address(v6, id, flow, Side::Client), port(n == 0));
            let server = SocketAddr::new(address(v6, PathId(0), flow, Side::Server), PORT);
            let (local, remote) = if side == Side::Client { (client, server) } else { (server, client) };
            let setup = PathSetup::new(id, FourTuple { local, remote });
            PathSetup { backup: backup && side == Side::Client, ..setup }
        })
        .collect()
}
