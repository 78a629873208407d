//! Follows a connection in a capture and checks everything that is computed from its keys.

use anabranch_units::{DataSeq, SeqNumber};
use anabranch_wire::crypto::{add_addr_hmac, idsn, join_hmac, leftmost_64, leftmost_160, token};
use anabranch_wire::{AddAddr, ChecksumAccumulator, DataAck, Dss, Flags, MpCapable, MpJoin, MptcpOption, Packet};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Numbers of checked values, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proofs {
    pub tokens: u32,
    pub join_hmacs: u32,
    pub add_addr_hmacs: u32,
    /// Wide data sequence numbers and acknowledgments.
    pub data_numbers: u32,
    pub checksums: u32,
    pub fast_closes: u32,
}

/// A mapping whose payload has not all been seen.
struct Unfinished {
    sum: ChecksumAccumulator,
    next: SeqNumber,
    left: usize,
}

#[derive(Default)]
pub struct Connection {
    /// Keys of the client and the server.
    keys: Option<(u64, u64)>,
    /// The random numbers of MP_JOIN by the client's socket: the client's, the server's.
    nonces: HashMap<SocketAddr, (u32, u32)>,
    clients: Vec<SocketAddr>,
    unfinished: HashMap<(SocketAddr, u64), Unfinished>,
    pub proofs: Proofs,
}

impl Connection {
    pub fn observe(&mut self, packet: &Packet) {
        let segment = &packet.segment;
        let src = SocketAddr::new(packet.src, segment.src_port);
        let dst = SocketAddr::new(packet.dst, segment.dst_port);
        if segment.flags == Flags::SYN {
            self.clients.push(src);
        }
        let by_client = self.clients.contains(&src);
        let client = if by_client { src } else { dst };
        for option in segment.options.mptcp() {
            if let MptcpOption::Capable(MpCapable { sender_key: Some(a), receiver_key: Some(b), .. }) = *option {
                self.keys = Some((a, b));
            }
            let Some((client_key, server_key)) = self.keys else { continue };
            let (sender, receiver) = if by_client { (client_key, server_key) } else { (server_key, client_key) };
            match *option {
                MptcpOption::Join(join) => self.check_join(&join, client, sender, receiver),
                MptcpOption::AddAddr(AddAddr { address_id, address, port, hmac: Some(hmac) }) => {
                    assert_eq!(hmac, add_addr_hmac(sender, receiver, address_id, address, port), "{packet}");
                    self.proofs.add_addr_hmacs += 1;
                }
                MptcpOption::FastClose { receiver_key } => {
                    assert_eq!(receiver_key, receiver, "{packet}");
                    self.proofs.fast_closes += 1;
                }
                _ => {}
            }
        }
        if let (Some(dss), Some((client_key, server_key))) = (segment.options.dss(), self.keys) {
            let (sender, receiver) = if by_client { (client_key, server_key) } else { (server_key, client_key) };
            self.check_data_numbers(dss, sender, receiver);
            self.check_checksum(packet, src);
        }
    }

    /// Mappings with a checksum whose payload is not all captured.
    pub fn unfinished_mappings(&self) -> usize {
        self.unfinished.len()
    }

    fn check_join(&mut self, join: &MpJoin, client: SocketAddr, sender: u64, receiver: u64) {
        match *join {
            MpJoin::Syn { token: sent, nonce, .. } => {
                assert_eq!(sent, token(receiver));
                self.nonces.insert(client, (nonce, 0));
                self.proofs.tokens += 1;
            }
            MpJoin::SynAck { hmac, nonce, .. } => {
                let nonces = self.nonces.get_mut(&client).expect("a SYN came first");
                nonces.1 = nonce;
                assert_eq!(hmac, leftmost_64(&join_hmac(sender, receiver, nonce, nonces.0)));
                self.proofs.join_hmacs += 1;
            }
            MpJoin::Ack { hmac } => {
                let (local, remote) = self.nonces[&client];
                assert_eq!(hmac, leftmost_160(&join_hmac(sender, receiver, local, remote)));
                self.proofs.join_hmacs += 1;
            }
        }
    }

    /// No capture has more than a megabyte in one direction.
    fn check_data_numbers(&mut self, dss: &Dss, sender: u64, receiver: u64) {
        let mapped = dss.mapping.filter(|m| m.wide).map(|m| (m.data_seq, sender));
        let acked = match dss.ack {
            Some(DataAck::Long(ack)) => Some((ack, receiver)),
            _ => None,
        };
        for (number, key) in mapped.into_iter().chain(acked) {
            let offset = DataSeq(number).offset_from(idsn(key), 0).expect("not before the first");
            assert!((1..1_000_000).contains(&offset), "offset {offset}");
            self.proofs.data_numbers += 1;
        }
    }

    fn check_checksum(&mut self, packet: &Packet, src: SocketAddr) {
        let segment = &packet.segment;
        let Some(dss) = segment.options.dss() else { return };
        let Some(mapping) = dss.mapping else { return };
        let Some(checksum) = mapping.checksum else { return };
        let key = (src, mapping.data_seq);
        let state = self.unfinished.entry(key).or_insert_with(|| Unfinished {
            sum: ChecksumAccumulator::new(),
            next: segment.seq,
            left: usize::from(mapping.len) - usize::from(dss.data_fin),
        });
        assert_eq!(state.next, segment.seq, "the capture has no retransmissions: {packet}");
        state.sum.add(&segment.payload);
        state.next = state.next.at(segment.payload.len() as u64);
        state.left -= segment.payload.len();
        if state.left == 0 {
            let sum = state.sum.finish(mapping.data_seq, mapping.subflow_seq, mapping.len);
            assert_eq!(sum, checksum, "{packet}");
            self.unfinished.remove(&key);
            self.proofs.checksums += 1;
        }
    }
}
