//! A connection over two subflows with every MPTCP option.

use anabranch_units::{PathId, SeqNumber};
use anabranch_wire::crypto::{add_addr_hmac, idsn, join_hmac, leftmost_64, leftmost_160, token};
use anabranch_wire::{
    AddAddr, DataAck, Dss, Ecn, Flags, Mapping, MpCapable, MpJoin, MptcpOption, Options, Packet, Reason, Segment,
    Timestamps, dss_checksum,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const CLIENT_KEY: u64 = 0x0102_0304_0506_0708;
const SERVER_KEY: u64 = 0x1122_3344_5566_7788;
const CLIENT_NONCE: u32 = 0xaabb_ccdd;
const SERVER_NONCE: u32 = 0x1234_5678;
const BACKUP_ID: u8 = 2;

fn address(by_client: bool, path: PathId) -> IpAddr {
    Ipv4Addr::new(10, 0, path.0, if by_client { 1 } else { 2 }).into()
}

/// The state of one subflow: the next number of each side.
struct Subflow {
    path: PathId,
    next: [u32; 2],
}

impl Subflow {
    fn send(&mut self, by_client: bool, flags: Flags, mptcp: Vec<Item>, payload: &'static [u8]) -> Sent {
        let mut options = Options::new();
        if flags.has(Flags::SYN) {
            assert!(options.set_mss(1460) && options.set_window_scale(7) && options.set_sack_permitted());
        }
        assert!(options.set_timestamps(Timestamps { val: 100, ecr: 100 }));
        for item in mptcp {
            assert!(match item {
                Item::Dss(dss) => options.set_dss(dss),
                Item::Other(option) => options.push_mptcp(option),
            });
        }
        let (mine, theirs) = if by_client { (0, 1) } else { (1, 0) };
        let ports = if by_client { (40_000, 443) } else { (443, 40_000) };
        let segment = Segment {
            src_port: ports.0,
            dst_port: ports.1,
            seq: SeqNumber(self.next[mine]),
            ack: SeqNumber(if flags.has(Flags::ACK) { self.next[theirs] } else { 0 }),
            flags,
            ecn: Ecn::NotEct,
            window: 1000,
            options,
            payload: Bytes::from_static(payload),
        };
        self.next[mine] = self.next[mine].wrapping_add(segment.seq_len());
        let packet = Packet { src: address(by_client, self.path), dst: address(!by_client, self.path), segment };
        (by_client, self.path, packet)
    }
}

enum Item {
    Dss(Dss),
    Other(MptcpOption),
}

/// Whether the client sent it, its path, and the packet.
type Sent = (bool, PathId, Packet);

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n";
const REPLY: &[u8] = b"what the server says";

fn capable(sender_key: Option<u64>, receiver_key: Option<u64>, len: Option<u16>) -> Item {
    Item::Other(MptcpOption::Capable(MpCapable {
        version: 1,
        checksum: true,
        no_join_here: false,
        hmac_sha256: true,
        sender_key,
        receiver_key,
        data: len.map(|len| (len, Some(dss_checksum(idsn(CLIENT_KEY).at(1).0, 1, len, REQUEST)))),
    }))
}

fn mapped(key: u64, offset: u64, subflow_seq: u32, payload: &[u8], acked: DataAck, data_fin: bool) -> Item {
    let data_seq = idsn(key).at(1 + offset).0;
    let len = payload.len() as u16 + u16::from(data_fin);
    let checksum = Some(dss_checksum(data_seq, subflow_seq, len, payload));
    Item::Dss(Dss {
        ack: Some(acked),
        mapping: Some(Mapping { data_seq, wide: true, subflow_seq, len, checksum }),
        data_fin,
    })
}

fn acked(key: u64, bytes: u64) -> DataAck {
    DataAck::Long(idsn(key).at(1 + bytes).0)
}

fn ack(data_ack: DataAck) -> Item {
    Item::Dss(Dss { ack: Some(data_ack), ..Dss::default() })
}

/// All packets, none lost, in order.
pub fn packets() -> Vec<Sent> {
    let mut first = Subflow { path: PathId(0), next: [1000, u32::MAX - 3] };
    let mut second = Subflow { path: PathId(1), next: [70, 80] };
    let request = REQUEST.len() as u64;
    let reply = REPLY.len() as u64;
    let (client, server) = (CLIENT_KEY, SERVER_KEY);
    let announced = AddAddr { address_id: BACKUP_ID, address: address(false, PathId(1)), port: None, hmac: None };
    let hmac = add_addr_hmac(server, client, BACKUP_ID, announced.address, None);
    let data = Flags::ACK | Flags::PSH;
    let mut sent = vec![
        first.send(true, Flags::SYN, vec![capable(None, None, None)], b""),
        first.send(false, Flags::SYN | Flags::ACK, vec![capable(Some(server), None, None)], b""),
        first.send(true, Flags::ACK, vec![capable(Some(client), Some(server), None)], b""),
        first.send(true, data, vec![capable(Some(client), Some(server), Some(REQUEST.len() as u16))], REQUEST),
        first.send(false, Flags::ACK, vec![ack(acked(client, request))], b""),
        first.send(
            false,
            Flags::ACK,
            vec![Item::Other(MptcpOption::AddAddr(AddAddr { hmac: Some(hmac), ..announced }))],
            b"",
        ),
        first.send(true, Flags::ACK, vec![Item::Other(MptcpOption::AddAddr(announced))], b""),
    ];
    sent.extend(join(&mut second));
    let fin = Flags::ACK | Flags::FIN;
    sent.extend([
        second.send(false, data, vec![mapped(server, 0, 1, REPLY, acked(client, request), false)], REPLY),
        second.send(true, Flags::ACK, vec![ack(DataAck::Short(idsn(server).at(1 + reply).0 as u32))], b""),
        second.send(true, Flags::ACK, vec![Item::Other(MptcpOption::Prio { backup: true })], b""),
        first.send(true, Flags::ACK, vec![Item::Other(MptcpOption::RemoveAddr([Some(7), Some(9), None, None]))], b""),
        first.send(true, Flags::ACK, vec![mapped(client, request, 0, b"", acked(server, reply), true)], b""),
        second.send(false, fin, vec![ack(acked(client, request + 1))], b""),
        second.send(true, fin, vec![ack(acked(server, reply))], b""),
        second.send(false, Flags::ACK, vec![ack(acked(client, request + 1))], b""),
        first.send(false, Flags::ACK, vec![Item::Other(MptcpOption::Fail { data_seq: idsn(server).at(1).0 })], b""),
        first.send(true, Flags::ACK | Flags::RST, ends(), b""),
    ]);
    sent
}

fn ends() -> Vec<Item> {
    [MptcpOption::FastClose { receiver_key: SERVER_KEY }, MptcpOption::TcpRst(Reason { code: 2, transient: true })]
        .map(Item::Other)
        .into()
}

fn join(second: &mut Subflow) -> [Sent; 4] {
    let reply = join_hmac(SERVER_KEY, CLIENT_KEY, SERVER_NONCE, CLIENT_NONCE);
    let proof = join_hmac(CLIENT_KEY, SERVER_KEY, CLIENT_NONCE, SERVER_NONCE);
    let forms = [
        MpJoin::Syn { backup: false, address_id: BACKUP_ID, token: token(SERVER_KEY), nonce: CLIENT_NONCE },
        MpJoin::SynAck { backup: false, address_id: BACKUP_ID, hmac: leftmost_64(&reply), nonce: SERVER_NONCE },
        MpJoin::Ack { hmac: leftmost_160(&proof) },
    ];
    let [syn, syn_ack, third] = forms.map(|form| vec![Item::Other(MptcpOption::Join(form))]);
    [
        second.send(true, Flags::SYN, syn, b""),
        second.send(false, Flags::SYN | Flags::ACK, syn_ack, b""),
        second.send(true, Flags::ACK, third, b""),
        // RFC 8684 §3.2: the third ACK is acknowledged at once.
        second.send(false, Flags::ACK, vec![ack(acked(CLIENT_KEY, REQUEST.len() as u64))], b""),
    ]
}

/// The number of each MPTCP subtype (RFC 8684 §7.2).
pub fn subtypes() -> BTreeMap<u8, usize> {
    let mut counts = BTreeMap::new();
    for (_, _, packet) in packets() {
        let options = &packet.segment.options;
        let others = options.mptcp().iter().map(|option| match option {
            MptcpOption::Capable(_) => 0,
            MptcpOption::Join(_) => 1,
            MptcpOption::AddAddr(_) => 3,
            MptcpOption::RemoveAddr(_) => 4,
            MptcpOption::Prio { .. } => 5,
            MptcpOption::Fail { .. } => 6,
            MptcpOption::FastClose { .. } => 7,
            MptcpOption::TcpRst(_) => 8,
        });
        for subtype in options.dss().map(|_| 2).into_iter().chain(others) {
            *counts.entry(subtype).or_default() += 1;
        }
    }
    counts
}
