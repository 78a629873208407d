//! The paths of a proxy's connections: through which interfaces, with which policy.

use crate::message::{OpenRequest, PolicyMessage};
use crate::rules::{PathRule, Treatment};
use crate::setup::SegmentSizes;
use crate::target::Target;
use anabranch_engine::connection::{Connection, PathSetup};
use anabranch_engine::{Cx, FourTuple};
use anabranch_link::secrets::seed;
use anabranch_units::PathId;
use anabranch_wire::Reason;
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

/// Ports of subflows, in turn, so that no two connections have the same ends. The engine draws others above, from few.
const PORTS: Range<u16> = 1_024..49_152;

/// The interfaces, and which of them can be used.
#[derive(Debug)]
pub(crate) struct Routes {
    /// All interfaces; the place is the path.
    names: Vec<String>,
    /// The addresses of our subflows through them.
    locals: Vec<Ipv4Addr>,
    /// The paths that can be used, the best one first.
    present: Vec<PathId>,
    segments: SegmentSizes,
    port: Cell<u16>,
}

impl Routes {
    /// Paths through these interfaces, none of which can be used yet; `local` is our address on a path.
    pub fn new(names: Vec<String>, local: impl Fn(PathId) -> Ipv4Addr) -> Self {
        let locals = (0..names.len()).map(|n| local(PathId(n as u8))).collect();
        let port = PORTS.start + (seed() % u64::from(PORTS.end - PORTS.start)) as u16;
        Self { names, locals, present: Vec::new(), segments: SegmentSizes::default(), port: Cell::new(port) }
    }

    /// The largest packet of a path has so many bytes. Returns the payload of the largest segment.
    pub fn set_max_packet(&mut self, id: PathId, bytes: usize) -> u32 {
        self.segments.set(id, bytes)
    }

    /// Sets the paths that can be used, the best one first. False if they are the same as before, but for their order.
    pub fn set(&mut self, present: Vec<PathId>) -> bool {
        let same = present.len() == self.present.len() && present.iter().all(|id| self.present.contains(id));
        self.present = present;
        !same
    }

    /// Some path can be used.
    pub fn any(&self) -> bool {
        !self.present.is_empty()
    }

    /// The interface of a path.
    pub fn name(&self, id: PathId) -> Option<&str> {
        self.names.get(id.index()).map(String::as_str)
    }

    /// A path to `remote` from a port.
    fn path(&self, id: PathId, port: u16, remote: SocketAddr, treatment: Option<&Treatment>) -> PathSetup {
        let PathRule { backup, policy } = self.rule(id, treatment);
        let local = self.locals.get(id.index()).copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
        let tuple = FourTuple { local: (local, port).into(), remote };
        self.segments.with(PathSetup { backup, policy, ..PathSetup::new(id, tuple) })
    }

    fn next_port(&self) -> u16 {
        let port = self.port.get();
        self.port.set(if port + 1 < PORTS.end { port + 1 } else { PORTS.start });
        port
    }

    fn rule(&self, id: PathId, treatment: Option<&Treatment>) -> PathRule {
        let interface = self.name(id).unwrap_or_default();
        treatment.map(|treatment| treatment.path(interface)).unwrap_or_default()
    }

    /// Paths of a new connection to `remote`, from a port of its own.
    pub fn fresh(&self, remote: SocketAddr, treatment: Option<&Treatment>) -> Option<Vec<PathSetup>> {
        let port = self.next_port();
        self.any().then(|| self.present.iter().map(|id| self.path(*id, port, remote, treatment)).collect())
    }

    /// Gives a connection the scheduler that it is to have.
    pub fn schedule(&self, connection: &mut Connection, cx: &mut Cx<'_>, treatment: &Treatment) {
        if let Some((name, scheduler)) = treatment.build() {
            connection.set_scheduler(cx, name, scheduler);
        }
    }

    /// Gives a connection the scheduler and the policies that it is to have.
    pub fn treat(&self, connection: &mut Connection, cx: &mut Cx<'_>, treatment: &Treatment, remote: SocketAddr) {
        self.schedule(connection, cx, treatment);
        for id in &self.present {
            connection.set_path(self.path(*id, self.next_port(), remote, Some(treatment)));
        }
    }

    /// The request for a target.
    pub fn open(&self, target: &Target, treatment: &Treatment) -> OpenRequest {
        let policy = |(n, name): (usize, &String)| {
            let policy = treatment.paths.get(name)?.policy;
            Some(PolicyMessage { path: n as u8, price: policy.price, cap: policy.cap, weight: policy.weight })
        };
        let policies = self.names.iter().enumerate().filter_map(policy).collect();
        OpenRequest { target: target.clone(), scheduler: treatment.scheduler.with_parameters(), policies }
    }

    /// Replaces a connection's subflows over these paths by new ones, also the last one. Plain TCP cannot: it is reset.
    pub fn renew(
        &self,
        connection: &mut Connection,
        cx: &mut Cx<'_>,
        paths: &[PathId],
        treatment: Option<&Treatment>,
        remote: SocketAddr,
    ) {
        let lost: Vec<PathId> = connection.subflows().map(|(id, ..)| id).filter(|id| paths.contains(id)).collect();
        if !lost.is_empty() && !connection.is_multipath() {
            return connection.abort(cx);
        }
        for id in lost {
            connection.reset_path(cx, id, Reason { code: 0, transient: false });
            connection.set_path(self.path(id, self.next_port(), remote, treatment));
        }
    }

    /// Whether a connection has subflows only over paths that are gone, while there are others.
    pub fn strands(&self, connection: &Connection) -> bool {
        let mut subflows = connection.subflows().map(|(id, ..)| id).peekable();
        subflows.peek().is_some() && subflows.all(|id| self.is_gone(id))
    }

    /// Whether a path is gone, while there are others.
    fn is_gone(&self, id: PathId) -> bool {
        self.any() && !self.present.contains(&id)
    }

    /// Makes a connection use the paths that there are.
    pub fn follow(
        &self,
        connection: &mut Connection,
        cx: &mut Cx<'_>,
        treatment: Option<&Treatment>,
        remote: SocketAddr,
    ) {
        let subflows: Vec<_> = connection.subflows().map(|(id, ends, _)| (id, ends.local)).collect();
        for id in self.present.iter().filter(|id| !subflows.iter().any(|(there, _)| there == *id)) {
            connection.set_path(self.path(*id, self.next_port(), remote, treatment));
        }
        // Without any path it waits for one, with the subflows that it has.
        for (id, local) in subflows.into_iter().filter(|(id, _)| self.is_gone(*id)) {
            match connection.address_id(local) {
                Some(address) => connection.withdraw(cx, address),
                None => _ = connection.reset_path(cx, id, Reason { code: 0, transient: false }),
            }
        }
    }
}
