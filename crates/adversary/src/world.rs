//! Plays a case in virtual time, and watches.

use crate::application::Application;
use crate::case::{self, CLIENT_PORT, Case, Flood, Flooding, NEW_ADDRESSES, PORT};
use crate::class::{Bytes as Must, Class};
use crate::middle::{self, Deed, Middle};
use crate::script::Call;
use crate::show::Exchange;
use crate::verdict::{Failure, Kind, Outcome};
use crate::watch::Watch;
use anabranch_engine::connection::Setup;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple};
use anabranch_trace::CloseReason;
use anabranch_units::{ConnId, Direction, Duration, Instant, Rng, SeqNumber, Side};
use anabranch_wire::{Flags, MpCapable, MpJoin, MptcpOption, Packet, Segment, crypto};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Virtual time in which every transfer must be over: some timeouts and keep-alives last long.
const LIMIT: Duration = Duration::from_secs(3 * 3600);
/// When the applications of a class of which nothing is asked but to end well are stopped.
const STOP: Duration = Duration::from_secs(600);
/// How long a client needs at most to join over a path from which it was kept away for some seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// Packets that one call may answer with.
const BURST: u32 = 20_000;
/// Rounds of timers while time stands still.
const SPINS: u32 = 2_000;
/// Packets of a whole case.
const STORM: u64 = 150_000;
/// Bytes that a host may hold beside a receive window on each subflow: a segment and its rounding.
const SPARE: u64 = 4_096;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// What is going to happen.
enum Event {
    Arrival(usize, Packet),
    /// A packet that waited for another one goes on.
    Release(u8, Direction),
    Flood(usize, u32),
    Act(usize),
}

struct Entry {
    at: Instant,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    // The heap gives the greatest first: that is to be the earliest.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Payload that is counted as long as somebody holds it.
struct Counted(Bytes, Arc<AtomicU64>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}

struct World<'a> {
    case: &'a Case,
    now: Instant,
    ends: [Endpoint; 2],
    rngs: [Rng; 2],
    apps: [Application; 2],
    watch: Watch,
    middle: Middle,
    agenda: BinaryHeap<Entry>,
    order: u64,
    /// When each line is free again.
    free: Vec<[Instant; 2]>,
    packets: u64,
    /// Bytes that each host holds.
    held: [Arc<AtomicU64>; 2],
    token: u32,
    /// Connections of the server's that nobody serves: of floods, or of a SYN that came twice.
    strangers: Vec<Handle>,
    /// Since when the client knows that the server speaks MPTCP: only then it may join (RFC 8684 §3.2).
    confirmed: Option<Instant>,
    /// What each path's translator adds to sequence numbers.
    shifts: Vec<[Option<u32>; 2]>,
    /// A path was reset before that.
    reset_early: bool,
    stopped: bool,
    half_open: bool,
    exchange: Option<Exchange>,
}

type Step = Result<(), Failure>;

/// Plays a case.
///
/// # Errors
/// What it broke first.
pub fn run(case: &Case) -> Result<Outcome, Failure> {
    play(case, None).0
}

/// Plays a case, and says what was done to the packets and, in lines, what everybody saw.
pub fn told(case: &Case) -> (Result<Outcome, Failure>, Vec<Deed>, Vec<String>) {
    let (result, deeds, exchange) = play(case, Some(Exchange::default()));
    (result, deeds, exchange.map(Exchange::lines).unwrap_or_default())
}

/// Plays a case; with what was done to the packets.
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
    /// Where this thread panicked last.
    static PLACE: std::cell::Cell<Option<String>> = const { std::cell::Cell::new(None) };
}

/// From now on a panic is not printed, for it is a finding, but its place is remembered.
pub fn hush_panics() {
    std::panic::set_hook(Box::new(|info| PLACE.set(info.location().map(ToString::to_string))));
}

fn other(n: usize) -> usize {
    1 - n
}

fn setup(case: &Case, side: Side, id: u32) -> Setup {
    let party = &case.parties[side as usize - 1];
    let scheduler = anabranch_schedulers::build(&party.scheduler, &[]);
    let congestion = anabranch_congestion::build(party.congestion, &[]);
    Setup {
        id: ConnId(id),
        settings: party.settings.clone(),
        scheduler: scheduler.expect("a name of the registry"),
        congestion: congestion.expect("a name of the registry"),
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
        for port in PORT..PORT + 1 {
            server.listen(port, Box::new(accept.clone()));
        }
        let mut world = Self {
            case,
            now: case.start,
            ends: [Endpoint::new(64), server],
            rngs: [Rng::stream(case.seed, "client"), Rng::stream(case.seed, "server")],
            apps: [0, 1].map(|n| Application::new(SIDES[n], case.parties[n].plan, case.start)),
            watch: Watch { log: exchange.is_some().then(Vec::new), ..Watch::default() },
            middle,
            agenda: BinaryHeap::new(),
            order: 0,
            free: vec![[Instant::ZERO; 2]; case.paths.len()],
            packets: 0,
            held: Default::default(),
            token: 0,
            strangers: Vec::new(),
            confirmed: None,
            shifts: vec![[None; 2]; case.paths.len()],
            reset_early: false,
            stopped: false,
            half_open: false,
            exchange,
        };
        for (n, act) in case.script.iter().enumerate() {
            world.put(case.start + act.at, Event::Act(n));
        }
        for (n, flood) in case.floods.iter().enumerate() {
            world.put(case.start + flood.from, Event::Flood(n, 0));
        }
        world
    }

    fn put(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.agenda.push(Entry { at, order: self.order, event });
    }

    fn fail<T>(&self, kind: Kind, text: impl Into<String>) -> Result<T, Failure> {
        Err(Failure { kind, at: self.now, text: text.into() })
    }

    fn play(&mut self) -> Result<Outcome, Failure> {
        let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[0] };
        let handle = self.ends[0].connect(&mut cx, setup(self.case, Side::Client, 0));
        self.apps[0].handle = Some(handle);
        self.flush(0)?;
        let mut spins = 0;
        loop {
            let Some(at) = self.next() else {
                if self.wind_up()? {
                    continue;
                }
                break;
            };
            if at > self.case.start + LIMIT {
                if self.is_over() {
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

    /// When something happens next.
    fn next(&self) -> Option<Instant> {
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let apps = self.apps.iter().map(Application::next_wakeup).filter(|at| *at < Instant::MAX);
        timers.chain(apps).chain(self.agenda.peek().map(|entry| entry.at)).min()
    }

    /// Everything that is due. True if something came, beside timers.
    fn step(&mut self) -> Result<bool, Failure> {
        if self.agenda.peek().is_some_and(|entry| entry.at <= self.now) {
            let Some(entry) = self.agenda.pop() else { return Ok(false) };
            self.happen(entry.event)?;
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
            Event::Act(n) => self.act(n),
        }
    }

    // ---- hosts ----

    fn arrive(&mut self, n: usize, mut packet: Packet) -> Step {
        if self.case.class.counts_memory() && !packet.segment.payload.is_empty() {
            self.held[n].fetch_add(packet.segment.payload.len() as u64, Ordering::Relaxed);
            // A copy: what is cut out of another one would keep that alive.
            let copy = Bytes::copy_from_slice(&packet.segment.payload);
            packet.segment.payload = Bytes::from_owner(Counted(copy, self.held[n].clone()));
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.arrives(self.now, SIDES[n], &packet);
        }
        let mut cx = Cx { now: self.now, recorder: &mut self.watch, rng: &mut self.rngs[n] };
        let taken = self.ends[n].handle_packet(&mut cx, &packet);
        if n == 0 && taken.is_some() && packet.segment.options.dss().is_some() {
            self.confirmed.get_or_insert(self.now);
        }
        drop(packet);
        self.adopt(n);
        self.flush(n)?;
        self.check_memory(n)
    }

    /// The server's application gets its connection: the client's, not that of a flood.
    fn adopt(&mut self, n: usize) {
        while let Some(handle) = self.ends[n].poll_accept() {
            let ours = self.ends[n].connection(handle).is_some_and(|c| c.id() == ConnId(0));
            let app = &self.apps[n];
            // A handshake that failed may be followed by another one.
            let free = app.handle.is_none_or(|_| app.closed.is_some() && !app.established);
            if ours && free {
                self.apps[n] = Application::new(SIDES[n], self.case.parties[n].plan, self.case.start);
                self.apps[n].handle = Some(handle);
            } else {
                self.strangers.push(handle);
            }
        }
    }

    /// The application and its endpoint act until neither has anything left to do.
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
                if burst > BURST {
                    return self.fail(Kind::Livelock, format!("{BURST} packets at once; {}", self.state()));
                }
                self.send(n, packet);
            }
            if !acted && !sent {
                break;
            }
        }
        if self.packets > STORM {
            return self.fail(Kind::Storm, format!("{STORM} packets; {}", self.state()));
        }
        if self.watch.stall.is_some() && self.case.class != Class::Forge {
            return self.fail(Kind::Stall, self.state());
        }
        Ok(())
    }

    /// A host asks what became of each connection; those that ended are forgotten then.
    fn hear_strangers(&mut self) {
        let server = &mut self.ends[1];
        self.strangers.retain(|handle| {
            while server.poll_event(*handle).is_some() {}
            server.connection(*handle).is_some()
        });
    }

    fn with_connection(
        &mut self,
        n: usize,
        act: impl FnOnce(&mut anabranch_engine::connection::Connection, &mut Cx<'_>, &mut Application),
    ) -> Step {
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
        self.reset_early |= matches!(act.call, Call::Reset(..)) && self.confirmed.is_none();
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

    // ---- the way between them ----

    /// A packet leaves a host.
    fn send(&mut self, n: usize, packet: Packet) {
        debug_assert!(packet.segment.options.encoded_len() <= 40);
        if n == 1 && self.token == 0 {
            self.token = token_in(&packet.segment);
        }
        let way = SIDES[n].sends();
        let line = case::line_of(packet.src, packet.dst).filter(|(path, there)| {
            usize::from(*path) < self.case.paths.len() && *there == way
        });
        let Some((path, _)) = line else {
            if let Some(exchange) = &mut self.exchange {
                exchange.leaves(self.now, SIDES[n], &packet, &[], Some("to nobody"));
            }
            return;
        };
        if self.is_dark(path, way) {
            if let Some(exchange) = &mut self.exchange {
                exchange.leaves(self.now, SIDES[n], &packet, &[], Some("the path is dark"));
            }
            return;
        }
        let before = self.middle.done.len();
        let shown = self.exchange.is_some().then(|| packet.clone());
        let (passed, waits) = self.middle.take(path, way, packet);
        if let (Some(exchange), Some(packet)) = (&mut self.exchange, shown) {
            exchange.leaves(self.now, SIDES[n], &packet, &self.middle.done[before..], None);
        }
        if waits {
            self.put(self.now + middle::HOLDS, Event::Release(path, way));
        }
        for middle::Passed { packet, way, later } in passed {
            self.carry(path, way, packet, later);
        }
    }

    fn is_dark(&self, path: u8, way: Direction) -> bool {
        let (dark, now) = (&self.case.paths[usize::from(path)].dark, self.now.since(self.case.start));
        dark.iter().any(|o| o.from <= now && now < o.until && o.way.is_none_or(|w| w == way))
    }

    /// A packet goes its way, `later` than others.
    fn carry(&mut self, path: u8, way: Direction, mut packet: Packet, later: Duration) {
        let spec = &self.case.paths[usize::from(path)];
        let w = usize::from(way == Direction::Down);
        if let Some(nat) = &spec.nat {
            let sent = self.middle.sent(path, Direction::Up);
            let shifts = &mut self.shifts[usize::from(path)];
            if packet.segment.flags.has(Flags::SYN) {
                shifts[w].get_or_insert(nat.isn[w].wrapping_sub(packet.segment.seq.0));
            }
            let shifts = shifts.map(Option::unwrap_or_default);
            if !nat.translate(way, shifts, sent, self.case.address(path, 1), &mut packet) {
                return;
            }
        }
        let free = &mut self.free[usize::from(path)][w];
        *free = (*free).max(self.now) + Duration::from_nanos(packet.len() as u64 * spec.byte_ns[w]);
        let at = *free + spec.delay[w] + later;
        self.put(at, Event::Arrival(usize::from(way == Direction::Up), packet));
    }

    fn flood(&mut self, number: usize, sent: u32) -> Step {
        let Flood { kind, gap, count, .. } = self.case.floods[number];
        if sent + 1 < count {
            self.put(self.now + gap, Event::Flood(number, sent + 1));
        }
        if kind == Flooding::Join && self.token == 0 {
            return Ok(());
        }
        let packet = flood_packet(self.case, kind, number as u8, sent, self.token);
        self.arrive(1, packet)
    }

    // ---- what must hold ----

    fn check_memory(&self, n: usize) -> Step {
        let held = self.held[n].load(Ordering::Relaxed);
        let settings = &self.case.parties[n].settings;
        let connection = self.apps[n].handle.and_then(|h| self.ends[n].connection(h));
        let subflows = connection.map_or(0, |c| c.subflows().count()).max(1) as u64;
        if held > settings.recv_buffer * subflows + SPARE {
            let buffer = settings.recv_buffer;
            let text = format!("{:?} holds {held} bytes on {subflows} subflows, its buffer is {buffer}", SIDES[n]);
            return self.fail(Kind::Memory, text);
        }
        Ok(())
    }

    /// What the application of side `n` got, against what the other has written.
    fn check_bytes(&mut self, n: usize) -> Step {
        let (app, peer) = (&self.apps[n], &self.apps[other(n)]);
        let must = self.case.class.bytes();
        if must == Must::Anything {
            return Ok(());
        }
        let side = SIDES[n];
        let plain = self.watch.fell_back.iter().any(Option::is_some) || self.watch.plain.contains(&true);
        let excused = must == Must::IntactUntilFallback && plain;
        if let Some(at) = app.changed.filter(|_| !excused) {
            return self.fail(Kind::Corrupt, format!("{side:?} got a wrong byte at {at} of {}", app.delivered));
        }
        if app.delivered > peer.written {
            let text = format!("{side:?} got {} bytes, and {} were written", app.delivered, peer.written);
            return self.fail(Kind::Surplus, text);
        }
        let whole = peer.finished && app.delivered == peer.written;
        if app.saw_end && !whole {
            let text = format!(
                "{side:?} saw the end after {} bytes; the peer has written {} of {}, finished: {}",
                app.delivered, peer.written, self.case.parties[other(n)].plan.bytes, peer.finished
            );
            return self.fail(Kind::FalseEnd, text);
        }
        Ok(())
    }

    /// What everybody has, in words.
    fn state(&self) -> String {
        let one = |n: usize| {
            let (app, end) = (&self.apps[n], &self.ends[n]);
            let connection = app.handle.and_then(|h| end.connection(h));
            let subflows = connection.map_or(String::new(), |c| {
                c.subflows().map(|(id, _, state)| format!("{id}:{state:?} ")).collect()
            });
            format!(
                "{:?}: wrote {}/{}{}, got {}{}, unacknowledged {}, {:?}, {}subflows {subflows}",
                SIDES[n],
                app.written,
                self.case.parties[n].plan.bytes,
                if app.finished { " finished" } else { "" },
                app.delivered,
                if app.saw_end { " and the end" } else { "" },
                connection.map_or(0, |c| c.unacknowledged()),
                app.closed.or(self.watch.ended[n]),
                match (self.watch.fell_back[n], self.watch.plain[n]) {
                    (Some(at), _) => format!("fell back at {at}, "),
                    (_, true) => "plain, ".into(),
                    _ => String::new(),
                },
            )
        };
        format!("{}; {}", one(0), one(1))
    }

    fn is_over(&self) -> bool {
        self.apps.iter().all(|app| app.handle.is_none() || app.closed.is_some())
    }

    /// Applications of which nothing is asked any more end.
    fn stop(&mut self) -> Step {
        self.stopped = true;
        for n in 0..2 {
            self.with_connection(n, |connection, cx, _| connection.abort(cx))?;
        }
        Ok(())
    }

    /// Nothing is under way and no timer runs. True if an application that was left alone has done something about it.
    fn wind_up(&mut self) -> Result<bool, Failure> {
        if self.is_over() {
            return Ok(false);
        }
        if self.case.class == Class::Forge && !self.stopped {
            self.stop()?;
            return Ok(true);
        }
        for n in 0..2 {
            let app = &self.apps[n];
            let Some(connection) = app.handle.and_then(|h| self.ends[n].connection(h)) else { continue };
            if app.closed.is_some() {
                continue;
            }
            if let Some(text) = app.overlooked(connection) {
                return self.fail(Kind::Unwoken, text);
            }
            // RFC 9293 §3.5.1: the peer is gone, and its reset was lost; an end with nothing to send cannot know.
            let peer = &self.apps[other(n)];
            let reset = self.case.script.iter().any(|act| act.call.ends_a_lone_path());
            let failed = |why| why != CloseReason::Finished || reset;
            let deserted = peer.closed.is_some_and(failed) || peer.handle.is_none();
            if deserted && connection.unacknowledged() == 0 {
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

    fn judge(&mut self) -> Result<Outcome, Failure> {
        if !self.ends.iter().all(Endpoint::is_empty) && self.next().is_none() {
            let left = self.ends.iter().map(Endpoint::len).collect::<Vec<_>>();
            return self.fail(Kind::Leak, format!("connections left: {left:?}; {}", self.state()));
        }
        if self.case.class.bytes() != Must::Anything {
            self.judge_ends()?;
        }
        Ok(Outcome {
            packets: self.packets,
            delivered: [0, 1].map(|n| self.apps[n].delivered),
            ended: [0, 1].map(|n| self.apps[n].closed),
            fell_back: self.watch.fell_back.map(|at| at.is_some()),
            over: self.now,
            half_open: self.half_open,
        })
    }

    fn judge_ends(&self) -> Step {
        for n in 0..2 {
            let (app, peer) = (&self.apps[n], &self.apps[other(n)]);
            if app.closed == Some(CloseReason::Finished) && peer.delivered < app.written && !peer.aborted {
                let text = format!("{:?} was told Finished, and {}", SIDES[n], self.state());
                return self.fail(Kind::SilentLoss, text);
            }
        }
        let all = (0..2).all(|n| self.apps[n].delivered == self.apps[other(n)].written && self.apps[n].finished);
        let in_order = self.apps.iter().all(|app| app.closed == Some(CloseReason::Finished));
        if self.case.class.must_complete() && !(all && in_order) && !self.is_excused(all) {
            return self.fail(Kind::Error, self.state());
        }
        let wanted = (1u32 << self.case.paths.len()) - 1;
        let multipath = !self.watch.plain[0] && self.watch.fell_back[0].is_none();
        let had_time = self.confirmed.is_some_and(|since| self.now.since(since) > PATIENCE);
        if self.case.class == Class::Floods && multipath && had_time && self.watch.paths[0] & wanted != wanted {
            return self.fail(Kind::ShutOut, format!("paths established: {:#b} of {wanted:#b}", self.watch.paths[0]));
        }
        Ok(())
    }

    /// There was a reason why not everything arrived, or (`all` has) why an end was told of an error.
    fn is_excused(&self, all: bool) -> bool {
        let calls = || self.case.script.iter().map(|act| &act.call);
        let lone = self.watch.plain[0] || self.watch.fell_back.iter().any(Option::is_some);
        // Who only listens behind a translator that has forgotten it is not found again on that path.
        let rebound = (lone || self.confirmed.is_none() || self.case.paths.len() == 1) && self.case.paths.iter().any(|p| p.nat.as_ref().is_some_and(|nat| nat.rebind.is_some()));
        // RFC 9293 §3.6: whoever has everything may be gone while the other's last segment is lost again and again.
        all || rebound || self.reset_early || calls().any(Call::may_end_it) || lone && calls().any(Call::ends_a_lone_path)
    }
}

/// The token that the server's key gives, if the segment tells it.
fn token_in(segment: &Segment) -> u32 {
    let key = segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Capable(c) => c.sender_key,
        _ => None,
    });
    key.map_or(0, crypto::token)
}

fn flood_packet(case: &Case, kind: Flooding, number: u8, sent: u32, token: u32) -> Packet {
    let src = SocketAddr::new(IpAddr::from([172, 16 + number, (sent >> 8) as u8, sent as u8]), 5000);
    let mut segment = Segment {
        src_port: src.port(),
        dst_port: PORT,
        seq: SeqNumber(sent.wrapping_mul(0x9e37_79b9)),
        flags: Flags::SYN,
        window: 0xffff,
        ..Segment::default()
    };
    segment.options.set_mss(1460);
    match kind {
        Flooding::Syn { capable } => {
            if capable {
                segment.options.push_mptcp(MptcpOption::Capable(MpCapable {
                    version: 1,
                    checksum: false,
                    no_join_here: false,
                    hmac_sha256: true,
                    sender_key: None,
                    receiver_key: None,
                    data: None,
                }));
            }
        }
        Flooding::Join => {
            segment.options.push_mptcp(MptcpOption::Join(MpJoin::Syn {
                backup: false,
                address_id: sent as u8,
                token,
                nonce: sent,
            }));
        }
        Flooding::Stray => segment.flags = Flags::ACK,
    }
    let dst = IpAddr::from([10, 0, 0, 2]);
    debug_assert!(CLIENT_PORT != src.port() && case.limit > 0);
    Packet { src: src.ip(), dst, segment }
}
