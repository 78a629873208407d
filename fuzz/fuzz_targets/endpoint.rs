//! Any segments at any times into a client and a server that talk to each other: nothing panics, asking for segments
//! comes to an end, timers are in the future or acted upon, and memory stays bounded.

#![no_main]

use anabranch_engine::congestion::FixedWindows;
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::schedule::{Round, Scheduler};
use anabranch_engine::{Cx, FourTuple, Settings, TcpSettings};
use anabranch_units::{ConnId, Duration, Instant, PathId, Rng, SeqNumber};
use anabranch_wire::{
    AddAddr, DataAck, Dss, Flags, Mapping, MpCapable, MpJoin, MptcpOption, Options, Packet, Reason, SackBlock,
    Segment, Timestamps,
};
use arbitrary::Arbitrary;
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

#[derive(Arbitrary, Debug)]
struct Case {
    mptcp: (bool, bool),
    checksum: bool,
    timestamps: bool,
    small_buffers: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Milliseconds pass.
    Pass(u16),
    /// The oldest packet under way arrives.
    Deliver,
    DeliverAll,
    Lose,
    /// The oldest packet under way arrives changed, and again as it was.
    Forge(Change),
    Write { server: bool, len: u16 },
    Finish { server: bool },
    Read { server: bool },
    Abort { server: bool },
    Prio { server: bool, path: bool, backup: bool },
    Withdraw { server: bool, path: bool },
}

#[derive(Arbitrary, Debug)]
struct Change {
    seq: i16,
    ack: i16,
    far: bool,
    flags: Option<u8>,
    window: Option<u16>,
    payload: Option<u8>,
    stamps: Option<(i16, u32)>,
    sack: Vec<(i16, i16)>,
    dss: Option<Mapped>,
    options: Vec<Opt>,
    keep: bool,
}

#[derive(Arbitrary, Debug)]
struct Mapped {
    ack: Option<i32>,
    map: Option<(i32, i16, u16, bool)>,
    checksum: Option<u16>,
    fin: bool,
}

#[derive(Arbitrary, Debug)]
enum Opt {
    Capable { version: u8, key: bool, data: Option<u16> },
    JoinSyn(u32),
    JoinSynAck(u64),
    JoinAck([u8; 20]),
    AddAddr { id: u8, hmac: Option<u64>, low: u8 },
    RemoveAddr(u8),
    Prio(bool),
    Fail(u64),
    FastClose(u64),
    TcpRst(u8, bool),
}

impl Opt {
    fn option(&self) -> MptcpOption {
        match *self {
            Self::Capable { version, key, data } => MptcpOption::Capable(MpCapable {
                version: version % 16,
                checksum: false,
                no_join_here: false,
                hmac_sha256: true,
                sender_key: key.then_some(1),
                receiver_key: key.then_some(2),
                data: data.filter(|_| key).map(|len| (len, None)),
            }),
            Self::JoinSyn(token) => {
                MptcpOption::Join(MpJoin::Syn { backup: false, address_id: 1, token, nonce: token })
            }
            Self::JoinSynAck(hmac) => {
                MptcpOption::Join(MpJoin::SynAck { backup: false, address_id: 1, hmac, nonce: 1 })
            }
            Self::JoinAck(hmac) => MptcpOption::Join(MpJoin::Ack { hmac }),
            Self::AddAddr { id, hmac, low } => {
                MptcpOption::AddAddr(AddAddr { address_id: id, address: host(1, low), port: None, hmac })
            }
            Self::RemoveAddr(id) => MptcpOption::RemoveAddr([Some(id), None, None, None]),
            Self::Prio(backup) => MptcpOption::Prio { backup },
            Self::Fail(data_seq) => MptcpOption::Fail { data_seq },
            Self::FastClose(receiver_key) => MptcpOption::FastClose { receiver_key },
            Self::TcpRst(code, transient) => MptcpOption::TcpRst(Reason { code: code % 16, transient }),
        }
    }
}

fn host(path: u8, low: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, path, 0, low))
}

#[derive(Debug)]
struct Fastest;

impl Scheduler for Fastest {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while let Some(id) = round.fastest_eligible().map(|p| p.id) {
            if !round.send_next(id) {
                return;
            }
        }
    }
}

fn setup(case: &Case, server: bool) -> Setup {
    let paths = (0..2).map(|n| {
        let client = SocketAddr::new(host(n, 1), 1000);
        let tuple = FourTuple { local: client, remote: SocketAddr::new(host(n, 2), 80) };
        let tuple = if server { FourTuple { local: tuple.remote, remote: tuple.local } } else { tuple };
        PathSetup::new(PathId(n), tuple)
    });
    let buffer = if case.small_buffers { 3000 } else { 1 << 20 };
    Setup {
        id: ConnId(0),
        settings: Settings {
            tcp: TcpSettings { timestamps: case.timestamps, retries: 4, ..TcpSettings::default() },
            mptcp: if server { case.mptcp.1 } else { case.mptcp.0 },
            checksum: case.checksum && server,
            mss: 500,
            send_buffer: buffer,
            recv_buffer: buffer,
            ..Settings::default()
        },
        scheduler: Box::new(Fastest),
        congestion: Box::new(FixedWindows::default()),
        paths: paths.collect(),
        announce: if server { vec![(7, host(3, 2), None)] } else { Vec::new() },
        accept_announced: true,
    }
}

/// Most packets that one call may answer with: every window, every acknowledgment, every reset.
const BURST: usize = 5_000;

struct World {
    ends: [Endpoint; 2],
    handles: [Option<Handle>; 2],
    rngs: [Rng; 2],
    now: Instant,
    flying: VecDeque<(usize, Packet)>,
}

impl World {
    fn flush(&mut self) {
        for side in 0..2 {
            let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[side] };
            if let Some(handle) = self.ends[side].poll_accept() {
                self.handles[side] = Some(handle);
            }
            let mut sent = 0;
            while let Some((_, packet)) = self.ends[side].poll_transmit(&mut cx) {
                sent += 1;
                assert!(sent < BURST, "it never stops sending");
                assert!(packet.segment.options.encoded_len() <= 40);
                if self.flying.len() < 2000 {
                    self.flying.push_back((1 - side, packet));
                }
            }
            while self.handles[side].and_then(|h| self.ends[side].poll_event(h)).is_some() {}
        }
    }

    fn deliver(&mut self, side: usize, packet: &Packet) {
        let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[side] };
        self.ends[side].handle_packet(&mut cx, packet);
        self.flush();
    }

    fn pass(&mut self, until: Instant) {
        let mut spins = 0;
        loop {
            let due = self.ends.iter().filter_map(Endpoint::poll_timeout).min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            spins += 1;
            assert!(spins < 20_000, "a timer that is never served");
            self.now = self.now.max(due);
            for side in 0..2 {
                let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[side] };
                self.ends[side].handle_timeout(&mut cx);
            }
            self.flush();
        }
        self.now = until;
    }

    fn act(&mut self, server: bool, act: impl FnOnce(&mut anabranch_engine::connection::Connection, &mut Cx<'_>)) {
        let side = usize::from(server);
        let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rngs[side] };
        if let Some(connection) = self.handles[side].and_then(|h| self.ends[side].connection_mut(h)) {
            act(connection, &mut cx);
        }
        self.flush();
    }
}

fn forge(s: &mut Segment, change: &Change) {
    let add = |n: SeqNumber, by: i16| {
        let by = if change.far { i32::from(by) << 16 } else { i32::from(by) };
        SeqNumber(n.0.wrapping_add(by as u32))
    };
    s.seq = add(s.seq, change.seq);
    s.ack = add(s.ack, change.ack);
    s.flags = change.flags.map_or(s.flags, Flags);
    s.window = change.window.unwrap_or(s.window);
    if let Some(len) = change.payload {
        s.payload = Bytes::from(vec![len; usize::from(len)]);
    }
    let old = core::mem::take(&mut s.options);
    let new = &mut s.options;
    if change.keep {
        *new = old.clone();
    }
    if let Some((by, ecr)) = change.stamps {
        let val = old.timestamps().map_or(0, |t| t.val).wrapping_add(by as u32);
        new.set_timestamps(Timestamps { val, ecr });
    }
    let mut blocks = [SackBlock::default(); 4];
    for (block, (a, b)) in blocks.iter_mut().zip(&change.sack) {
        *block = SackBlock { start: add(s.ack, *a), end: add(s.ack, *b) };
    }
    new.set_sack(&blocks[..change.sack.len().min(4)]);
    if let Some(d) = &change.dss {
        let before = old.dss().copied().unwrap_or_default();
        let number = |ack: Option<DataAck>| match ack {
            Some(DataAck::Long(n)) => n,
            _ => 0,
        };
        let ack = d.ack.map(|by| DataAck::Long(number(before.ack).wrapping_add(by as u64)));
        let map = before.mapping.map_or((0, 1), |m| (m.data_seq, m.subflow_seq));
        let mapping = d.map.map(|(data, sub, len, wide)| Mapping {
            data_seq: map.0.wrapping_add(data as u64),
            wide,
            subflow_seq: map.1.wrapping_add(sub as u32),
            len,
            checksum: d.checksum,
        });
        new.set_dss(Dss { ack, mapping, data_fin: d.fin && mapping.is_some() });
    }
    for option in &change.options {
        new.push_mptcp(option.option());
    }
    let _: &Options = new;
}

fuzz_target!(|case: Case| {
    let mut server = Endpoint::new(8);
    let accepted = (setup(&case, true).settings, case.small_buffers);
    let template = setup(&case, true);
    server.listen(80, Box::new(move |_| {
        Some(Setup {
            id: ConnId(0),
            settings: accepted.0.clone(),
            scheduler: Box::new(Fastest),
            congestion: Box::new(FixedWindows::default()),
            paths: template.paths.clone(),
            announce: template.announce.clone(),
            accept_announced: false,
        })
    }));
    let mut w = World {
        ends: [Endpoint::new(8), server],
        handles: [None, None],
        rngs: [Rng::stream(1, "client"), Rng::stream(1, "server")],
        now: Instant::ZERO,
        flying: VecDeque::new(),
    };
    let mut cx = Cx { now: w.now, recorder: &mut (), rng: &mut w.rngs[0] };
    w.handles[0] = Some(w.ends[0].connect(&mut cx, setup(&case, false)));
    w.flush();
    let steps = || case.steps.iter().take(200);
    for step in steps() {
        match step {
            Step::Pass(ms) => {
                let until = w.now + Duration::from_millis(u64::from(*ms));
                w.pass(until);
            }
            Step::Deliver => {
                if let Some((side, packet)) = w.flying.pop_front() {
                    w.deliver(side, &packet);
                }
            }
            Step::DeliverAll => {
                for _ in 0..w.flying.len() {
                    let Some((side, packet)) = w.flying.pop_front() else { break };
                    w.deliver(side, &packet);
                }
            }
            Step::Lose => {
                w.flying.pop_front();
            }
            Step::Forge(change) => {
                if let Some((side, packet)) = w.flying.front().cloned() {
                    let mut forged = packet;
                    forge(&mut forged.segment, change);
                    w.deliver(side, &forged);
                }
            }
            Step::Write { server, len } => w.act(*server, |c, cx| {
                c.write(cx, Bytes::from(vec![0; usize::from(*len)]));
            }),
            Step::Finish { server } => w.act(*server, |c, cx| c.finish(cx)),
            Step::Read { server } => w.act(*server, |c, cx| while c.read(cx).is_some() {}),
            Step::Abort { server } => w.act(*server, |c, cx| c.abort(cx)),
            Step::Prio { server, path, backup } => {
                w.act(*server, |c, _| c.set_backup(PathId(u8::from(*path)), *backup));
            }
            Step::Withdraw { server, path } => w.act(*server, |c, cx| c.withdraw(cx, u8::from(*path))),
        }
    }
    // Nobody answers any more: in the end nothing is left.
    w.flying.clear();
    for server in [false, true] {
        w.act(server, |c, cx| c.abort(cx));
    }
    w.pass(w.now + Duration::from_secs(3600));
    w.flush();
    assert!(w.ends[0].is_empty(), "the client's connection stays");
});
