//! The loop that moves a world by the clock.

use crate::interrupt;
use crate::kernel::{Application, KernelHost, Sample, Sampler, SocketInfo, Told, events};
use crate::priority::Priority;
use crate::{Capture, Clock, Delays, LabError, Lateness, Middlebox, Way};
use anabranch_run::TcpInfo;
use anabranch_sim::{Halt, Outbound, World};
use anabranch_trace::{Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

/// A kernel at one end of the world's first flow, with the applications on it.
#[derive(Debug)]
pub struct Outside {
    /// Which end.
    pub side: Side,
    /// The host.
    pub host: KernelHost,
    /// On it.
    pub applications: Vec<Application>,
    /// Between it and the network.
    pub middlebox: Option<Middlebox>,
    /// Looks at its subflows.
    pub sampler: Option<Sampler>,
    /// What its subflows were like when they were last seen, by path.
    pub subflows: BTreeMap<usize, TcpInfo>,
}

impl Outside {
    /// A host without applications, with nothing between it and the network.
    pub fn new(side: Side, host: KernelHost) -> Self {
        let (sampler, subflows) = (None, BTreeMap::new());
        Self { side, host, applications: Vec::new(), middlebox: None, sampler, subflows }
    }

    /// Records what samples show of the measured connection's subflows.
    fn look(&mut self, recorder: &mut dyn Recorder) {
        while let Some(Sample { at, sockets }) = self.sampler.as_ref().and_then(Sampler::poll) {
            for SocketInfo { local, remote, tcp } in sockets {
                let client = if self.side == Side::Client { local } else { remote };
                let Some(path) = self.host.addresses.path(client.ip()) else { continue };
                let origin = Origin { host: Some(self.side), connection: ConnId(0), path: PathId(path as u8) };
                for event in events(self.subflows.get(&path), &tcp) {
                    recorder.record(at, origin, &event);
                }
                self.subflows.insert(path, tcp);
            }
        }
    }

    /// What becomes of a packet on its way.
    fn pass(&mut self, way: Way, path: usize, packet: Bytes) -> Option<Bytes> {
        match &mut self.middlebox {
            Some(middlebox) => middlebox.pass(way, path, packet),
            None => Some(packet),
        }
    }
}

/// Why [`Exchange::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything that was waited for is done.
    Done,
    /// The time is over.
    Time,
}

/// A world and the hosts outside it.
///
/// After a stall the world catches up: what left its queues in that time left at its own times, and the rate of a path
/// holds; but hosts get it together. [`Lateness`] counts that. What hosts sent meanwhile enters when it is read.
#[derive(Debug)]
pub struct Exchange {
    /// The world.
    pub world: World,
    /// Kernels at either end.
    pub outside: Vec<Outside>,
    /// The world's time.
    pub clock: Clock,
    /// How late packets left.
    pub lateness: Lateness,
    /// How long packets were under way.
    pub delays: Delays,
    /// Whether packets of hosts outside are parsed for the recorder.
    pub captured: bool,
    /// Where packets of hosts outside are written, whatever they are.
    pub capture: Option<Capture>,
}

/// The measured flow is the world's first.
const FLOW: usize = 0;
/// Packets read from one device before the others have their turn.
const BATCH: usize = 64;

impl Exchange {
    /// The clock starts now.
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
    /// An application fails, a device is gone, the world cannot go on.
    pub fn run(&mut self, until: Instant, recorder: &mut dyn Recorder) -> Result<Ended, LabError> {
        let _first = Priority::raise();
        loop {
            if interrupt::is_asked() {
                return Err(LabError::Interrupted);
            }
            let now = self.clock.now().min(until);
            let halt = self.advance(now, recorder)?;
            self.put_out()?;
            self.listen(recorder)?;
            match halt {
                Halt::Done => return Ok(Ended::Done),
                Halt::Time if now == until => return Ok(Ended::Time),
                Halt::Time => {}
            }
            if !self.take_in(recorder)? {
                let deadline = self.world.poll_timeout().min(until);
                let inputs: Vec<BorrowedFd<'_>> =
                    self.outside.iter().flat_map(|o| &o.host.devices).map(AsFd::as_fd).collect();
                // Applications tell through a channel, which no device announces.
                let nap = self.clock.now() + anabranch_units::Duration::from_millis(20);
                self.clock.wait(deadline.min(nap), &inputs);
            }
        }
    }

    fn advance(&mut self, now: Instant, recorder: &mut dyn Recorder) -> Result<Halt, LabError> {
        let ended = self.world.run(now, recorder);
        ended.map_err(|stuck| LabError::World { what: format!("at {now}: {stuck}") })
    }

    /// Writes what reached hosts outside to their devices.
    fn put_out(&mut self) -> Result<(), LabError> {
        while let Some(Outbound { side, path, bytes, sent, at, .. }) = self.world.poll_outside() {
            let Some(outside) = self.outside.iter_mut().find(|outside| outside.side == side) else { continue };
            let Some(bytes) = outside.pass(Way::In, path, bytes) else { continue };
            let Some(device) = outside.host.devices.get(path) else { continue };
            device.write(&bytes).map_err(LabError::system("writing to a TUN device"))?;
            let now = self.clock.now();
            self.lateness.note(at, now);
            self.delays.note(path, side.receives(), now.since(sent));
            if let Some(capture) = &mut self.capture {
                capture.packet(now, side, false, path, &bytes);
            }
        }
        Ok(())
    }

    /// Reads what hosts outside send. True if there may be more.
    fn take_in(&mut self, recorder: &mut dyn Recorder) -> Result<bool, LabError> {
        let mut more = false;
        for n in 0..self.outside.len() {
            for path in 0..self.outside[n].host.devices.len() {
                more |= self.take_in_from(n, path, recorder)?;
            }
        }
        Ok(more)
    }

    fn take_in_from(&mut self, n: usize, path: usize, recorder: &mut dyn Recorder) -> Result<bool, LabError> {
        let side = self.outside[n].side;
        for _ in 0..BATCH {
            let read = self.outside[n].host.devices[path].read();
            let Some(bytes) = read.map_err(LabError::system("reading from a TUN device"))? else { return Ok(false) };
            let now = self.clock.now();
            self.advance(now, recorder)?;
            if self.captured
                && let Ok(packet) = Packet::parse(bytes.clone())
            {
                recorder.packet(now, side, true, PathId(path as u8), &packet);
            }
            if let Some(capture) = &mut self.capture {
                capture.packet(now, side, true, path, &bytes);
            }
            if let Some(bytes) = self.outside[n].pass(Way::Out, path, bytes) {
                self.world.inject(FLOW, side, path, bytes, recorder);
            }
            // What became due while reading must not wait for the batch.
            self.put_out()?;
        }
        Ok(true)
    }

    /// Hears what the applications tell.
    fn listen(&mut self, recorder: &mut dyn Recorder) -> Result<(), LabError> {
        for outside in &mut self.outside {
            outside.look(recorder);
            for application in &outside.applications {
                while let Some(told) = application.poll() {
                    match told {
                        Told::Event(at, connection, event) => {
                            let origin = Origin { host: Some(outside.side), connection, path: PathId(0) };
                            recorder.record(at, origin, &event);
                        }
                        Told::Done(Ok(())) => self.world.set_done(FLOW, outside.side),
                        Told::Done(Err(what)) => {
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
