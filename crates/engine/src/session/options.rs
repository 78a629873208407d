//! Numbers on the wire and the DSS option that carries them (RFC 8684 §3.3), and the options of resets.

use super::Session;
use super::failure::Failure;
use crate::mode::Mode;
use crate::reasons::{MPTCP_ERROR, UNSPECIFIED};
use crate::subflow::sender::Sent;
use crate::subflow::{Reset, Subflow};
use anabranch_units::DataSeq;
use anabranch_wire::{DataAck, Dss, Mapping, MptcpOption, Options, Segment, dss_checksum};
use bytes::Bytes;

impl Session {
    /// The offset that a DATA_ACK acknowledges, near the one that is known.
    #[inline(always)]
    pub fn acked_offset(&self, ack: DataAck, near: u64) -> Option<u64> {
        let first = self.keys.local_number(0);
        match ack {
            DataAck::Long(number) => DataSeq(number).offset_from(first, near),
            DataAck::Short(low) => DataSeq::low_offset_from(low, first, near),
        }
    }

    /// The peer sends data sequence numbers of this width.
    pub fn note_width(&mut self, mapping: &Mapping) {
        self.peer_wide |= mapping.wide;
    }

    /// A DATA_ACK of `next`.
    fn ack_option(&self, next: u64) -> Dss {
        let number = self.peer_stream().number(next).0;
        let wide = self.wide || self.peer_wide;
        let ack = if wide { DataAck::Long(number) } else { DataAck::Short(number as u32) };
        Dss { ack: Some(ack), mapping: None, data_fin: false }
    }

    /// Adds the mapping of a segment of `s`: DSS, or MP_CAPABLE on the first data of a client that is not confirmed. `acked`
    /// is the next offset of the peer's stream.
    #[inline(always)]
    pub(super) fn add_mapping(&self, s: &Subflow, sent: &Sent, acked: u64, options: &mut Options) {
        if self.mode.is_plain() {
            return self.add_infinite_mapping(sent, options);
        }
        if sent.payload.is_empty() {
            options.set_dss(self.ack_option(acked));
            return;
        }
        let len = sent.payload.len() as u16 + u16::from(sent.data_fin);
        let number = self.keys.local_number(sent.data().start);
        let subflow_seq = sent.seq().start as u32;
        let checksum = self.checksum.then(|| dss_checksum(number.0, subflow_seq, len, &sent.payload));
        if sent.seq().start == 1 && s.shows_keys(self.mode) && !sent.data_fin {
            options.push_mptcp(MptcpOption::Capable(self.both_keys(Some((len, checksum)))));
            return;
        }
        let mapping = Mapping { data_seq: number.0, wide: self.wide, subflow_seq, len, checksum };
        options.set_dss(Dss { mapping: Some(mapping), data_fin: sent.data_fin, ..self.ack_option(acked) });
    }

    /// RFC 8684 §3.7: an infinite mapping, which reaches back to the last data that is known to have come intact.
    fn add_infinite_mapping(&self, sent: &Sent, options: &mut Options) {
        let infinite = self.infinite.filter(|infinite| sent.seq().start <= infinite.upto && !sent.payload.is_empty());
        let Some(infinite) = infinite else { return };
        let back = sent.data().start.saturating_sub(infinite.intact).min(sent.seq().start - 1);
        let checksum = infinite.checksum.then_some(0);
        let data_seq = self.keys.local_number(sent.data().start - back).0;
        let subflow_seq = (sent.seq().start - back) as u32;
        let mapping = Mapping { data_seq, wide: self.wide, subflow_seq, len: 0, checksum };
        options.set_dss(Dss { ack: None, mapping: Some(mapping), data_fin: false });
    }

    /// A DATA_FIN without payload at the `end` of our stream (RFC 8684 §3.3.3).
    fn bare_data_fin(&self, end: u64) -> Mapping {
        let number = self.keys.local_number(end).0;
        let checksum = self.checksum.then(|| dss_checksum(number, 0, 1, &Bytes::new()));
        Mapping { data_seq: number, wide: self.wide, subflow_seq: 0, len: 1, checksum }
    }

    /// Adds the options of a segment of `s` without payload; `data_fin`: where our stream ends, if the DATA_FIN goes out. True if it has the DATA_FIN, where one is to go out.
    pub(super) fn add_control(&self, s: &Subflow, acked: u64, data_fin: Option<u64>, options: &mut Options) -> bool {
        match self.mode {
            Mode::Plain => {
                if let Failure::Said(saying) = &self.failure {
                    options.push_mptcp(MptcpOption::Fail { data_seq: saying.data_seq });
                }
                if matches!(self.failure, Failure::Said(_) | Failure::Answered) {
                    options.set_dss(self.ack_option(acked));
                }
                false
            }
            _ if s.shows_keys(self.mode) && data_fin.is_none() => {
                options.push_mptcp(MptcpOption::Capable(self.both_keys(None)));
                false
            }
            _ => {
                let mut dss = self.ack_option(acked);
                if let Some(end) = data_fin {
                    dss.mapping = Some(self.bare_data_fin(end));
                    dss.data_fin = true;
                }
                options.set_dss(dss) && data_fin.is_some()
            }
        }
    }

    /// Adds the options that say why a subflow is reset (RFC 8684 §3.5, §3.6, §3.7).
    pub(super) fn add_reason(&self, reset: Reset, options: &mut Options) {
        if !self.wanted || self.mode.is_plain() {
            return;
        }
        let reason = match reset {
            Reset::Because(reason) => reason,
            Reset::FastClose => {
                let receiver_key = self.keys.remote;
                options.push_mptcp(MptcpOption::FastClose { receiver_key });
                UNSPECIFIED
            }
            Reset::Fail(data_seq) => {
                options.push_mptcp(MptcpOption::Fail { data_seq });
                MPTCP_ERROR
            }
        };
        options.push_mptcp(MptcpOption::TcpRst(reason));
    }

    /// Nearly always: the segment at `seq` is next on `s`, its mapping covers its payload and nothing else, and no other is
    /// held.
    #[inline(always)]
    pub fn maps_itself(&self, s: &Subflow, segment: &Segment, seq: u64, mapping: &Mapping) -> bool {
        let len = segment.payload.len() as u64;
        let exact = len > 0 && u64::from(mapping.len) == len && mapping.subflow_seq == seq as u32;
        let plain = mapping.checksum.is_none() && !self.checksum;
        exact && plain && s.placement.is_empty() && s.receiver.is_next(seq, len)
    }
}
