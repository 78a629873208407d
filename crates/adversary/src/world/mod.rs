//! Plays a case in virtual time, and checks it.

mod agenda;
mod held;
mod judge;
mod network;

use crate::application::Application;
use crate::case::{self, Case, NEW_ADDRESSES, PORT};
use crate::class::Class;
use crate::middle::{Deed, Middle};
use crate::script::Call;
use crate::show::Exchange;
use crate::verdict::{Failure, Kind, Outcome};
use crate::watch::Watch;
use agenda::{Agenda, Event};
use anabranch_engine::connection::{Connection, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple};
use anabranch_trace::CloseReason;
use anabranch_units::{ConnId, Duration, Instant, Rng, SeqNumber, Side};
use anabranch_wire::{Flags, Packet};
use held::Held;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// When the applications stop in a class that need not complete.
const STOP: Duration = Duration::from_secs(600);
/// The longest time that a client needs to join over a path after an interruption of some seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// Most rounds of timers at one virtual time.
const SPINS: u32 = 2_000;
/// Bytes that a host may hold beside a receive window on each subflow: a segment and its rounding.
const SPARE: u64 = 4_096;

/// The interval at which a host checks connections without an application.
const HEARS_STRANGERS: Duration = Duration::from_secs(1);

const SIDES: [Side; 2] = [Side::Client, Side::Server];

struct World<'a> {
    case: &'a Case,
    now: Instant,
    ends: [Endpoint; 2],
    rngs: [Rng; 2],
    apps: [Application; 2],
    watch: Watch,
    middle: Middle,
    agenda: Agenda,
    /// When each line is free again.
    free: Vec<[Instant; 2]>,
    packets: u64,
    /// Bytes that each host holds.
    held: [Held; 2],
    token: u32,
    /// The server's connections without an application: of floods, or of a duplicated SYN.
    strangers: Vec<Handle>,
    /// Connections of the client that the server has accepted.
    accepted: u32,
    /// When they are checked next.
    hears_strangers: Instant,
    /// Each path translator's offset of sequence numbers.
    shifts: Vec<[Option<u32>; 2]>,
    /// When the client learned that the server speaks MPTCP: only then it may join (RFC 8684 §3.2).
    confirmed: Option<Instant>,
    /// Number of the server's last SYN that reached the client.
    server_syn: Option<SeqNumber>,
    /// A path was reset before that.
    reset_early: bool,
    /// An application has reset a path.
    was_reset: bool,
    /// A reset was lost, or the segment that caused it, or a connection of a forged SYN answers in its place.
    reset_lost: bool,
    /// Numbers of the client's own SYNs.
    own_syns: Vec<SeqNumber>,
    stopped: bool,
    half_open: bool,
    /// Bytes of each side that its peer has acknowledged.
    acknowledged: [u64; 2],
    exchange: Option<Exchange>,
}

type Step = Result<(), Failure>;

/// Plays a case.
///
/// # Errors
/// The first property that it broke.
pub fn run(case: &Case) -> Result<Outcome, Failure> {
    play(case, None).0
}

/// Plays a case; returns also the deeds, and both hosts' exchange as lines.
pub fn told(case: &Case) -> (Result<Outcome, Failure>, Vec<Deed>, Vec<String>) {
    let (result, deeds, exchange) = play(case, Some(Exchange::default()));
    (result, deeds, exchange.map(Exchange::lines).unwrap_or_default())
}

/// Plays a case; returns also the deeds.
pub(crate) fn played(case: &Case) -> (Result<Outcome, Failure>, Vec<Deed>) {
    let (result, deeds, _) = play(case, None);
    (result, deeds)
}

fn play(case: &Case, exchange: Option<Exchange>) -> (Result<Outcome, Failure>, Vec<Deed>, Option<Exchange>) {
    let mut world = World::new(case, exchange);
    let played = catch_unwind(AssertUnwindSafe(|| world.play()));
    let result = played.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        let place = PLACE.take().map_or(String::new(), |place| format!(" at {place}"));
        Err(Failure { kind: Kind::Panic, at: world.now, text: text.unwrap_or_default() + &place })
    });
    let mut exchange = world.exchange.take();
    if let Some(exchange) = &mut exchange {
        exchange.add_events(world.watch.log.take().unwrap_or_default());
    }
    (result, core::mem::take(&mut world.middle.done), exchange)
}

thread_local! {
    /// Where this thread last panicked.
    static PLACE: std::cell::Cell<Option<String>> = const { std::cell::Cell::new(None) };
}

/// From now on a panic is not printed, because it is a finding; its place is recorded.
pub fn hush_panics() {
    std::panic::set_hook(Box::new(|info| PLACE.set(info.location().map(ToString::to_string))));
}

fn other(n: usize) -> usize {
    1 - n
}

fn setup(case: &Case, side: Side, id: u32) -> Setup {
    let party = &case.parties[side as usize - 1];
    let scheduler = anabranch_schedulers::build(&party.scheduler, &party.parameters);
    let congestion = anabranch_congestion::build(party.congestion, &[]);
    Setup {
        id: ConnId(id),
        settings: party.settings.clone(),
        scheduler: scheduler.expect("drawn from the registry"),
        congestion: congestion.expect("drawn from the registry"),
        paths: case.path_setups(side),
        announce: Vec::new(),
        accept_announced: party.accept_announced,
    }
}

impl<'a> World<'a> {
    fn new(case: &'a Case, exchange: Option<Exchange>) -> Self {
        let middle = match &case.deeds {
            Some(deeds) => Middle::by_list(deeds),
            None => Middle::by_rules(case.seed, case.rules.clone()),
        };
        let mut server = Endpoint::new(case.limit);
        let template = case.clone();
        let accept = move |tuple: FourTuple| {
            let ours = case::line_of(tuple.remote.ip(), tuple.local.ip()).is_some();
            Some(setup(&template, Side::Server, u32::from(!ours)))
        };
        match case.class {
            // Each SYN of a race would be a connection, of which all but one are reset.
            Class::Race => server.listen_for_complete(PORT, case.parties[1].settings.clone(), Box::new(accept)),
            _ => server.listen(PORT, Box::new(accept)),
        }
        let mut world = Self {
            case,
            now: case.start,
            ends: [Endpoint::new(64), server],
            rngs: [Rng::stream(case.seed, "client"), Rng::stream(case.seed, "server")],
            apps: [0, 1].map(|n| Application::new(SIDES[n], case.parties[n].plan, case.start)),
            watch: Watch { log: exchange.is_some().then(Vec::new), ..Watch::default() },
            middle,
            agenda: Agenda::default(),
            free: vec![[Instant::ZERO; 2]; case.paths.len()],
            packets: 0,
            held: Default::default(),
            token: 0,
            strangers: Vec::new(),
            accepted: 0,
            hears_strangers: Instant::ZERO,
            confirmed: None,
            shifts: vec![[None; 2]; case.paths.len()],
            server_syn: None,
            reset_early: false,
            was_reset: false,
            reset_lost: false,
            own_syns: Vec::new(),
            stopped: false,
            half_open: false,
            acknowledged: [0; 2],
            exchange,
        };
        for (n, act) in case.script.iter().enumerate() {
            world.agenda.put(case.start + act.at, Event::Act(n));
        }
        for (n, flood) in case.floods.iter().enumerate() {
            world.agenda.put(case.start + flood.from, Event::Flood(n, 0));
        }
        world
    }

    fn fail<T>(&self, kind: Kind, text: impl Into<String>) -> Result<T, Failure> {
        Err(Failure { kind, at: self.now, text: text.into() })
    }

    fn play(&mut self) -> Result<Outcome, Failure> {
        let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[0] };
        let handle = self.ends[0].connect(&mut cx, setup(self.case, Side::Client, 0));
        self.apps[0].handle = Some(handle);
        self.flush(0)?;
        let (mut spins, limit) = (0, self.case.start + self.case.limit());
        loop {
            let Some(at) = self.next() else {
                if self.wind_up()? {
                    continue;
                }
                break;
            };
            if at > limit {
                self.half_open |= (0..2).any(|n| self.is_deserted(n));
                if self.is_over() || self.half_open {
                    break;
                }
                return self.fail(Kind::Late, self.state());
            }
            if self.case.class == Class::Forge && at > self.case.start + STOP && !self.stopped {
                self.stop()?;
            }
            spins = if at > self.now { 0 } else { spins + 1 };
            self.now = self.now.max(at);
            if spins > SPINS {
                return self.fail(Kind::Livelock, format!("{SPINS} rounds while time stands still; {}", self.state()));
            }
            if self.step()? {
                spins = 0;
            }
        }
        self.judge()
    }

    /// The time of the next event.
    fn next(&self) -> Option<Instant> {
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let apps = self.apps.iter().map(Application::next_wakeup).filter(|at| *at < Instant::MAX);
        timers.chain(apps).chain(self.agenda.next()).min()
    }

    /// Handles everything that is due. True if it was more than timers.
    fn step(&mut self) -> Result<bool, Failure> {
        if let Some(event) = self.agenda.pop(self.now) {
            self.happen(event)?;
            return Ok(true);
        }
        for n in 0..2 {
            if self.ends[n].poll_timeout().is_some_and(|at| at <= self.now) {
                let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
                self.ends[n].handle_timeout(&mut cx);
                if n == 1 {
                    self.hear_strangers();
                }
                self.flush(n)?;
            }
            if self.apps[n].next_wakeup() <= self.now {
                self.flush(n)?;
            }
        }
        Ok(false)
    }

    fn happen(&mut self, event: Event) -> Step {
        match event {
            Event::Arrival(n, packet) => self.arrive(n, packet),
            Event::Release(path, way) => {
                if let Some(packet) = self.middle.release(path, way) {
                    self.carry(path, way, packet, Duration::ZERO);
                }
                Ok(())
            }
            Event::Flood(n, count) => self.flood(n, count),
            Event::TooBig(n, tuple, seq, mtu) => {
                let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
                self.ends[n].handle_too_big(&mut cx, tuple, seq, mtu);
                self.flush(n)
            }
            Event::Act(n) => self.act(n),
        }
    }

    fn arrive(&mut self, n: usize, mut packet: Packet) -> Step {
        if self.case.class.counts_memory() && !packet.segment.payload.is_empty() {
            packet.segment.payload = self.held[n].count(&packet.segment.payload);
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.arrives(self.now, SIDES[n], &packet);
        }
        let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
        let taken = self.ends[n].handle_packet(&mut cx, &packet);
        if n == 0 && packet.segment.flags.has(Flags::SYN) {
            self.server_syn = Some(packet.segment.seq);
        }
        // A keep-alive and a zero-window probe lie outside the window: their options are ignored.
        let probes = self.server_syn == Some(packet.segment.seq);
        let speaks = !packet.segment.payload.is_empty() || self.apps[0].written > 0 && !probes;
        if n == 0 && taken.is_some() && speaks && packet.segment.options.dss().is_some() {
            self.confirmed.get_or_insert(self.now);
        }
        drop(packet);
        self.note_acknowledged(n);
        self.adopt(n);
        self.flush(n)?;
        self.check_memory(n)
    }

    fn note_acknowledged(&mut self, n: usize) {
        let app = &self.apps[n];
        if let Some(connection) = app.handle.and_then(|h| self.ends[n].connection(h)) {
            self.acknowledged[n] = app.written - connection.unacknowledged();
        }
    }

    /// The server's application accepts its connection: the client's, not one of a flood.
    fn adopt(&mut self, n: usize) {
        while let Some(handle) = self.ends[n].poll_accept() {
            let ours = self.ends[n].connection(handle).is_some_and(|c| c.id() == ConnId(0));
            self.accepted += u32::from(ours);
            let app = &self.apps[n];
            // Another handshake may follow one that failed.
            let free = app.handle.is_none_or(|_| app.closed.is_some() && !app.established);
            if ours && free {
                self.apps[n] = Application::new(SIDES[n], self.case.parties[n].plan, self.case.start);
                self.apps[n].handle = Some(handle);
            } else {
                self.strangers.push(handle);
            }
        }
    }

    /// Runs the application and its endpoint until neither has anything left to do.
    fn flush(&mut self, n: usize) -> Step {
        let mut burst = 0;
        loop {
            let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
            let acted = match self.apps[n].serve(&mut self.ends[n], &mut cx) {
                Ok(acted) => acted,
                Err((kind, text)) => return self.fail(kind, text),
            };
            self.check_bytes(n)?;
            let mut sent = false;
            loop {
                let mut packet = Packet::default();
                let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
                if self.ends[n].transmit_into(&mut cx, &mut packet).is_none() {
                    break;
                }
                sent = true;
                burst += 1;
                self.packets += 1;
                if burst > self.case.class.most_at_once() {
                    return self.fail(Kind::Livelock, format!("{burst} packets at once; {}", self.state()));
                }
                self.send(n, packet);
            }
            if !acted && !sent {
                break;
            }
        }
        if self.packets > self.case.class.most_packets() {
            return self.fail(Kind::Storm, format!("{} packets; {}", self.packets, self.state()));
        }
        if self.watch.stall.is_some() && self.case.class != Class::Forge {
            return self.fail(Kind::Stall, self.state());
        }
        Ok(())
    }

    /// Checks each connection without an application at intervals, and removes those that ended.
    fn hear_strangers(&mut self) {
        if self.now < self.hears_strangers {
            return;
        }
        self.hears_strangers = self.now + HEARS_STRANGERS;
        let server = &mut self.ends[1];
        self.strangers.retain(|handle| {
            while server.poll_event(*handle).is_some() {}
            server.connection(*handle).is_some()
        });
    }

    /// Ends connections without an application, as a server ends an idle connection. A forger can complete a handshake,
    /// and such a connection lasts for ever otherwise (RFC 9293 §3.8.4). True if there were some.
    fn dismiss_strangers(&mut self) -> Result<bool, Failure> {
        let strangers = core::mem::take(&mut self.strangers);
        for handle in &strangers {
            let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[1] };
            if let Some(connection) = self.ends[1].connection_mut(*handle) {
                connection.abort(&mut cx);
            }
            while self.ends[1].poll_event(*handle).is_some() {}
        }
        self.flush(1)?;
        Ok(!strangers.is_empty())
    }

    fn with_connection(&mut self, n: usize, act: impl FnOnce(&mut Connection, &mut Cx<'_>, &mut Application)) -> Step {
        let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
        let handle = self.apps[n].handle.filter(|_| self.apps[n].closed.is_none());
        if let Some(connection) = handle.and_then(|h| self.ends[n].connection_mut(h)) {
            act(connection, &mut cx, &mut self.apps[n]);
        }
        self.flush(n)
    }

    fn act(&mut self, number: usize) -> Step {
        let act = self.case.script[number].clone();
        let n = act.side as usize - 1;
        if let Some(exchange) = &mut self.exchange {
            exchange.calls(self.now, act.side, &act.call);
        }
        let case = self.case;
        let resets = matches!(act.call, Call::Reset(..));
        self.was_reset |= resets;
        self.reset_early |= resets && self.confirmed.is_none();
        self.with_connection(n, |connection, cx, app| match act.call {
            Call::Reset(path, reason) => {
                connection.reset_path(cx, path, reason);
            }
            Call::Scheduler(name) => {
                let resolved = anabranch_schedulers::resolve(&name).expect("a name of the registry");
                let scheduler = resolved.build(&[]).expect("no parameters");
                connection.set_scheduler(cx, resolved.label(), scheduler);
            }
            Call::Backup(path, backup) => connection.set_backup(path, backup),
            Call::Announce { id, path, new, port } => {
                let low = if new { 3 + id % NEW_ADDRESSES } else { 2 };
                connection.announce(cx, id, case.address(path, low), port);
            }
            Call::Withdraw(id) => connection.withdraw(cx, id),
            Call::Finish => app.finish(connection, cx),
            Call::Abort => {
                app.aborted = true;
                connection.abort(cx);
            }
        })
    }

    /// Ends the applications of a class that need not complete.
    fn stop(&mut self) -> Step {
        self.stopped = true;
        for n in 0..2 {
            self.with_connection(n, |connection, cx, _| connection.abort(cx))?;
        }
        Ok(())
    }

    /// No packet is under way and no timer runs. True if the application of a half-open connection has acted.
    fn wind_up(&mut self) -> Result<bool, Failure> {
        if self.is_over() {
            return self.dismiss_strangers();
        }
        if self.case.class == Class::Forge && !self.stopped {
            self.stop()?;
            return Ok(true);
        }
        for (n, side) in SIDES.into_iter().enumerate() {
            let app = &self.apps[n];
            let Some(connection) = app.handle.and_then(|h| self.ends[n].connection(h)) else { continue };
            if app.closed.is_some() {
                continue;
            }
            if let Some(text) = app.overlooked(connection) {
                return self.fail(Kind::Unwoken, text);
            }
            if self.is_deserted(n) {
                if connection.subflows().any(|(id, ..)| self.watch.doubted[n] & id.bit() != 0) {
                    return self.fail(
                        Kind::Stuck,
                        format!("{side:?} keeps a subflow whose reset it refused; {}", self.state()),
                    );
                }
                self.half_open = true;
                let finished = app.finished;
                self.with_connection(n, |connection, cx, app| match finished {
                    false => app.finish(connection, cx),
                    true => connection.abort(cx),
                })?;
                return Ok(true);
            }
        }
        self.fail(Kind::Stuck, self.state())
    }

    /// RFC 9293 §3.5.1: the peer is gone and its reset was lost; an end with nothing to send cannot notice.
    fn is_deserted(&self, n: usize) -> bool {
        let (app, peer) = (&self.apps[n], &self.apps[other(n)]);
        let reset = self.case.script.iter().any(|act| act.call.ends_a_lone_path());
        let failed = |why| why != CloseReason::Finished || reset;
        let gone = peer.closed.is_some_and(failed) || peer.handle.is_none();
        let connection = app.handle.and_then(|h| self.ends[n].connection(h));
        gone && app.closed.is_none() && connection.is_some_and(|c| c.unacknowledged() == 0)
    }
}
