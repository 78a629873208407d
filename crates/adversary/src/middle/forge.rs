//! Forged segments, made from a model: a segment under way, which an attacker on the path sees and one off the path
//! guesses.

use crate::luck::Luck;
use anabranch_units::SeqNumber;
use anabranch_wire::{
    AddAddr, DataAck, Dss, Flags, Mapping, MpCapable, MpJoin, MptcpOption, Options, Packet, Reason, SackBlock,
    Timestamps,
};
use bytes::Bytes;
use core::net::IpAddr;

/// The fields in which a forged segment differs from its model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forgery {
    /// The opposite direction, as an answer of the model's receiver.
    pub back: bool,
    /// Added to the sequence number.
    pub seq: i32,
    /// Added to the acknowledgment number.
    pub ack: i32,
    /// Flags; the model's if absent.
    pub flags: Option<Flags>,
    /// Window; the model's if absent.
    pub window: Option<u16>,
    /// Bytes of payload; the model's if absent.
    pub payload: Option<u16>,
    /// Added to TSval; `None` removes timestamps.
    pub stamps: Option<i32>,
    /// Keeps the model's DSS and MPTCP options.
    pub keeps_mptcp: bool,
    /// SACK blocks, relative to the acknowledgment number.
    pub sack: Vec<(i32, i32)>,
    /// A DSS in place of the model's.
    pub dss: Option<ForgedDss>,
    /// One more option.
    pub option: Option<MptcpOption>,
}

/// A DSS relative to the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgedDss {
    /// Added to the data acknowledgment.
    pub ack: Option<i32>,
    /// Added to data sequence number and subflow sequence number; length.
    pub map: Option<(i32, i32, u16)>,
    /// Checksum of the mapping.
    pub checksum: Option<u16>,
    /// DATA_FIN.
    pub fin: bool,
}

fn plus(n: SeqNumber, by: i32) -> SeqNumber {
    SeqNumber(n.0.wrapping_add(by as u32))
}

impl Forgery {
    /// The forged packet; `fill` is repeated as its payload.
    pub fn make(&self, model: &Packet) -> Packet {
        let mut packet = model.clone();
        let stamps = model.segment.options.timestamps();
        let mut echo = stamps;
        if self.back {
            let s = &mut packet.segment;
            (packet.src, packet.dst) = (model.dst, model.src);
            (s.src_port, s.dst_port) = (model.segment.dst_port, model.segment.src_port);
            let end = model.segment.seq.at(model.segment.seq_len().into());
            (s.seq, s.ack) = (model.segment.ack, end);
            s.payload = Bytes::new();
            echo = stamps.map(|t| Timestamps { val: t.ecr, ecr: t.val });
        }
        let s = &mut packet.segment;
        (s.seq, s.ack) = (plus(s.seq, self.seq), plus(s.ack, self.ack));
        s.flags = self.flags.unwrap_or(s.flags);
        s.window = self.window.unwrap_or(s.window);
        if let Some(len) = self.payload {
            s.payload = Bytes::from(vec![0xa5; len.into()]);
        }
        let old = core::mem::take(&mut s.options);
        s.options = self.options(&old, echo, s.ack);
        packet
    }

    fn options(&self, old: &Options, stamps: Option<Timestamps>, ack: SeqNumber) -> Options {
        let mut new = Options::new();
        if let Some((stamps, by)) = stamps.zip(self.stamps) {
            new.set_timestamps(Timestamps { val: stamps.val.wrapping_add(by as u32), ..stamps });
        }
        if let Some(dss) = &self.dss {
            new.set_dss(dss.make(old.dss().copied().unwrap_or_default()));
        } else if self.keeps_mptcp
            && let Some(dss) = old.dss()
        {
            new.set_dss(*dss);
        }
        self.option.map(|option| new.push_mptcp(option));
        if self.keeps_mptcp {
            old.mptcp().iter().for_each(|option| {
                new.push_mptcp(*option);
            });
        }
        let blocks: Vec<SackBlock> =
            self.sack.iter().map(|(a, b)| SackBlock { start: plus(ack, *a), end: plus(ack, *b) }).collect();
        new.set_sack(&blocks);
        new
    }
}

impl ForgedDss {
    fn make(&self, model: Dss) -> Dss {
        let known = match model.ack {
            Some(DataAck::Long(n)) => n,
            Some(DataAck::Short(n)) => n.into(),
            None => 0,
        };
        let (data, sub) = model.mapping.map_or((0, 1), |m| (m.data_seq, m.subflow_seq));
        let mapping = self.map.map(|(by, sub_by, len)| Mapping {
            data_seq: data.wrapping_add(i64::from(by) as u64),
            wide: model.mapping.is_none_or(|m| m.wide),
            subflow_seq: sub.wrapping_add(sub_by as u32),
            len,
            checksum: self.checksum,
        });
        Dss {
            ack: self.ack.map(|by| DataAck::Long(known.wrapping_add(i64::from(by) as u64))),
            mapping,
            data_fin: self.fin && mapping.is_some_and(|m| m.len > 0),
        }
    }
}

/// Near, at the edges of windows, or anywhere.
fn distance(luck: &mut Luck<'_>) -> i32 {
    match luck.below(6) {
        0 | 1 => 0,
        2 => luck.within(0, 2) as i32 - 1,
        3 => luck.within(0, 6000) as i32 - 3000,
        4 => luck.within(0, 1 << 21) as i32 - (1 << 20),
        _ => luck.bits() as u32 as i32,
    }
}

/// Half a circle away, give or take a quarter.
fn far(luck: &mut Luck<'_>) -> i32 {
    luck.within(1 << 30, 3 << 30) as u32 as i32
}

fn any_option(luck: &mut Luck<'_>) -> MptcpOption {
    let key = luck.bits();
    match luck.below(9) {
        0 => MptcpOption::Capable(MpCapable {
            version: luck.below(3) as u8,
            checksum: luck.chance(0.5),
            no_join_here: luck.chance(0.5),
            hmac_sha256: !luck.chance(0.2),
            sender_key: Some(key),
            receiver_key: luck.chance(0.5).then_some(key),
            data: None,
        }),
        1 => MptcpOption::Join(MpJoin::Syn { backup: false, address_id: 1, token: key as u32, nonce: 7 }),
        2 => MptcpOption::Join(MpJoin::SynAck { backup: false, address_id: 1, hmac: key, nonce: 7 }),
        3 => MptcpOption::Join(MpJoin::Ack { hmac: [key as u8; 20] }),
        4 => MptcpOption::Fail { data_seq: key },
        5 => MptcpOption::RemoveAddr([Some(luck.below(4) as u8), None, None, None]),
        6 => MptcpOption::TcpRst(Reason { code: luck.below(7) as u8, transient: luck.chance(0.5) }),
        _ => harmless_option(luck),
    }
}

/// An option without effect unless its sender knows the keys.
fn harmless_option(luck: &mut Luck<'_>) -> MptcpOption {
    let number = luck.bits();
    match luck.below(3) {
        0 => MptcpOption::FastClose { receiver_key: number },
        1 => MptcpOption::Prio { backup: luck.chance(0.5) },
        _ => MptcpOption::AddAddr(AddAddr {
            address_id: luck.within(1, 9) as u8,
            address: IpAddr::from([10, 9, 9, luck.below(200) as u8]),
            port: None,
            hmac: Some(number),
        }),
    }
}

/// Data ahead of the next expected byte, perhaps beyond the window.
fn ahead(luck: &mut Luck<'_>) -> Forgery {
    let seq = luck.spread(1, 1 << 21) as i32;
    Forgery { seq, flags: Some(Flags::ACK), payload: Some(1400), stamps: Some(0), ..Forgery::default() }
}

/// Any forgery of an attacker on the path.
pub(crate) fn anything(luck: &mut Luck<'_>) -> Forgery {
    if luck.chance(0.2) {
        return ahead(luck);
    }
    let payload = luck.chance(0.5).then(|| luck.within(0, 1400) as u16);
    let dss = luck.chance(0.4).then(|| ForgedDss {
        ack: luck.chance(0.7).then(|| distance(luck)),
        map: luck.chance(0.7).then(|| {
            let len = if luck.chance(0.6) { payload.unwrap_or(1) } else { luck.below(3000) as u16 };
            (distance(luck), distance(luck), len)
        }),
        checksum: luck.chance(0.3).then(|| luck.bits() as u16),
        fin: luck.chance(0.1),
    });
    Forgery {
        back: luck.chance(0.3),
        seq: distance(luck),
        ack: distance(luck),
        flags: luck.chance(0.4).then(|| Flags(luck.below(256) as u8)),
        window: luck.chance(0.3).then(|| *luck.pick(&[0, 1, 100, 0xffff])),
        payload,
        stamps: (!luck.chance(0.2)).then(|| distance(luck)),
        keeps_mptcp: luck.chance(0.6),
        sack: (0..luck.below(4)).map(|_| (distance(luck), distance(luck))).collect(),
        dss,
        option: luck.chance(0.3).then(|| any_option(luck)),
    }
}

/// A segment that a host must ignore (RFC 9293 §3.10.7.4, RFC 5961 §3 to §5, RFC 7323 §5.3, RFC 8684 §3.4.1, §3.5).
pub(crate) fn guess(luck: &mut Luck<'_>) -> Forgery {
    let ack = Flags::ACK;
    let stamps = *luck.pick(&[Some(0), None, Some(1 << 20), Some(i32::MAX), Some(-1000)]);
    let payload = Some(*luck.pick(&[100, 0, 1, 1400]));
    let base = Forgery { back: luck.chance(0.4), stamps, payload, flags: Some(ack), ..Forgery::default() };
    match luck.below(8) {
        // Far outside the window.
        0 | 1 => {
            let any = [ack, Flags::RST, Flags::RST | ack, Flags::SYN, Flags::SYN | ack, Flags::FIN | ack, Flags(0)];
            Forgery { seq: far(luck), flags: Some(*luck.pick(&any)), keeps_mptcp: luck.chance(0.5), ..base }
        }
        // Beyond the end of these streams: within a large window, but not at the exact place that a reset needs.
        2 => Forgery { seq: luck.within(500_000, 900_000) as i32, flags: Some(Flags::RST), payload: Some(0), ..base },
        3 => Forgery { flags: Some(Flags::SYN), seq: luck.within(0, 100) as i32, payload: Some(0), ..base },
        // A segment without ACK is dropped (RFC 9293 §3.10.7.4).
        4 => Forgery { flags: Some(*luck.pick(&[Flags(0), Flags::PSH, Flags::FIN])), ..base },
        // Acknowledges data that was never sent, or long ago.
        5 | 6 => Forgery { ack: far(luck), flags: Some(*luck.pick(&[ack, ack | Flags::FIN])), ..base },
        // Nothing new, with an option that proves nothing. In the opposite direction it would acknowledge data that may
        // be lost.
        _ => Forgery {
            back: false,
            stamps: Some(0),
            payload: Some(0),
            keeps_mptcp: true,
            option: Some(harmless_option(luck)),
            ..base
        },
    }
}
