//! One endpoint with one connection, and a peer whose segments the test writes by hand.

use super::{Log, SERVER_PORT, client_paths, client_tuple, mirror, setup};
use anabranch_engine::connection::{Connection, ConnectionEvent, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple, Settings, State};
use anabranch_units::{DataSeq, Instant, PathId, Rng, SeqNumber};
use anabranch_wire::{DataAck, Dss, Flags, Mapping, MpCapable, MpJoin, MptcpOption, Packet, Segment, crypto};
use bytes::Bytes;
use std::collections::VecDeque;

/// The peer's key in every hand-written MPTCP exchange.
pub const PEER_KEY: u64 = 0x0123_4567_89ab_cdef;
/// The peer's initial sequence number on path 0; later paths add 1000 each. Close to where numbers wrap.
pub const PEER_ISN: u32 = u32::MAX - 500;

/// Chains that finish a segment.
pub trait Build: Sized {
    fn flags(self, flags: Flags) -> Self;
    fn window(self, window: u16) -> Self;
    fn data(self, bytes: &[u8]) -> Self;
    fn with(self, option: MptcpOption) -> Self;
    fn dss(self, dss: Dss) -> Self;
}

impl Build for Segment {
    fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }
    fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }
    fn data(mut self, bytes: &[u8]) -> Self {
        self.payload = Bytes::copy_from_slice(bytes);
        self
    }
    fn with(mut self, option: MptcpOption) -> Self {
        assert!(self.options.push_mptcp(option), "no room for {option:?}");
        self
    }
    fn dss(mut self, dss: Dss) -> Self {
        assert!(self.options.set_dss(dss));
        self
    }
}

/// The endpoint under test, and all that its peer must remember.
pub struct Solo {
    pub endpoint: Endpoint,
    pub handle: Option<Handle>,
    pub now: Instant,
    pub log: Log,
    pub events: Vec<ConnectionEvent>,
    pub sent: VecDeque<(Instant, Packet)>,
    /// The engine's key and initial numbers by path, once seen.
    pub key: u64,
    pub isn: [u32; 64],
    rng: Rng,
    client: bool,
}

impl Solo {
    /// A client that has just begun to connect.
    pub fn client(settings: Settings) -> Self {
        Self::client_with(setup(settings, client_paths(1)))
    }

    pub fn client_with(setup: Setup) -> Self {
        let mut h = Self::new(true);
        let mut cx = Cx { now: h.now, recorder: &mut h.log, rng: &mut h.rng };
        h.handle = Some(h.endpoint.connect(&mut cx, setup));
        h.poll();
        h
    }

    /// A server that listens.
    pub fn server(settings: Settings) -> Self {
        Self::server_with(move || setup(settings.clone(), Vec::new()))
    }

    pub fn server_with(make: impl Fn() -> Setup + Send + 'static) -> Self {
        let mut h = Self::new(false);
        h.endpoint.listen(SERVER_PORT, Box::new(move |_| Some(make())));
        h
    }

    fn new(client: bool) -> Self {
        Self {
            endpoint: Endpoint::default(),
            handle: None,
            now: Instant::from_millis(0),
            log: Log::default(),
            events: Vec::new(),
            sent: VecDeque::new(),
            key: 0,
            isn: [0; 64],
            rng: Rng::stream(7, "solo"),
            client,
        }
    }

    /// The peer's tuple on a path.
    fn tuple(&self, path: u8) -> FourTuple {
        let client = client_tuple(path);
        if self.client { mirror(client) } else { client }
    }

    pub fn peer_isn(path: u8) -> u32 {
        PEER_ISN.wrapping_add(1000 * u32::from(path))
    }

    // ---- time ----

    /// Lets time pass until `ms`, firing timers when they are due.
    pub fn at(&mut self, ms: u64) -> &mut Self {
        let until = Instant::from_millis(ms);
        let mut spins = 0;
        while let Some(due) = self.endpoint.poll_timeout().filter(|due| *due <= until) {
            spins += u32::from(due <= self.now);
            assert!(spins < 10_000, "a timer that is never served");
            self.now = self.now.max(due);
            let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
            self.endpoint.handle_timeout(&mut cx);
            self.poll();
        }
        self.now = until;
        self.poll();
        self
    }

    fn poll(&mut self) {
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        while let Some((path, packet)) = self.endpoint.poll_transmit(&mut cx) {
            let segment = &packet.segment;
            if segment.flags.has(Flags::SYN) {
                // That of a connection to be has no path yet.
                self.isn[path.unwrap_or_default().index()] = segment.seq.0;
            }
            for option in segment.options.mptcp() {
                if let MptcpOption::Capable(MpCapable { sender_key: Some(key), .. }) = option {
                    self.key = *key;
                }
            }
            self.sent.push_back((self.now, packet));
            assert!(self.sent.len() < 100_000, "it never stops sending");
        }
        let Some(handle) = self.handle else { return };
        while self.endpoint.has_news(handle) {
            self.events.push(self.endpoint.poll_event(handle).expect("there is news"));
        }
        assert_eq!(self.endpoint.poll_event(handle), None, "an event that is no news");
    }

    // ---- the peer ----

    /// An acknowledgment from the peer on path 0: numbers as offsets from the initial ones.
    pub fn seg(&self, seq: u64, ack: u64) -> Segment {
        self.seg_on(0, seq, ack)
    }

    pub fn seg_on(&self, path: u8, seq: u64, ack: u64) -> Segment {
        let tuple = self.tuple(path);
        Segment {
            src_port: tuple.local.port(),
            dst_port: tuple.remote.port(),
            seq: SeqNumber(Self::peer_isn(path)).at(seq),
            ack: SeqNumber(self.isn[usize::from(path)]).at(ack),
            flags: Flags::ACK,
            window: 0xffff,
            ..Segment::default()
        }
    }

    /// A SYN from the peer with MSS 1000 + options, SACK, and window scaling by `shift`.
    pub fn syn(&self, path: u8) -> Segment {
        let mut syn = self.seg_on(path, 0, 0).flags(Flags::SYN);
        syn.ack = SeqNumber(0);
        syn.options.set_mss(1460);
        syn.options.set_sack_permitted();
        syn
    }

    pub fn syn_ack(&self, path: u8) -> Segment {
        Segment { ack: SeqNumber(self.isn[usize::from(path)]).at(1), flags: Flags::SYN | Flags::ACK, ..self.syn(path) }
    }

    pub fn send(&mut self, segment: Segment) -> &mut Self {
        self.send_on(0, segment)
    }

    pub fn send_on(&mut self, path: u8, segment: Segment) -> &mut Self {
        let tuple = self.tuple(path);
        let packet = Packet { src: tuple.local.ip(), dst: tuple.remote.ip(), segment };
        self.send_packet(&packet)
    }

    pub fn send_packet(&mut self, packet: &Packet) -> &mut Self {
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        self.endpoint.handle_packet(&mut cx, packet);
        if let Some(handle) = self.endpoint.poll_accept() {
            self.handle = Some(handle);
        }
        self.poll();
        self
    }

    /// The application answers `segment` with `bytes` before anything else happens.
    pub fn answered(&mut self, segment: Segment, bytes: &[u8]) -> &mut Self {
        self.answered_on(0, segment, bytes)
    }

    /// [`Self::answered`] where `segment` comes on `path`.
    pub fn answered_on(&mut self, path: u8, segment: Segment, bytes: &[u8]) -> &mut Self {
        let tuple = self.tuple(path);
        let packet = Packet { src: tuple.local.ip(), dst: tuple.remote.ip(), segment };
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        self.endpoint.handle_packet(&mut cx, &packet);
        self.write(bytes)
    }

    // ---- segments of the engine ----

    /// The next segment that the engine sent.
    pub fn recv(&mut self) -> Segment {
        self.sent.pop_front().expect("a segment").1.segment
    }

    /// The next segment's numbers as offsets, on path 0.
    pub fn recv_numbers(&mut self) -> (u64, u64, Segment) {
        let s = self.recv();
        let (seq, ack) = self.numbers(0, &s);
        (seq, ack, s)
    }

    pub fn numbers(&self, path: u8, s: &Segment) -> (u64, u64) {
        let seq = s.seq.offset_from(SeqNumber(self.isn[usize::from(path)]), 0).expect("after the SYN");
        let ack = s.ack.offset_from(SeqNumber(Self::peer_isn(path)), 0).unwrap_or(0);
        (seq, ack)
    }

    /// Nothing was sent.
    pub fn quiet(&mut self) -> &mut Self {
        assert!(self.sent.is_empty(), "unexpected: {:?}", self.sent);
        self
    }

    pub fn clear(&mut self) -> &mut Self {
        self.sent.clear();
        self
    }

    // ---- the application ----

    pub fn connection(&self) -> &Connection {
        self.endpoint.connection(self.handle.expect("accepted")).expect("it exists")
    }

    pub fn is_gone(&self) -> bool {
        self.handle.is_none_or(|h| self.endpoint.connection(h).is_none())
    }

    pub fn state(&self) -> State {
        self.connection().subflows().next().map_or(State::Closed, |(_, _, state)| state)
    }

    pub fn state_of(&self, path: u8) -> State {
        let found = self.connection().subflows().find(|(id, ..)| *id == PathId(path));
        found.map_or(State::Closed, |(_, _, state)| state)
    }

    pub fn app<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx { now: self.now, recorder: &mut self.log, rng: &mut self.rng };
        let connection = self.endpoint.connection_mut(self.handle.expect("accepted")).expect("it exists");
        let out = act(connection, &mut cx);
        self.poll();
        out
    }

    pub fn write(&mut self, bytes: &[u8]) -> &mut Self {
        let bytes = Bytes::copy_from_slice(bytes);
        let len = bytes.len();
        let taken = self.app(|c, cx| c.write(cx, bytes));
        assert_eq!(taken, len);
        self
    }

    pub fn finish(&mut self) -> &mut Self {
        self.app(|c, cx| c.finish(cx));
        self
    }

    pub fn read(&mut self) -> Vec<u8> {
        self.app(|c, cx| {
            let mut all = Vec::new();
            while let Some(bytes) = c.read(cx) {
                all.extend_from_slice(&bytes);
            }
            all
        })
    }

    // ---- MPTCP ----

    pub fn capable(sender: Option<u64>, receiver: Option<u64>) -> MptcpOption {
        MptcpOption::Capable(MpCapable { sender_key: sender, receiver_key: receiver, ..MpCapable::OFFER })
    }

    /// The peer's data number at `offset`.
    pub fn peer_number(offset: u64) -> u64 {
        crypto::idsn(PEER_KEY).at(offset + 1).0
    }

    /// Our data number at `offset`.
    pub fn our_number(&self, offset: u64) -> u64 {
        crypto::idsn(self.key).at(offset + 1).0
    }

    /// The offset in our data of a number.
    pub fn our_offset(&self, number: u64) -> u64 {
        DataSeq(number).offset_from(crypto::idsn(self.key).at(1), 0).expect("after the first")
    }

    /// A DSS with a data acknowledgment of our `offset`.
    pub fn data_ack(&self, offset: u64) -> Dss {
        Dss { ack: Some(DataAck::Long(self.our_number(offset))), mapping: None, data_fin: false }
    }

    /// A DSS that acknowledges our `ack` and maps `len` bytes at subflow offset `sub` to the peer's `data`.
    pub fn mapped(&self, ack: u64, data: u64, sub: u64, len: u16) -> Dss {
        let mapping =
            Mapping { data_seq: Self::peer_number(data), wide: true, subflow_seq: sub as u32, len, checksum: None };
        Dss { mapping: Some(mapping), ..self.data_ack(ack) }
    }

    /// A DSS with a DATA_FIN without payload at the peer's `data`.
    pub fn data_fin(&self, ack: u64, data: u64) -> Dss {
        Dss { data_fin: true, ..self.mapped(ack, data, 0, 1) }
    }

    /// A server with an MPTCP connection whose handshake is complete.
    pub fn open_server(settings: Settings) -> Self {
        Self::server(settings).opened()
    }

    /// Completes a server's handshake; its peer sends a first DSS.
    pub fn opened(self) -> Self {
        let mut h = self.shaken();
        h.send(h.seg(1, 1).dss(h.data_ack(0)));
        h
    }

    /// Completes a server's handshake, and no more.
    pub fn shaken(mut self) -> Self {
        self.send(self.syn(0).with(Self::capable(None, None)));
        self.clear();
        self.send(self.seg(1, 1).with(Self::capable(Some(PEER_KEY), Some(self.key))));
        assert!(self.connection().is_multipath());
        self
    }

    /// A client whose handshake is complete and whose peer has shown that it speaks MPTCP.
    pub fn open_client(setup: Setup) -> Self {
        let mut h = Self::client_with(setup);
        h.send(h.syn_ack(0).with(Self::capable(Some(PEER_KEY), None)));
        h.clear();
        h.send(h.seg(1, 1).dss(h.data_ack(0)));
        h
    }

    /// A plain TCP server with a complete handshake.
    pub fn tcp_server(settings: Settings) -> Self {
        let mut h = Self::server(settings);
        h.send(h.syn(0));
        h.clear();
        h.send(h.seg(1, 1));
        h
    }

    /// A plain TCP client with a complete handshake.
    pub fn tcp_client(settings: Settings) -> Self {
        let mut h = Self::client(settings);
        h.clear();
        h.send(h.syn_ack(0));
        h.clear();
        h
    }

    /// The peer joins a server over `path`; completes the handshake.
    pub fn join(&mut self, path: u8) -> &mut Self {
        self.send_on(path, self.syn(path).with(self.join_syn(path)));
        let nonce = Self::nonce_of(&self.recv());
        self.send_on(path, self.seg_on(path, 1, 1).with(self.join_ack(path, nonce)));
        self
    }

    /// The random number of a join's SYN/ACK.
    pub fn nonce_of(answer: &Segment) -> u32 {
        let Some(MptcpOption::Join(MpJoin::SynAck { nonce, .. })) = answer.options.mptcp().first().copied() else {
            panic!("not a SYN/ACK of a join: {answer:?}");
        };
        nonce
    }

    pub fn join_syn(&self, path: u8) -> MptcpOption {
        let token = crypto::token(self.key);
        MptcpOption::Join(MpJoin::Syn { backup: false, address_id: path, token, nonce: 77 + u32::from(path) })
    }

    /// The third ACK of a join whose SYN had the option [`Self::join_syn`] of path 1, after the SYN/ACK `answer`.
    pub fn third_ack_of(&self, answer: &Packet) -> Packet {
        let Segment { src_port, dst_port, seq, ack, .. } = answer.segment;
        let option = self.join_ack(1, Self::nonce_of(&answer.segment));
        let segment = Segment { src_port: dst_port, dst_port: src_port, seq: ack, ack: seq.at(1), ..self.seg(0, 0) };
        Packet { src: answer.dst, dst: answer.src, segment: segment.with(option) }
    }

    pub fn join_ack(&self, path: u8, nonce: u32) -> MptcpOption {
        let hmac = crypto::join_hmac(PEER_KEY, self.key, 77 + u32::from(path), nonce);
        MptcpOption::Join(MpJoin::Ack { hmac: crypto::leftmost_160(&hmac) })
    }
}

/// The one DSS of a segment.
pub fn dss(segment: &Segment) -> Dss {
    *segment.options.dss().expect("a DSS")
}
