//! One connection in the world: two hosts, two applications.

use anabranch_engine::connection::{Connection, ConnectionEvent, PathSetup, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple};
use anabranch_units::{ConnId, Instant, PathId, Rng, Side};
use anabranch_wire::Packet;
use anabranch_workload::{Stream, Workload};
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The server's port.
const PORT: u16 = 5001;

/// One end of a flow: what its connection is made of, and its application.
#[derive(Debug)]
pub struct Party {
    /// The connection. Its id and paths are filled in by the world.
    pub setup: Setup,
    /// The application.
    pub workload: Box<dyn Workload>,
}

/// A connection between two hosts of its own.
#[derive(Debug)]
pub struct FlowSetup {
    /// Number in traces.
    pub id: ConnId,
    /// When the client connects.
    pub start: Instant,
    /// When both ends abort; `None` = never.
    pub stop: Option<Instant>,
    /// The run is over when all flows that are waited for are done.
    pub awaited: bool,
    /// Captures see its packets.
    pub captured: bool,
    /// The client's end.
    pub client: Party,
    /// The server's end.
    pub server: Party,
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

/// The paths of flow `flow` over the network paths `over` as `side` knows them: id, backup.
pub fn paths_between(v6: bool, flow: u32, side: Side, over: &[(PathId, bool)]) -> Vec<PathSetup> {
    let port = |first: bool| if first { 49_152 + (flow % 16_384) as u16 } else { 0 };
    over.iter()
        .enumerate()
        .map(|(n, &(id, backup))| {
            let client = SocketAddr::new(address(v6, id, flow, Side::Client), port(n == 0));
            let server = SocketAddr::new(address(v6, id, flow, Side::Server), PORT);
            let (local, remote) = if side == Side::Client { (client, server) } else { (server, client) };
            PathSetup { id, tuple: FourTuple { local, remote }, backup: backup && side == Side::Client }
        })
        .collect()
}

/// A host with one connection and its application.
#[derive(Debug)]
pub(crate) struct Host {
    pub side: Side,
    pub endpoint: Endpoint,
    pub rng: Rng,
    pub handle: Option<Handle>,
    pub workload: Box<dyn Workload>,
    setup: Option<Setup>,
    established: bool,
    /// The earliest wake-up that stands in the world's agenda.
    pub alarm: Instant,
}

impl Host {
    pub fn new(side: Side, party: Party, rng: Rng) -> Self {
        let Party { setup, workload } = party;
        let mut endpoint = Endpoint::default();
        let setup = match side {
            Side::Client => Some(setup),
            Side::Server => {
                let mut once = Some(setup);
                endpoint.listen(PORT, Box::new(move |_| once.take()));
                None
            }
        };
        Self { side, endpoint, rng, handle: None, workload, setup, established: false, alarm: Instant::MAX }
    }

    pub fn connect(&mut self, now: Instant, recorder: &mut dyn anabranch_trace::Recorder) {
        if let Some(setup) = self.setup.take() {
            let mut cx = Cx { now, recorder, rng: &mut self.rng };
            self.handle = Some(self.endpoint.connect(&mut cx, setup));
        }
    }

    pub fn abort(&mut self, now: Instant, recorder: &mut dyn anabranch_trace::Recorder) {
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        if let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) {
            connection.abort(&mut cx);
        }
    }

    pub fn receive(&mut self, now: Instant, recorder: &mut dyn anabranch_trace::Recorder, packet: &Packet) {
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        self.endpoint.handle_packet(&mut cx, packet);
        if self.handle.is_none() {
            self.handle = self.endpoint.poll_accept();
        }
        self.serve(now, recorder);
    }

    pub fn on_timer(&mut self, now: Instant, recorder: &mut dyn anabranch_trace::Recorder) {
        let mut cx = Cx { now, recorder: &mut *recorder, rng: &mut self.rng };
        self.endpoint.handle_timeout(&mut cx);
        if self.workload.next_wakeup().is_some_and(|at| at <= now)
            && let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h))
        {
            let mut io = Io { connection, cx: &mut cx };
            self.workload.on_wakeup(now, &mut io);
        }
        self.serve(now, recorder);
    }

    /// Tells the application what happened to its connection.
    fn serve(&mut self, now: Instant, recorder: &mut dyn anabranch_trace::Recorder) {
        let Some(handle) = self.handle else { return };
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        while let Some(event) = self.endpoint.poll_event(handle) {
            let Some(connection) = self.endpoint.connection_mut(handle) else { return };
            let mut io = Io { connection, cx: &mut cx };
            match event {
                ConnectionEvent::Established if !self.established => {
                    self.established = true;
                    self.workload.on_established(now, &mut io);
                }
                ConnectionEvent::Readable => self.workload.on_readable(now, &mut io),
                ConnectionEvent::Writable => self.workload.on_writable(now, &mut io),
                _ => {}
            }
        }
    }

    /// When this host must be called next.
    pub fn next_alarm(&self) -> Instant {
        let timer = self.endpoint.poll_timeout().unwrap_or(Instant::MAX);
        timer.min(self.workload.next_wakeup().unwrap_or(Instant::MAX))
    }
}

/// A connection lent to its application.
struct Io<'a, 'b> {
    connection: &'a mut Connection,
    cx: &'a mut Cx<'b>,
}

impl Stream for Io<'_, '_> {
    fn write(&mut self, data: Bytes) -> usize {
        self.connection.write(self.cx, data)
    }
    fn writable(&self) -> u64 {
        self.connection.writable()
    }
    fn finish(&mut self) {
        self.connection.finish(self.cx);
    }
    fn read(&mut self) -> Option<Bytes> {
        self.connection.read(self.cx)
    }
    fn read_finished(&self) -> bool {
        self.connection.read_finished()
    }
}
