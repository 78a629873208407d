//! A host that is an engine: one endpoint, and an application on each of its connections.

use crate::applications::{Application, Applications};
use crate::flow::client_port;
use crate::stillness::Stillness;
use crate::stuck::Stuck;
use anabranch_engine::connection::{Connection, ConnectionEvent, PathSetup, Setup};
use anabranch_engine::endpoint::{Accept, Endpoint, Handle};
use anabranch_engine::schedule::{PathPolicy, Scheduler};
use anabranch_engine::{Cx, FirstPath, FourTuple};
use anabranch_trace::{Event, Origin, Recorder, SchedulerName};
use anabranch_units::{ConnId, Instant, PathId, Rate, Rng, Side};
use anabranch_wire::Packet;
use anabranch_workload::{Fault, Stream, Workload};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A future connection and its application.
#[derive(Debug)]
pub struct Party {
    /// The connection.
    pub setup: Setup,
    /// The application.
    pub workload: Box<dyn Workload>,
}

/// When a client opens its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// From the flow's start on this many at a time, others when these are done.
    AtOnce(usize),
    /// As [`Self::AtOnce`], but another opens as soon as one of them [is served](Workload::is_served); the old one
    /// closes meanwhile.
    Served(usize),
    /// Each at its own time, whatever the state of earlier ones; in order of time, none before the flow's start.
    At(Vec<Instant>),
}

/// A scheduler that takes over during a connection.
#[derive(Clone)]
pub struct Switch {
    /// Name of the scheduler, for the trace.
    pub name: SchedulerName,
    /// Makes one for a connection.
    pub make: Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>,
}

impl core::fmt::Debug for Switch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Switch").field(&self.name).finish()
    }
}

/// Options of a path that an operator changes while connections run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChoice {
    /// Whether the path is used only if no other path works; MP_PRIO informs the peer (RFC 8684 §3.3.8).
    pub backup: bool,
    /// Price, cap and weight.
    pub policy: PathPolicy,
    /// Most payload bytes of a segment, where the path's interface limits that.
    pub mss: Option<u32>,
}

impl PathChoice {
    fn apply(self, id: PathId, connection: &mut Connection) {
        connection.set_options(id, self.backup, self.policy);
        if let Some(mss) = self.mss {
            connection.set_mss(id, mss);
        }
    }
}

/// An application that waits for its connection; a client's has the parameters to connect.
#[derive(Debug)]
struct Waiting {
    id: ConnId,
    setup: Option<Box<Setup>>,
    workload: Box<dyn Workload>,
}

impl Waiting {
    /// Whether the host is a client, and there is a path.
    fn may_connect(&mut self) -> bool {
        self.setup.as_ref().is_some_and(|setup| !setup.paths.is_empty())
    }
}

/// One endpoint with its applications. Its driver calls [`Self::connect`] when a client begins, [`Self::on_timer`] at
/// [`Self::next_alarm`], and [`Self::transmit_into`] after each call until nothing is left.
#[derive(Debug)]
pub struct Host {
    pub(crate) side: Side,
    pub(crate) endpoint: Endpoint,
    rng: Rng,
    applications: Applications,
    /// Places of the applications that are called when time has passed; kept for its memory.
    due: Vec<usize>,
    /// Applications without a connection yet.
    waiting: VecDeque<Waiting>,
    /// The scheduler that took over, for future connections.
    switch: Option<Switch>,
    /// The newest choice per path, for future connections.
    choices: BTreeMap<PathId, PathChoice>,
    /// When a client opens connections, and the number opened so far.
    opening: Opening,
    opened: usize,
    /// Where that decides when others open: connections that were not served when they were last looked at.
    unserved: Vec<Handle>,
    started: bool,
    /// The next number that [`Stream::take_ticket`] gives.
    tickets: u64,
    /// Applications that are done and whose connections are gone.
    gone: usize,
    fault: Option<Fault>,
    /// The earliest wake-up in the world's agenda.
    pub(crate) alarm: Instant,
    /// Activity since time last advanced.
    pub(crate) still: Stillness,
}

impl Host {
    /// A host for `parties`, which a client opens according to `opening`.
    pub fn new(side: Side, port: u16, parties: Vec<Party>, opening: Opening, rng: Rng) -> Self {
        let mut endpoint = Endpoint::default();
        let mut setups = VecDeque::new();
        let mut waiting = VecDeque::with_capacity(parties.len());
        for Party { setup, workload } in parties {
            let id = setup.id;
            // Apart: a queue keeps the place of what has left it.
            let setup = Box::new(setup);
            let setup = match side {
                Side::Client => Some(setup),
                Side::Server => {
                    setups.push_back(setup);
                    None
                }
            };
            waiting.push_back(Waiting { id, setup, workload });
        }
        if side == Side::Server {
            let race = setups.iter().find(|setup| setup.settings.first_path == FirstPath::Race);
            let race = race.map(|setup| setup.settings.clone());
            let accept: Accept =
                Box::new(move |tuple| take(&mut setups, |setup| is_for(setup, tuple)).map(|setup| *setup));
            match race {
                // Each connection has an application, so a losing SYN of a race must not make a connection.
                Some(settings) => endpoint.listen_for_complete(port, settings, accept),
                None => endpoint.listen(port, accept),
            }
        }
        Self {
            side,
            endpoint,
            rng,
            applications: Applications::default(),
            due: Vec::new(),
            waiting,
            switch: None,
            choices: BTreeMap::new(),
            opening,
            opened: 0,
            unserved: Vec::new(),
            started: false,
            tickets: 0,
            gone: 0,
            fault: None,
            alarm: Instant::MAX,
            still: Stillness::default(),
        }
    }

    /// Opens as many connections of a client as are due now.
    pub fn connect(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.started = true;
        while self.may_open(now)
            && let Some(Waiting { setup: Some(setup), workload, .. }) = self.waiting.pop_front_if(Waiting::may_connect)
        {
            self.opened += 1;
            let mut cx = Cx { now, recorder: &mut *recorder, rng: &mut self.rng };
            let handle = self.endpoint.connect(&mut cx, *setup);
            self.adopt(now, recorder, handle, workload);
            if matches!(self.opening, Opening::Served(_)) {
                self.unserved.push(handle);
            }
        }
    }

    fn may_open(&mut self, now: Instant) -> bool {
        match &self.opening {
            Opening::AtOnce(count) => self.applications.len() < *count,
            Opening::Served(count) => {
                // Never more than `count`, however many others are closing.
                self.unserved.retain(|handle| self.applications.is_unserved(*handle));
                self.unserved.len() < *count
            }
            Opening::At(times) => times.get(self.opened).is_some_and(|at| *at <= now),
        }
    }

    /// Gives an application its connection, with the scheduler that took over meanwhile, if any.
    fn adopt(&mut self, now: Instant, recorder: &mut dyn Recorder, handle: Handle, workload: Box<dyn Workload>) {
        self.applications.push(handle, workload);
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        let Some(connection) = self.endpoint.connection_mut(handle) else { return };
        self.choices.iter().for_each(|(id, choice)| choice.apply(*id, connection));
        if let Some(Switch { name, make }) = &self.switch {
            connection.set_scheduler(&mut cx, *name, make());
        }
    }

    /// Changes the options of a path in every connection, present and future.
    pub fn set_options(&mut self, id: PathId, choice: PathChoice) {
        for application in self.applications.iter() {
            if let Some(connection) = self.endpoint.connection_mut(application.handle) {
                choice.apply(id, connection);
            }
        }
        self.choices.insert(id, choice);
    }

    /// Changes the scheduler of every connection, present and future.
    pub fn set_scheduler(&mut self, now: Instant, recorder: &mut dyn Recorder, switch: &Switch) {
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        for application in self.applications.iter() {
            if let Some(connection) = self.endpoint.connection_mut(application.handle) {
                connection.set_scheduler(&mut cx, switch.name, (switch.make)());
            }
        }
        self.switch = Some(switch.clone());
    }

    /// A router has dropped `packet` of this host, and carries none above `mtu` bytes.
    pub fn on_too_big(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet, mtu: u32) {
        let Packet { src, dst, segment } = packet;
        let tuple = FourTuple { local: (*src, segment.src_port).into(), remote: (*dst, segment.dst_port).into() };
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        self.endpoint.handle_too_big(&mut cx, tuple, segment.seq, mtu);
    }

    /// A path appears: connections join over it, and those to come know it.
    pub fn path_up(&mut self, now: Instant, recorder: &mut dyn Recorder, setup: &PathSetup) {
        for waiting in self.waiting.iter_mut().filter_map(|waiting| waiting.setup.as_mut()) {
            let opens = waiting.paths.is_empty();
            let port = if opens { client_port(waiting.id) } else { 0 };
            let mut setup = setup.clone();
            setup.tuple.local.set_port(port);
            waiting.paths.push(setup);
        }
        for application in self.applications.iter() {
            if let Some(connection) = self.endpoint.connection_mut(application.handle) {
                connection.set_path(setup.clone());
            }
        }
        let mut cx = Cx { now, recorder: &mut *recorder, rng: &mut self.rng };
        self.endpoint.handle_timeout(&mut cx);
        self.go_on(now, recorder);
    }

    /// A path goes: connections withdraw its address, and those to come do not know it.
    pub fn path_down(&mut self, now: Instant, recorder: &mut dyn Recorder, id: PathId) {
        for waiting in self.waiting.iter_mut().filter_map(|waiting| waiting.setup.as_mut()) {
            waiting.paths.retain(|path| path.id != id);
        }
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        for application in self.applications.iter() {
            let Some(connection) = self.endpoint.connection_mut(application.handle) else { continue };
            let local = connection.subflows().find(|(path, ..)| *path == id).map(|(_, tuple, _)| tuple.local);
            if let Some(address) = local.and_then(|local| connection.address_id(local)) {
                connection.withdraw(&mut cx, address);
            }
        }
    }

    /// Aborts every connection, and opens no more.
    pub fn abort(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.waiting.clear();
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        for application in self.applications.iter() {
            if let Some(connection) = self.endpoint.connection_mut(application.handle) {
                connection.abort(&mut cx);
            }
        }
    }

    /// Handles a packet. True if an application got a connection, or an event.
    #[inline(always)]
    pub fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) -> bool {
        let mut cx = Cx { now, recorder: &mut *recorder, rng: &mut self.rng };
        let handle = self.endpoint.handle_packet(&mut cx, packet);
        let mut told = false;
        while let Some(handle) = self.endpoint.poll_accept() {
            told = true;
            let id = self.endpoint.connection(handle).map(Connection::id);
            if let Some(Waiting { workload, .. }) = take(&mut self.waiting, |waiting| Some(waiting.id) == id) {
                self.adopt(now, recorder, handle, workload);
            }
        }
        // Most packets change nothing for the application, which lies elsewhere in memory than the connection: it is looked up last.
        let changed = handle.filter(|handle| self.endpoint.has_news(*handle));
        if let Some(n) = changed.and_then(|handle| self.applications.find(handle)) {
            told = true;
            self.serve(n, now, recorder);
        }
        if told {
            self.go_on(now, recorder);
        }
        told
    }

    /// Handles timers and wake-ups that are due.
    pub fn on_timer(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        let mut cx = Cx { now, recorder: &mut *recorder, rng: &mut self.rng };
        self.endpoint.handle_timeout(&mut cx);
        let mut due = core::mem::take(&mut self.due);
        due.extend(self.applications.due(now));
        while let Some(handle) = self.endpoint.poll_news() {
            due.extend(self.applications.find(handle));
        }
        // The last place first: what leaves is replaced by one that was served already.
        due.sort_unstable_by(|a, b| b.cmp(a));
        due.dedup();
        for n in due.drain(..) {
            self.wake(n, now, recorder);
            self.serve(n, now, recorder);
        }
        self.due = due;
        self.go_on(now, recorder);
    }

    /// Calls an application whose wake-up has come.
    fn wake(&mut self, n: usize, now: Instant, recorder: &mut dyn Recorder) {
        let Application { handle, workload, wakeup, .. } = &mut self.applications[n];
        if *wakeup <= now
            && let Some(connection) = self.endpoint.connection_mut(*handle)
        {
            let mut cx = Cx { now, recorder, rng: &mut self.rng };
            workload.on_wakeup(now, &mut Io { side: self.side, connection, cx: &mut cx, tickets: &mut self.tickets });
            self.fault = self.fault.or_else(|| workload.fault());
            self.applications.note(n);
        }
    }

    /// Opens the next connections of a client, once it has begun.
    fn go_on(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        if self.started && !self.waiting.is_empty() {
            self.connect(now, recorder);
        }
    }

    /// The parts that [`Self::transmit_into`] calls, for several packets in turn.
    #[inline(always)]
    pub(crate) fn sender<'a>(&'a mut self, now: Instant, recorder: &'a mut dyn Recorder) -> (&'a mut Endpoint, Cx<'a>) {
        (&mut self.endpoint, Cx { now, recorder, rng: &mut self.rng })
    }

    /// The first packet to send, with its path; see [`Endpoint::transmit_into`].
    pub fn transmit_into(
        &mut self,
        now: Instant,
        recorder: &mut dyn Recorder,
        packet: &mut Packet,
    ) -> Option<Option<anabranch_units::PathId>> {
        let (endpoint, mut cx) = self.sender(now, recorder);
        endpoint.transmit_into(&mut cx, packet)
    }

    /// Changes the endpoint at `now`.
    pub fn act(&mut self, now: Instant, recorder: &mut dyn Recorder, act: &mut dyn FnMut(&mut Endpoint, &mut Cx<'_>)) {
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        act(&mut self.endpoint, &mut cx);
    }

    /// Gives an application the events of its connection, if there are any.
    #[inline(never)]
    fn serve(&mut self, n: usize, now: Instant, recorder: &mut dyn Recorder) {
        let Application { handle, workload, established, .. } = &mut self.applications[n];
        let Some(connection) = self.endpoint.news_of(*handle) else { return };
        let mut cx = Cx { now, recorder, rng: &mut self.rng };
        let mut io = Io { side: self.side, connection, cx: &mut cx, tickets: &mut self.tickets };
        let mut closed = false;
        while let Some(event) = io.connection.poll_event() {
            match event {
                ConnectionEvent::Established if !*established => {
                    *established = true;
                    workload.on_established(now, &mut io);
                }
                ConnectionEvent::Readable => workload.on_readable(now, &mut io),
                ConnectionEvent::Writable => workload.on_writable(now, &mut io),
                ConnectionEvent::Closed(_) => closed = true,
                _ => {}
            }
        }
        if let (None, Some(fault)) = (self.fault, workload.fault()) {
            self.fault = Some(fault);
        }
        self.applications.note(n);
        // The last one of a host is kept for inspection.
        if closed && !self.waiting.is_empty() && self.applications[n].workload.is_done() {
            self.applications.swap_remove(n);
            self.gone += 1;
        }
    }

    /// The first connection's handle, or its successor's.
    pub fn handle(&self) -> Option<Handle> {
        self.applications.iter().next().map(|application| application.handle)
    }

    /// Every application has finished its work.
    pub fn is_done(&mut self) -> bool {
        self.waiting.is_empty() && self.applications.are_done()
    }

    /// An application's connection has not ended.
    pub fn has_connection(&self) -> bool {
        self.applications.iter().any(|application| self.endpoint.connection(application.handle).is_some())
    }

    /// A client has opened all its connections, and none is left.
    pub fn is_gone(&self) -> bool {
        self.started && self.waiting.is_empty() && !self.has_connection()
    }

    /// Applications that are done.
    pub fn done(&self) -> usize {
        self.gone + self.applications.iter().filter(|application| application.workload.is_done()).count()
    }

    /// Why the run cannot continue: it is active without end while time stands still.
    #[cold]
    pub(crate) fn endless(&self, flow: usize) -> Stuck {
        let (rounds, packets) = self.still.counts();
        Stuck::Still { flow, side: self.side, rounds, packets }
    }

    /// The first fault of a connection.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// When this host must next be called.
    #[inline]
    pub fn next_alarm(&mut self) -> Instant {
        let timer = self.endpoint.poll_timeout().unwrap_or(Instant::MAX);
        while let Some((at, handle)) = self.applications.first_wakeup().filter(|(at, _)| *at < timer) {
            if self.endpoint.connection(handle).is_some() {
                return at;
            }
            // An application whose connection is gone is not called any more.
            self.applications.drop_wakeup();
        }
        timer
    }
}

/// Whether a server's setup is for the client at the other end of `tuple`: these ends belong to a port over which it
/// may open.
fn is_for(setup: &Setup, tuple: FourTuple) -> bool {
    setup.paths.iter().any(|path| path.tuple == tuple)
}

/// Takes the first item that fits, otherwise the first of all.
fn take<T>(queue: &mut VecDeque<T>, fits: impl FnMut(&T) -> bool) -> Option<T> {
    let place = queue.iter().position(fits).unwrap_or(0);
    queue.remove(place)
}

/// A connection borrowed by its application.
struct Io<'a, 'b> {
    side: Side,
    connection: &'a mut Connection,
    cx: &'a mut Cx<'b>,
    tickets: &'a mut u64,
}

impl Stream for Io<'_, '_> {
    fn write(&mut self, data: Bytes) -> usize {
        self.connection.write(self.cx, data)
    }
    fn begin_message(&mut self, len: u64, deadline: Option<Instant>) {
        self.connection.begin_message(len, deadline);
    }
    fn request_segment(&mut self, rate: Rate, size: u64) {
        let origin = Origin { host: Some(self.side), connection: self.connection.id(), path: PathId::default() };
        let event = Event::SegmentRequested { bps: rate.as_bps(), size };
        self.cx.recorder.record(self.cx.now, origin, &event);
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
    fn take_ticket(&mut self) -> u64 {
        let ticket = *self.tickets;
        *self.tickets += 1;
        ticket
    }
}
