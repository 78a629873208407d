//! The server's end of a client's session: it answers messages about runs.

use crate::message::{Ask, Frames, LONGEST, Reply, RunAsk, VERSION, framed};
use crate::order;
use crate::running::{CONTROL, Ends, Running};
use crate::setup::control;
use crate::tape::{MOST, too_long};
use anabranch_carrier::{Addresses, MAX_PATHS};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, connection::Connection};
use anabranch_link::{
    ClientService, ClientStatus, Engine, LinkError, Memory, PathState, PathTally, Share, Station, secrets::seed,
};
use anabranch_sim::PORT;
use anabranch_trace::Recorder;
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Bytes of events in one message.
const PIECE: usize = LONGEST / 2;
/// Connections for messages that a client may have: a second one takes the place of the first.
const CONTROLS: usize = 8;

/// Messages and parts of events that are dealt with at once. More follow with the acknowledgments of these.
const ROUNDS: usize = 16;
/// Ports of runs, in turn.
const PORTS: u16 = 10_000;
/// Bytes that a tape takes while it grows.
const TAPE: u64 = 2 * MOST as u64;
/// Least time from one run to the next; a client that challenges the paths between them takes longer.
const PAUSE: Duration = Duration::from_millis(100);

/// A client's station at the server.
#[derive(Debug)]
pub(crate) struct Desk {
    addresses: Addresses,
    ends: Ends,
    talk: Option<Talk>,
    /// Runs so far.
    runs: u16,
    /// When the last was requested.
    requested: Option<Instant>,
    /// Memory of all clients.
    memory: Memory,
    /// The part of it that the run has, until its events were sent.
    share: Option<Share>,
}

/// A connection for messages.
#[derive(Debug)]
struct Talk {
    handle: Handle,
    frames: Frames,
    greeted: bool,
    out: VecDeque<Bytes>,
    /// Events of the last run that were not said yet, and the number of all.
    tape: Option<(Bytes, u64)>,
    /// Nothing more is read: what is left to say is the last.
    over: bool,
}

impl Desk {
    /// For a session with these addresses, at a server whose runs take of `memory`.
    pub fn new(addresses: Addresses, memory: Memory) -> Self {
        let mut endpoint = Endpoint::new(CONTROLS);
        endpoint.listen(CONTROL, Box::new(|_| control(Vec::new())));
        let ends = Ends::new(Side::Server, Engine::new(endpoint, seed()));
        Self { addresses, ends, talk: None, runs: 0, requested: None, memory, share: None }
    }

    /// Accepts connections, reads what came, and writes what waits.
    fn serve(&mut self, now: Instant) {
        while let Some(handle) = self.ends.control.endpoint.poll_accept() {
            let (frames, out) = (Frames::default(), VecDeque::new());
            if let Some(old) = self.talk.replace(Talk { handle, frames, greeted: false, out, tape: None, over: false })
            {
                self.with(now, old.handle, |connection, cx| connection.abort(cx));
            }
            (self.ends.run, self.share) = (None, None);
        }
        let Some(mut talk) = self.talk.take() else { return };
        let open = self.with(now, talk.handle, |connection, cx| {
            while connection.poll_event().is_some() {}
            talk.read(connection, cx);
            !connection.is_closed()
        });
        if open != Some(true) {
            (self.ends.run, self.share) = (None, None);
            return;
        }
        for _ in 0..ROUNDS {
            self.with(now, talk.handle, |connection, cx| talk.write(connection, cx));
            if !talk.out.is_empty() || !self.speak(now, &mut talk) {
                break;
            }
        }
        self.with(now, talk.handle, |connection, cx| talk.write(connection, cx));
        if self.ends.run.is_none() && talk.tape.is_none() {
            self.share = None;
        }
        self.talk = Some(talk);
    }

    /// Says the next thing: a part of the events, or the answer to a message. False if there is none.
    fn speak(&mut self, now: Instant, talk: &mut Talk) -> bool {
        if talk.say_events() {
            return true;
        }
        if talk.over {
            return false;
        }
        match talk.frames.next_message::<Ask>() {
            Ok(Some(ask)) => self.answer(now, talk, ask),
            Ok(None) => return false,
            Err(error) => talk.refuse(error.to_string()),
        }
        true
    }

    fn with<T>(
        &mut self,
        now: Instant,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        self.ends.control.with(now, &mut (), |endpoint, cx| Some(act(endpoint.connection_mut(handle)?, cx)))
    }

    fn answer(&mut self, now: Instant, talk: &mut Talk, ask: Ask) {
        match ask {
            Ask::Hello { version: VERSION } => {
                talk.greeted = true;
                talk.say(&Reply::Welcome { program: env!("CARGO_PKG_VERSION").to_owned() });
            }
            Ask::Hello { version } => {
                let program = env!("CARGO_PKG_VERSION");
                talk.refuse(format!(
                    "the server (anabranch {program}) speaks version {VERSION} of the format, the client version {version}"
                ));
            }
            _ if !talk.greeted => talk.refuse("the first message is a greeting".to_owned()),
            Ask::Run(ask) => {
                self.ends.run = None;
                talk.say(&match self.begin(now, &ask) {
                    Ok(port) => Reply::Ready { port },
                    Err(why) => Reply::Refused { why },
                });
            }
            Ask::Time => talk.say(&match &self.ends.run {
                Some(run) => Reply::Time(run.time(now).as_nanos()),
                None => Reply::Refused { why: "there is no run".to_owned() },
            }),
            Ask::End => self.end(talk),
        }
    }

    /// Gets ready for a run: its port.
    fn begin(&mut self, now: Instant, ask: &RunAsk) -> Result<u16, String> {
        if self.requested.is_some_and(|at| now.since(at) < PAUSE) {
            return Err("one run follows another at once".to_owned());
        }
        self.requested = Some(now);
        let job = order::job(ask)?;
        self.share = None;
        let need = order::buffers(&job.scenario) + TAPE;
        self.share =
            Some(self.memory.take(need).ok_or("the runs of other clients need the server's memory: try again")?);
        self.runs = (self.runs + 1) % PORTS;
        let port = PORT + self.runs;
        let run = Running::new(&job, Side::Server, self.addresses, port, now).map_err(|error| error.to_string())?;
        self.ends.run = Some(run);
        Ok(port)
    }

    fn end(&mut self, talk: &mut Talk) {
        let Some(run) = self.ends.run.take() else {
            return talk.say(&Reply::Refused { why: "there is no run".to_owned() });
        };
        let fault = run.fault();
        match (fault, run.finish().finish()) {
            (Some(fault), _) => talk.say(&Reply::Refused { why: format!("the server's application got a {fault}") }),
            (None, None) => {
                talk.say(&Reply::Refused { why: too_long("the server") });
            }
            (None, Some((bytes, events))) => {
                talk.tape = Some((bytes.into(), events));
                talk.say_events();
            }
        }
    }
}

impl Talk {
    fn say(&mut self, reply: &Reply) {
        match framed(reply) {
            Ok(frame) => self.out.push_back(frame.into()),
            Err(_) => self.over = true,
        }
    }

    /// Says the next part of a run's events, or their number behind them. False if there are none.
    fn say_events(&mut self) -> bool {
        let Some((mut bytes, events)) = self.tape.take() else { return false };
        if bytes.is_empty() {
            self.say(&Reply::Done { events });
        } else {
            self.say(&Reply::Events(bytes.split_to(PIECE.min(bytes.len())).to_vec()));
            self.tape = Some((bytes, events));
        }
        true
    }

    /// The last message.
    fn refuse(&mut self, why: String) {
        self.say(&Reply::Refused { why });
        self.over = true;
    }

    /// Reads no more than a message is long: the rest waits in the connection's window.
    fn read(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) {
        while !self.over && self.frames.buffered() <= LONGEST {
            let Some(bytes) = connection.read(cx) else { break };
            self.frames.push(&bytes);
        }
        if connection.read_finished() {
            self.over = true;
        }
    }

    fn write(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) {
        write(&mut self.out, connection, cx);
        if self.over && self.out.is_empty() && self.tape.is_none() {
            connection.finish(cx);
        }
    }
}

/// Reads the bytes of a client as a server does, and makes no run: how many messages they are, and how many of them are runs that would be
/// made. For fuzzing, and for tests of other clients.
///
/// # Errors
/// The bytes do not keep to the format.
pub fn read_messages(bytes: &[u8]) -> Result<(usize, usize), LinkError> {
    let mut frames = Frames::default();
    frames.push(bytes);
    let (mut messages, mut runs) = (0, 0);
    while let Some(ask) = frames.next_message::<Ask>()? {
        messages += 1;
        runs += usize::from(matches!(ask, Ask::Run(ask) if order::job(&ask).is_ok()));
    }
    Ok((messages, runs))
}

/// Writes as much as there is room for.
pub(super) fn write(out: &mut VecDeque<Bytes>, connection: &mut Connection, cx: &mut Cx<'_>) {
    while let Some(next) = out.front_mut() {
        let room = connection.writable().min(next.len() as u64) as usize;
        let taken = if room > 0 { connection.write(cx, next.slice(..room)) } else { 0 };
        let _ = next.split_to(taken);
        if !next.is_empty() {
            return;
        }
        out.pop_front();
    }
}

impl ClientService for Desk {
    fn takes(&self, port: u16) -> bool {
        port == CONTROL || (PORT..PORT + PORTS).contains(&port)
    }

    fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus {
        let run = self.ends.run.as_ref();
        let tallies: Vec<((u32, u8), PathTally)> =
            run.map(|run| run.tally().paths.iter().map(|(key, path)| (*key, *path)).collect()).unwrap_or_default();
        let total: u64 = tallies.iter().map(|(_, path)| path.sent_bytes).sum();
        let state = |id: PathId| {
            let own = || tallies.iter().filter(move |((_, path), _)| *path == id.0).map(|(_, path)| path);
            let sum = |of: fn(&PathTally) -> u64| own().map(of).sum::<u64>();
            let time = run.map_or(Instant::ZERO, |run| run.time(now));
            let srtt = own().map(|path| path.srtt).filter(|srtt| !srtt.is_zero()).max();
            Some(PathState {
                path: id.0,
                address: address(id)?.to_string(),
                srtt_s: srtt.map(Duration::as_secs_f64),
                rate_bps: own().map(|path| path.rate_bps(time)).sum(),
                sent_bytes: sum(|path| path.sent_bytes),
                share: sum(|path| path.sent_bytes) as f64 / total.max(1) as f64,
                loss_ratio: sum(|path| path.retransmitted) as f64 / sum(|path| path.packets).max(1) as f64,
                cwnd_packets: sum(|path| path.cwnd.into()),
                in_flight_packets: sum(|path| path.in_flight.into()),
                ..PathState::default()
            })
        };
        let mut connections: Vec<u32> = tallies.iter().map(|((connection, _), _)| *connection).collect();
        connections.dedup();
        ClientStatus {
            name: name.to_owned(),
            scheduler: run.map(|run| run.scheduler().to_owned()),
            connections: connections.len(),
            paths: (0..MAX_PATHS as u8).map(PathId).filter_map(state).collect(),
        }
    }
}

impl Station for Desk {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        self.ends.receive(now, recorder, packet);
        self.serve(now);
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        self.ends.transmit_into(now, recorder, packet)
    }

    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.ends.handle_timeout(now, recorder);
        self.serve(now);
    }

    fn poll_timeout(&mut self) -> Instant {
        self.ends.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_link::{ClientLink, secrets};

    fn desk() -> Desk {
        let server = secrets::new_key().key.public();
        let link = ClientLink::new(Instant::ZERO, secrets::new_key(), server, ([127, 0, 0, 1], 1).into());
        Desk::new(link.addresses(), Memory::new(TAPE + (64 << 20)))
    }

    proptest::proptest! {
        /// Any bytes, and any scenario of a run, are read or refused; they never make a panic.
        #[test]
        fn any_bytes_and_any_scenario_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), text in ".{0,80}") {
            let _ = read_messages(&bytes);
            let run = RunAsk { scenario: text.clone(), scheduler: text.clone(), congestion: text, ..RunAsk::default() };
            let (messages, runs) = read_messages(&framed(&Ask::Run(run)).unwrap()).unwrap();
            proptest::prop_assert_eq!((messages, runs), (1, 0), "none of these is a scenario");
        }
    }

    #[test]
    fn runs_are_refused_that_follow_at_once() {
        let mut desk = desk();
        let ask = RunAsk::default();
        let mut begin = |ms| desk.begin(Instant::from_millis(ms), &ask).unwrap_err();
        assert!(begin(10).contains("the client's scenario"), "an empty one");
        assert!(begin(100).contains("at once"));
        assert!(begin(110).contains("the client's scenario"));
    }

    #[test]
    fn runs_take_memory_of_all_clients() {
        let mut desk = desk();
        let scenario = |buffer| {
            let path = "[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
            format!(
                "duration = \"1s\"\n[connection]\nsend_buffer = \"{buffer}MiB\"\nrecv_buffer = \"1MiB\"\n{path}[[traffic]]\nkind = \"bulk\"\n"
            )
        };
        let mut begin = |ms, buffer| {
            let ask = RunAsk {
                scenario: scenario(buffer),
                scheduler: "minrtt".into(),
                congestion: "cubic".into(),
                ..RunAsk::default()
            };
            desk.begin(Instant::from_millis(ms), &ask)
        };
        assert!(begin(100, 60).is_ok());
        assert!(begin(200, 60).is_ok(), "a run gives back what the one before had");
        assert!(begin(300, 65).unwrap_err().contains("memory"));
    }

    #[test]
    fn events_are_said_in_parts_and_their_number_last() {
        let mut desk = desk();
        let setup = control(crate::setup::paths(desk.addresses, &[PathId(0)])).unwrap();
        let ends = &mut desk.ends;
        let handle = ends.control.with(Instant::ZERO, &mut (), |endpoint, cx| endpoint.connect(cx, setup));
        let (frames, out) = (Frames::default(), VecDeque::new());
        let tape = Some((Bytes::from(vec![7; PIECE + 1]), 9));
        let mut talk = Talk { handle, frames, greeted: true, out, tape, over: false };
        while talk.say_events() {}
        let mut frames = Frames::default();
        talk.out.iter().for_each(|frame| frames.push(frame));
        let lens: Vec<Option<usize>> = std::iter::from_fn(|| frames.next_message::<Reply>().unwrap())
            .map(|reply| match reply {
                Reply::Events(bytes) => Some(bytes.len()),
                reply => {
                    assert_eq!(reply, Reply::Done { events: 9 });
                    None
                }
            })
            .collect();
        assert_eq!(lens, [Some(PIECE), Some(1), None]);
    }
}
