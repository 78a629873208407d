//! The options that change the connection as a whole (RFC 8684 §3).

use super::Session;
use super::offers::reason_in;
use crate::cx::Scope;
use crate::subflow::Subflow;
use anabranch_trace::Violation;
use anabranch_wire::{AddAddr, Mapping, MpJoin, MptcpOption, Segment};

/// The effect of an option of the peer's beyond its subflow and the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The first data has this mapping.
    Maps(Mapping),
    /// The peer announces an address of its own, echoes one of ours, or takes some back.
    Addresses,
    /// Whether the subflow is a backup may have changed.
    Backup,
    /// The peer could not verify our data from this number on.
    Failed(u64),
    /// The peer aborts the connection: all subflows are reset (RFC 8684 §3.5).
    FastClose,
}

/// The end that a reset of the peer's means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Nothing,
    /// That of a subflow, whose path may be tried again or not.
    Subflow {
        retry: bool,
    },
    /// That of the connection.
    Connection,
}

impl Session {
    /// Takes an acceptable reset that came on `s`; `over`: the connection has ended already.
    pub fn on_reset(&self, cx: &mut Scope<'_>, s: &mut Subflow, segment: &Segment, over: bool) -> Ended {
        // RFC 5961 §3.2: only a reset exactly in place resets, or one that proves by our key whose it is.
        if !s.is_exact(segment) && !self.is_fast_close(segment) {
            s.challenge(cx, self.mode, Violation::BlindReset);
            s.doubt_reset(cx.now);
            return Ended::Nothing;
        }
        s.note_broken();
        for option in segment.options.mptcp() {
            let aborts = !over && matches!(option, MptcpOption::FastClose { .. });
            if aborts && self.on_option(cx, s, option) == Effect::FastClose {
                return Ended::Connection;
            }
        }
        // RFC 8684 §3.6: a path that was reset for a reason that is not transient is not tried again.
        let refused = !self.is_plain() && reason_in(segment).is_some_and(|reason| !reason.transient);
        Ended::Subflow { retry: !refused }
    }

    /// MP_FASTCLOSE with our key: the peer's abort (RFC 8684 §3.5).
    fn is_fast_close(&self, segment: &Segment) -> bool {
        let ours = MptcpOption::FastClose { receiver_key: self.local_key() };
        self.is_multipath() && segment.options.mptcp().contains(&ours)
    }

    /// Takes an option that came on `s`.
    pub fn on_option(&self, cx: &mut Scope<'_>, s: &mut Subflow, option: &MptcpOption) -> Effect {
        match *option {
            MptcpOption::Capable(_) => {
                // RFC 8684 §3.1
                let first = self.first_data(option).filter(|(len, _)| *len > 0);
                let data_seq = self.peer_stream().number(0).0;
                let mapping = |(len, checksum)| Mapping { data_seq, wide: true, subflow_seq: 1, len, checksum };
                first.map_or(Effect::Nothing, |first| Effect::Maps(mapping(first)))
            }
            MptcpOption::Join(MpJoin::Ack { .. }) => {
                // RFC 8684 §3.2: the fourth ACK was lost
                s.acks.demand();
                Effect::Nothing
            }
            MptcpOption::Join(_) | MptcpOption::TcpRst(_) => Effect::Nothing,
            MptcpOption::AddAddr(AddAddr { hmac: None, .. }) | MptcpOption::RemoveAddr(_) => Effect::Addresses,
            MptcpOption::AddAddr(address) if !self.proves(address) => {
                cx.violation(s.id, Violation::Hmac);
                Effect::Nothing
            }
            MptcpOption::AddAddr(address) => {
                s.echo(address);
                Effect::Addresses
            }
            MptcpOption::Prio { backup } => {
                s.set_backup_to_peer(backup);
                Effect::Backup
            }
            MptcpOption::Fail { data_seq } => Effect::Failed(data_seq),
            MptcpOption::FastClose { receiver_key } if receiver_key != self.local_key() => {
                cx.violation(s.id, Violation::WrongKey);
                Effect::Nothing
            }
            MptcpOption::FastClose { .. } => Effect::FastClose,
        }
    }
}
