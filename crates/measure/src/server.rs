//! The server's end of a client's session: it answers messages about runs.

use crate::event_log::{MOST, too_long};
use crate::message::{ClientMessage, LONGEST, MessageReader, RunRequest, ServerMessage, VERSION, framed};
use crate::request;
use crate::setup::control;
use crate::station::{CONTROL, MeasurementStation, RunHost};
use anabranch_carrier::{Addresses, MAX_PATHS};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, connection::Connection};
use anabranch_link::{
    ClientService, ClientStatus, Engine, LinkError, PathState, PathStats, Quota, Reservation, Station, secrets::seed,
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
/// Bytes that a log takes while it grows.
const LOG: u64 = 2 * MOST as u64;
/// Least time from one run to the next; a client that challenges the paths between them takes longer.
const PAUSE: Duration = Duration::from_millis(100);

/// A client's station at the server.
#[derive(Debug)]
pub(crate) struct MeasurementServer {
    addresses: Addresses,
    station: MeasurementStation,
    channel: Option<ControlChannel>,
    /// Runs so far.
    runs: u16,
    /// When the last was requested.
    requested: Option<Instant>,
    /// Memory of all clients.
    memory: Quota,
    /// The part of it that the run has, until its events were sent.
    reservation: Option<Reservation>,
}

/// A connection for messages.
#[derive(Debug)]
struct ControlChannel {
    handle: Handle,
    frames: MessageReader,
    greeted: bool,
    out: VecDeque<Bytes>,
    /// Events of the last run that were not said yet, and the number of all.
    log: Option<(Bytes, u64)>,
    /// Nothing more is read: what is left to say is the last.
    over: bool,
}

impl MeasurementServer {
    /// For a session with these addresses, at a server whose runs take of `memory`.
    pub fn new(addresses: Addresses, memory: Quota) -> Self {
        let mut endpoint = Endpoint::new(CONTROLS);
        endpoint.listen(CONTROL, Box::new(|_| control(Vec::new())));
        let station = MeasurementStation::new(Side::Server, Engine::new(endpoint, seed()));
        Self { addresses, station, channel: None, runs: 0, requested: None, memory, reservation: None }
    }

    /// Accepts connections, reads what came, and writes what waits.
    fn serve(&mut self, now: Instant) {
        while let Some(handle) = self.station.control.endpoint.poll_accept() {
            let (frames, out) = (MessageReader::default(), VecDeque::new());
            if let Some(old) =
                self.channel.replace(ControlChannel { handle, frames, greeted: false, out, log: None, over: false })
            {
                self.with(now, old.handle, |connection, cx| connection.abort(cx));
            }
            (self.station.run, self.reservation) = (None, None);
        }
        let Some(mut channel) = self.channel.take() else { return };
        let open = self.with(now, channel.handle, |connection, cx| {
            while connection.poll_event().is_some() {}
            channel.read(connection, cx);
            !connection.is_closed()
        });
        if open != Some(true) {
            (self.station.run, self.reservation) = (None, None);
            return;
        }
        for _ in 0..ROUNDS {
            self.with(now, channel.handle, |connection, cx| channel.write(connection, cx));
            if !channel.out.is_empty() || !self.speak(now, &mut channel) {
                break;
            }
        }
        self.with(now, channel.handle, |connection, cx| channel.write(connection, cx));
        if self.station.run.is_none() && channel.log.is_none() {
            self.reservation = None;
        }
        self.channel = Some(channel);
    }

    /// Says the next thing: a part of the events, or the answer to a message. False if there is none.
    fn speak(&mut self, now: Instant, channel: &mut ControlChannel) -> bool {
        if channel.say_events() {
            return true;
        }
        if channel.over {
            return false;
        }
        match channel.frames.next_message::<ClientMessage>() {
            Ok(Some(ask)) => self.answer(now, channel, ask),
            Ok(None) => return false,
            Err(error) => channel.refuse(error.to_string()),
        }
        true
    }

    fn with<T>(
        &mut self,
        now: Instant,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        self.station.control.with(now, &mut (), |endpoint, cx| Some(act(endpoint.connection_mut(handle)?, cx)))
    }

    fn answer(&mut self, now: Instant, channel: &mut ControlChannel, ask: ClientMessage) {
        match ask {
            ClientMessage::Hello { version: VERSION } => {
                channel.greeted = true;
                channel.say(&ServerMessage::Welcome { program: env!("CARGO_PKG_VERSION").to_owned() });
            }
            ClientMessage::Hello { version } => {
                let program = env!("CARGO_PKG_VERSION");
                channel.refuse(format!(
                    "the server (anabranch {program}) speaks version {VERSION} of the format, the client version {version}"
                ));
            }
            _ if !channel.greeted => channel.refuse("the first message is a greeting".to_owned()),
            ClientMessage::Run(ask) => {
                self.station.run = None;
                channel.say(&match self.begin(now, &ask) {
                    Ok(port) => ServerMessage::Ready { port },
                    Err(why) => ServerMessage::Refused { why },
                });
            }
            ClientMessage::Time => channel.say(&match &self.station.run {
                Some(run) => ServerMessage::Time(run.time(now).as_nanos()),
                None => ServerMessage::Refused { why: "there is no run".to_owned() },
            }),
            ClientMessage::End => self.end(channel),
        }
    }

    /// Gets ready for a run: its port.
    fn begin(&mut self, now: Instant, ask: &RunRequest) -> Result<u16, String> {
        if self.requested.is_some_and(|at| now.since(at) < PAUSE) {
            return Err("one run follows another at once".to_owned());
        }
        self.requested = Some(now);
        let job = request::job(ask)?;
        self.reservation = None;
        let need = request::buffers(&job.scenario) + LOG;
        self.reservation =
            Some(self.memory.take(need).ok_or("the runs of other clients need the server's memory: try again")?);
        self.runs = (self.runs + 1) % PORTS;
        let port = PORT + self.runs;
        let run = RunHost::new(&job, Side::Server, self.addresses, port, now).map_err(|error| error.to_string())?;
        self.station.run = Some(run);
        Ok(port)
    }

    fn end(&mut self, channel: &mut ControlChannel) {
        let Some(run) = self.station.run.take() else {
            return channel.say(&ServerMessage::Refused { why: "there is no run".to_owned() });
        };
        let fault = run.fault();
        match (fault, run.finish().finish()) {
            (Some(fault), _) => {
                channel.say(&ServerMessage::Refused { why: format!("the server's application got a {fault}") })
            }
            (None, None) => {
                channel.say(&ServerMessage::Refused { why: too_long("the server") });
            }
            (None, Some((bytes, events))) => {
                channel.log = Some((bytes.into(), events));
                channel.say_events();
            }
        }
    }
}

impl ControlChannel {
    fn say(&mut self, reply: &ServerMessage) {
        match framed(reply) {
            Ok(frame) => self.out.push_back(frame.into()),
            Err(_) => self.over = true,
        }
    }

    /// Says the next part of a run's events, or their number behind them. False if there are none.
    fn say_events(&mut self) -> bool {
        let Some((mut bytes, events)) = self.log.take() else { return false };
        if bytes.is_empty() {
            self.say(&ServerMessage::Done { events });
        } else {
            self.say(&ServerMessage::Events(bytes.split_to(PIECE.min(bytes.len())).to_vec()));
            self.log = Some((bytes, events));
        }
        true
    }

    /// The last message.
    fn refuse(&mut self, why: String) {
        self.say(&ServerMessage::Refused { why });
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
        if self.over && self.out.is_empty() && self.log.is_none() {
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
    let mut frames = MessageReader::default();
    frames.push(bytes);
    let (mut messages, mut runs) = (0, 0);
    while let Some(ask) = frames.next_message::<ClientMessage>()? {
        messages += 1;
        runs += usize::from(matches!(ask, ClientMessage::Run(ask) if request::job(&ask).is_ok()));
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

impl ClientService for MeasurementServer {
    fn takes(&self, port: u16) -> bool {
        port == CONTROL || (PORT..PORT + PORTS).contains(&port)
    }

    fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus {
        let run = self.station.run.as_ref();
        let stats: Vec<((u32, u8), PathStats)> =
            run.map(|run| run.stats().paths.iter().map(|(key, path)| (*key, *path)).collect()).unwrap_or_default();
        let total: u64 = stats.iter().map(|(_, path)| path.sent_bytes).sum();
        let state = |id: PathId| {
            let own = || stats.iter().filter(move |((_, path), _)| *path == id.0).map(|(_, path)| path);
            let sum = |of: fn(&PathStats) -> u64| own().map(of).sum::<u64>();
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
        let mut connections: Vec<u32> = stats.iter().map(|((connection, _), _)| *connection).collect();
        connections.dedup();
        ClientStatus {
            name: name.to_owned(),
            scheduler: run.map(|run| run.scheduler().to_owned()),
            connections: connections.len(),
            paths: (0..MAX_PATHS as u8).map(PathId).filter_map(state).collect(),
        }
    }
}

impl Station for MeasurementServer {
    fn receive(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &Packet) {
        self.station.receive(now, recorder, packet);
        self.serve(now);
    }

    fn transmit_into(&mut self, now: Instant, recorder: &mut dyn Recorder, packet: &mut Packet) -> bool {
        self.station.transmit_into(now, recorder, packet)
    }

    fn handle_timeout(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        self.station.handle_timeout(now, recorder);
        self.serve(now);
    }

    fn poll_timeout(&mut self) -> Instant {
        self.station.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_link::{ClientLink, secrets};

    fn server() -> MeasurementServer {
        let server = secrets::new_key().key.public();
        let link = ClientLink::new(Instant::ZERO, secrets::new_key(), server, ([127, 0, 0, 1], 1).into());
        MeasurementServer::new(link.addresses(), Quota::new(LOG + (64 << 20)))
    }

    proptest::proptest! {
        /// Any bytes, and any scenario of a run, are read or refused; they never make a panic.
        #[test]
        fn any_bytes_and_any_scenario_are_read(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), text in ".{0,80}") {
            let _ = read_messages(&bytes);
            let run = RunRequest { scenario: text.clone(), scheduler: text.clone(), congestion: text, ..RunRequest::default() };
            let (messages, runs) = read_messages(&framed(&ClientMessage::Run(run)).unwrap()).unwrap();
            proptest::prop_assert_eq!((messages, runs), (1, 0), "none of these is a scenario");
        }
    }

    #[test]
    fn runs_are_refused_that_follow_at_once() {
        let mut server = server();
        let ask = RunRequest::default();
        let mut begin = |ms| server.begin(Instant::from_millis(ms), &ask).unwrap_err();
        assert!(begin(10).contains("the client's scenario"), "an empty one");
        assert!(begin(100).contains("at once"));
        assert!(begin(110).contains("the client's scenario"));
    }

    #[test]
    fn runs_take_memory_of_all_clients() {
        let mut server = server();
        let scenario = |buffer| {
            let path = "[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
            format!(
                "duration = \"1s\"\n[connection]\nsend_buffer = \"{buffer}MiB\"\nrecv_buffer = \"1MiB\"\n{path}[[traffic]]\nkind = \"bulk\"\n"
            )
        };
        let mut begin = |ms, buffer| {
            let ask = RunRequest {
                scenario: scenario(buffer),
                scheduler: "minrtt".into(),
                congestion: "cubic".into(),
                ..RunRequest::default()
            };
            server.begin(Instant::from_millis(ms), &ask)
        };
        assert!(begin(100, 60).is_ok());
        assert!(begin(200, 60).is_ok(), "a run gives back what the one before had");
        assert!(begin(300, 65).unwrap_err().contains("memory"));
    }

    #[test]
    fn events_are_said_in_parts_and_their_number_last() {
        let mut server = server();
        let setup = control(crate::setup::paths(server.addresses, &[PathId(0)])).unwrap();
        let station = &mut server.station;
        let handle = station.control.with(Instant::ZERO, &mut (), |endpoint, cx| endpoint.connect(cx, setup));
        let (frames, out) = (MessageReader::default(), VecDeque::new());
        let log = Some((Bytes::from(vec![7; PIECE + 1]), 9));
        let mut channel = ControlChannel { handle, frames, greeted: true, out, log, over: false };
        while channel.say_events() {}
        let mut frames = MessageReader::default();
        channel.out.iter().for_each(|frame| frames.push(frame));
        let lens: Vec<Option<usize>> = std::iter::from_fn(|| frames.next_message::<ServerMessage>().unwrap())
            .map(|reply| match reply {
                ServerMessage::Events(bytes) => Some(bytes.len()),
                reply => {
                    assert_eq!(reply, ServerMessage::Done { events: 9 });
                    None
                }
            })
            .collect();
        assert_eq!(lens, [Some(PIECE), Some(1), None]);
    }
}
