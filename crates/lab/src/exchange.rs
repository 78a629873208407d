//! The loop that runs a world in real time.

use crate::kernel::{Application, Changes, KernelHost, Report, Sample, Sampler, SocketInfo, events};
use crate::priority::Priority;
use crate::{Capture, Clock, Delays, InOut, Known, LabError, Lateness, Middlebox, Tun, interrupt};
use anabranch_run::TcpInfo;
use anabranch_sim::{Content, Halt, Outbound, Raw, Stuck, World};
use anabranch_trace::{Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::Receiver;

/// A kernel at one end of the world's first flow, with its applications.
#[derive(Debug)]
pub struct Outside {
    /// The end of the flow.
    pub side: Side,
    /// The host.
    pub host: KernelHost,
    /// Applications on the host.
    pub applications: Vec<Application>,
    /// The middlebox between host and network.
    pub middlebox: Option<Middlebox>,
    /// Changes of its paths.
    pub changes: Option<Changes>,
    /// Samples its subflows.
    pub sampler: Option<Sampler>,
    /// Receives the connection of each subflow.
    pub known: Option<Receiver<Known>>,
    /// Subflows of the host and their last samples.
    pub subflows: Subflows,
}

/// Subflows of a kernel, by connection and path.
#[derive(Debug, Default)]
pub struct Subflows {
    connections: BTreeMap<(SocketAddr, SocketAddr), ConnId>,
    /// The last sample of each subflow.
    pub last: BTreeMap<(ConnId, usize), TcpInfo>,
}

impl Subflows {
    /// The events that a sample implies for its connection on `path`. A subflow of no measured connection yields none.
    fn look(&mut self, side: Side, path: usize, at: Instant, seen: SocketInfo, recorder: &mut dyn Recorder) {
        let Some(connection) = self.connections.get(&(seen.local, seen.remote)).copied() else { return };
        let origin = Origin { host: Some(side), connection, path: PathId(path as u8) };
        for event in events(self.last.get(&(connection, path)), &seen.tcp) {
            recorder.record(at, origin, &event);
        }
        self.last.insert((connection, path), seen.tcp);
    }
}

impl Outside {
    /// A host without applications and without a middlebox.
    pub fn new(side: Side, host: KernelHost) -> Self {
        let (applications, subflows) = (Vec::new(), Subflows::default());
        Self { side, host, applications, middlebox: None, changes: None, sampler: None, known: None, subflows }
    }

    /// Records the events that samples imply for the measured connections.
    fn look(&mut self, recorder: &mut dyn Recorder) {
        while let Some(Known { local, remote, connection }) =
            self.known.as_ref().and_then(|known| known.try_recv().ok())
        {
            self.subflows.connections.insert((local, remote), connection);
        }
        while let Some(Sample { at, sockets }) = self.sampler.as_ref().and_then(Sampler::poll) {
            for seen in sockets {
                let client = if self.side == Side::Client { seen.local } else { seen.remote };
                let Some(path) = self.host.addresses.path(client.ip()) else { continue };
                self.subflows.look(self.side, path, at, seen, recorder);
            }
        }
    }

    /// Passes a packet through the middlebox.
    fn pass(&mut self, way: InOut, path: usize, packet: Raw) -> Option<Raw> {
        match &mut self.middlebox {
            Some(middlebox) => {
                let bytes = middlebox.pass(way, path, packet.bytes)?;
                Some(Raw { bytes, left: packet.left })
            }
            None => Some(packet),
        }
    }
}

/// Why [`Exchange::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All awaited applications are done.
    Done,
    /// The time is over.
    Time,
}

/// A world and the hosts outside it.
///
/// After a stall the world catches up: packets left its queues at their simulated times, so the rate of a path holds,
/// but hosts receive them together. [`Lateness`] counts that. Packets that hosts sent meanwhile enter when they are
/// read.
#[derive(Debug)]
pub struct Exchange {
    /// The world.
    pub world: World,
    /// The kernels at either end.
    pub outside: Vec<Outside>,
    /// The clock of the world's time.
    pub clock: Clock,
    /// The lateness of delivered packets.
    pub lateness: Lateness,
    /// The one-way delays of packets.
    pub delays: Delays,
    /// Whether packets of hosts outside are parsed for the recorder.
    pub captured: bool,
    /// The capture of all packets of hosts outside.
    pub capture: Option<Capture>,
}

/// The measured flow is the world's first.
pub(crate) const FLOW: usize = 0;
/// Packets read from one device before the next device is served.
const BATCH: usize = 64;

impl Exchange {
    /// An exchange whose clock starts now.
    pub fn new(world: World, outside: Vec<Outside>) -> Self {
        Self {
            world,
            outside,
            clock: Clock::start(),
            lateness: Lateness::default(),
            delays: Delays::default(),
            captured: true,
            capture: None,
        }
    }

    /// Runs until everything awaited is done, or until `until`.
    ///
    /// # Errors
    /// An application fails, a device is gone, or the world cannot continue.
    pub fn run(&mut self, until: Instant, recorder: &mut dyn Recorder) -> Result<Ended, LabError> {
        let _first = Priority::raise();
        loop {
            if interrupt::is_asked() {
                return Err(LabError::Interrupted);
            }
            let now = self.clock.now().min(until);
            let halt = self.advance(now, recorder)?;
            self.transmit()?;
            self.listen(recorder)?;
            match halt {
                Halt::Done => return Ok(Ended::Done),
                Halt::Time | Halt::GivenUp if now == until => return Ok(Ended::Time),
                Halt::Time | Halt::GivenUp => {}
            }
            if !self.receive(recorder)? {
                let deadline = self.world.poll_timeout().min(until);
                let inputs: Vec<BorrowedFd<'_>> =
                    self.outside.iter().flat_map(|o| &o.host.devices).map(AsFd::as_fd).collect();
                // Applications report through a channel, which does not wake the poll.
                let nap = self.clock.now() + anabranch_units::Duration::from_millis(20);
                self.clock.wait(deadline.min(nap), &inputs);
            }
        }
    }

    fn advance(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Result<Halt, LabError> {
        let ended = self.world.run(now, recorder);
        ended.map_err(|stuck| match stuck {
            Stuck::Asked => LabError::Interrupted,
            stuck => LabError::World { what: format!("at {}: {stuck}", self.world.now()) },
        })
    }

    /// Writes packets that reached hosts outside to their devices.
    fn transmit(&mut self) -> Result<(), LabError> {
        let failed = "writing to a TUN device";
        while let Some(Outbound { side, path, content, sent, at, .. }) = self.world.poll_outside() {
            let Some(outside) = self.outside.iter_mut().find(|outside| outside.side == side) else { continue };
            let content = match content {
                Content::Segment(packet) if outside.middlebox.is_none() && self.capture.is_none() => {
                    Content::Segment(packet)
                }
                seen => match outside.pass(InOut::In, path, seen.into_raw()) {
                    Some(raw) => Content::Raw(raw),
                    None => continue,
                },
            };
            let now = self.clock.now();
            self.lateness.note(at, now);
            self.delays.note(path, side.receives(), now.since(sent));
            if let (Some(capture), Content::Raw(raw)) = (&mut self.capture, &content) {
                capture.packet(now, side, false, path, &raw.bytes);
            }
            let Some(device) = outside.host.devices.get_mut(path) else { continue };
            let written = match content {
                Content::Segment(packet) => device.send(packet),
                Content::Raw(raw) => device.write(&raw),
            };
            written.map_err(LabError::system(failed))?;
        }
        let mut devices = self.outside.iter_mut().flat_map(|outside| &mut outside.host.devices);
        devices.try_for_each(Tun::flush).map_err(LabError::system(failed))
    }

    /// Reads packets from hosts outside. True if there may be more.
    fn receive(&mut self, recorder: &mut dyn Recorder) -> Result<bool, LabError> {
        let mut more = false;
        for n in 0..self.outside.len() {
            for path in 0..self.outside[n].host.devices.len() {
                more |= self.receive_from(n, path, recorder)?;
            }
        }
        Ok(more)
    }

    fn receive_from(&mut self, n: usize, path: usize, recorder: &mut dyn Recorder) -> Result<bool, LabError> {
        let side = self.outside[n].side;
        for _ in 0..BATCH {
            let read = self.outside[n].host.devices[path].read();
            let Some(raw) = read.map_err(LabError::system("reading from a TUN device"))? else { return Ok(false) };
            let now = self.clock.now();
            self.advance(now, recorder)?;
            if self.captured
                && let Ok(packet) = raw.parse()
            {
                recorder.packet(now, side, true, PathId(path as u8), &packet);
            }
            if let Some(capture) = &mut self.capture {
                capture.packet(now, side, true, path, &raw.bytes);
            }
            if let Some(raw) = self.outside[n].pass(InOut::Out, path, raw) {
                self.world.inject(FLOW, side, path, raw, recorder);
            }
            // Packets that became due while reading must not wait for the batch.
            self.transmit()?;
        }
        Ok(true)
    }

    /// Takes the applications' reports.
    fn listen(&mut self, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        for outside in &mut self.outside {
            outside.look(recorder);
            outside.changes.as_ref().map_or(Ok(()), Changes::check)?;
            for application in &outside.applications {
                while let Some(told) = application.poll() {
                    match told {
                        Report::Event(at, connection, event) => {
                            let origin = Origin { host: Some(outside.side), connection, path: PathId(0) };
                            recorder.record(at, origin, &event);
                        }
                        Report::Done(Ok(())) => self.world.set_done(FLOW, outside.side),
                        Report::Done(Err(what)) => {
                            return Err(LabError::Application {
                                what: format!("the {:?}'s application: {what}", outside.side),
                            });
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
