//! A run at one end: its connections and applications, on a host of the engine, and its events.

use crate::event_log::{EventLog, MOST};
use crate::run_stats::RunStats;
use anabranch_carrier::Addresses;
use anabranch_link::{Engine, Station, path_of, secrets::seed};
use anabranch_run::layout::Layout;
use anabranch_run::{Choice, Job, RunError};
use anabranch_sim::{Host, Opening, Party};
use anabranch_trace::{Recorder, Tee};
use anabranch_units::{Instant, PathId, Rng, Side};
use anabranch_wire::Packet;
use core::net::{IpAddr, SocketAddr};

/// The server's port for messages about runs.
pub(super) const CONTROL: u16 = 1;

/// One end of a run. Its time begins with it.
#[derive(Debug)]
pub(super) struct RunHost {
    side: Side,
    host: Host,
    /// The link's time at the run's beginning.
    base: Instant,
    /// The server's. No other run of the session has it, so that late packets of one run do not enter another.
    port: u16,
    /// When a client opens connections whose times are given.
    openings: Vec<Instant>,
    record: Tee<EventLog, RunStats>,
    /// The scheduler, or the single path.
    scheduler: String,
}

impl RunHost {
    /// Begins at `base` of the link's time, between these addresses.
    ///
    /// # Errors
    /// The scenario is beyond the engine.
    pub fn new(job: &Job, side: Side, addresses: Addresses, port: u16, base: Instant) -> Result<Self, RunError> {
        let plan = Layout::of_one(job)?;
        let mut parties = plan.parties(job, side)?;
        parties.iter_mut().for_each(|party| place(party, side, addresses, port));
        let openings = match (side, plan.opening()) {
            (Side::Server, _) => Vec::new(),
            (Side::Client, Opening::At(times)) => times.clone(),
            (Side::Client, _) => vec![plan.start()],
        };
        let rng = Rng::stream(seed(), "run");
        let record = Tee(EventLog::new(MOST), RunStats::default());
        let scheduler = match &job.choice {
            Choice::Multipath(plug_in) => plug_in.with_parameters(),
            Choice::Single(path) => format!("single:{}", job.scenario.topology.paths[*path].name),
        };
        let host = Host::new(side, port, parties, plan.opening().clone(), rng);
        Ok(Self { side, host, base, port, openings, record, scheduler })
    }

    /// The run's time.
    pub fn time(&self, now: Instant) -> Instant {
        Instant::ZERO + now.since(self.base)
    }

    /// All applications are done, after they began, and the peer has all that they wrote.
    pub fn is_done(&mut self) -> bool {
        self.host.is_done() && self.stats().is_acked()
    }

    /// Why the run cannot count: an application got wrong bytes.
    pub fn fault(&self) -> Option<String> {
        self.host.fault().map(|fault| fault.to_string())
    }

    /// The run has more events than it keeps.
    pub fn is_cut(&self) -> bool {
        self.record.0.is_cut()
    }

    /// Ends the run, and gives its events.
    pub fn finish(self) -> EventLog {
        self.record.0
    }

    /// The scheduler, or the single path.
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// Load of the run's paths.
    pub fn stats(&self) -> &RunStats {
        &self.record.1
    }

    /// Bytes that the applications of this end received, and that the peer acknowledged.
    pub fn exchanged(&self) -> u64 {
        self.stats().delivered + self.stats().acked_bytes
    }

    /// Connections are still to be opened at their times.
    pub fn opens_later(&self) -> bool {
        !self.openings.is_empty()
    }

    /// The openings that are due.
    fn open(&mut self, time: Instant) {
        let due = self.openings.iter().take_while(|at| **at <= time).count();
        if due > 0 {
            self.openings.drain(..due);
            self.host.connect(time, &mut self.record);
        }
    }

    fn next(&mut self) -> Instant {
        let next = self.openings.first().copied().unwrap_or(Instant::MAX).min(self.host.next_alarm());
        if next == Instant::MAX { next } else { self.base + next.since(Instant::ZERO) }
    }
}

/// Gives a connection's paths the addresses of the session and the run's port.
fn place(party: &mut Party, side: Side, addresses: Addresses, port: u16) {
    for path in &mut party.setup.paths {
        let (client, server) = match side {
            Side::Client => (&mut path.tuple.local, &mut path.tuple.remote),
            Side::Server => (&mut path.tuple.remote, &mut path.tuple.local),
        };
        client.set_ip(IpAddr::V4(addresses.client(path.id)));
        *server = SocketAddr::new(IpAddr::V4(addresses.server()), port);
    }
}

/// The engine of messages about runs, and the run under way.
#[derive(Debug)]
pub(super) struct MeasurementStation {
    side: Side,
    pub control: Engine,
    pub run: Option<RunHost>,
    /// Packets of runs that are over.
    pub late: u64,
}

impl MeasurementStation {
    /// Without a run.
    pub fn new(side: Side, control: Engine) -> Self {
        Self { side, control, run: None, late: 0 }
    }

    /// The server's port in a packet that this end sends (`sent`) or receives.
    fn port(&self, packet: &Packet, sent: bool) -> u16 {
        let is_source = (self.side == Side::Server) == sent;
        if is_source { packet.segment.src_port } else { packet.segment.dst_port }
    }
}

/// The path of a packet: that of the client's address.
fn path(side: Side, sent: bool, packet: &Packet) -> PathId {
    let client = if (side == Side::Client) == sent { packet.src } else { packet.dst };
    path_of(client).unwrap_or_default()
}

impl Station for MeasurementStation {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        let port = self.port(packet, false);
        match &mut self.run {
            _ if port == CONTROL => self.control.receive(now, &mut (), packet),
            Some(run) if run.port == port => {
                let time = run.time(now);
                recorder.packet(time, run.side, false, path(run.side, false, packet), packet);
                run.host.receive(time, &mut run.record, packet);
            }
            _ => self.late += 1,
        }
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        if self.control.transmit_into(now, &mut (), packet) {
            return true;
        }
        let Some(run) = &mut self.run else { return false };
        let time = run.time(now);
        let some = run.host.transmit_into(time, &mut run.record, packet).is_some();
        if some {
            recorder.packet(time, run.side, true, path(run.side, true, packet), packet);
        }
        some
    }

    fn handle_timeout(&mut self, now: Instant, _: &mut dyn Recorder) {
        if self.control.poll_timeout() <= now {
            self.control.handle_timeout(now, &mut ());
        }
        if let Some(run) = &mut self.run {
            let time = run.time(now);
            run.open(time);
            if run.host.next_alarm() <= time {
                run.host.on_timer(time, &mut run.record);
            }
        }
    }

    fn poll_timeout(&mut self) -> Instant {
        let run = self.run.as_mut().map_or(Instant::MAX, RunHost::next);
        self.control.poll_timeout().min(run)
    }
}
