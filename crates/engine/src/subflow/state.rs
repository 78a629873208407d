//! The eleven states of a TCP connection (RFC 9293 §3.3.2) and the transitions between them.

/// State of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN. Held by listeners; a subflow leaves it as it is made.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received, SYN/ACK sent.
    SynReceived,
    /// Open.
    Established,
    /// FIN sent.
    FinWait1,
    /// Our FIN was acknowledged.
    FinWait2,
    /// The peer sent FIN.
    CloseWait,
    /// Both sent FIN, ours not acknowledged.
    Closing,
    /// The peer's FIN came first, then ours was sent.
    LastAck,
    /// Both done; old duplicates are waited for.
    TimeWait,
}

/// A cause for a subflow to change its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// We sent a SYN.
    SendSyn,
    /// A SYN without ACK came.
    ReceiveSyn,
    /// A SYN with an ACK of ours came.
    ReceiveSynAck,
    /// Our SYN was acknowledged.
    SynAcked,
    /// We sent a FIN.
    SendFin,
    /// The peer's FIN is next in sequence.
    ReceiveFin,
    /// Our FIN was acknowledged.
    FinAcked,
    /// TIME-WAIT is over.
    Expire,
    /// A reset, sent or received, or giving up.
    Abort,
}

impl State {
    /// The state after `by`, or `None` where that cannot happen.
    pub const fn after(self, by: Move) -> Option<State> {
        use Move::{Abort, Expire, FinAcked, ReceiveFin, ReceiveSyn, ReceiveSynAck, SendFin, SendSyn, SynAcked};
        use State::{
            CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived, SynSent,
            TimeWait,
        };
        // RFC 9293 §3.3.2, figure 5
        Some(match (self, by) {
            (Closed | Listen, SendSyn) => SynSent,
            (Listen, ReceiveSyn) => SynReceived,
            // A SYN crosses ours: simultaneous open (§3.5).
            (SynSent, ReceiveSyn) => SynReceived,
            (SynSent, ReceiveSynAck) => Established,
            (SynReceived, SynAcked) => Established,
            (SynReceived | Established, SendFin) => FinWait1,
            (SynReceived | Established, ReceiveFin) => CloseWait,
            (CloseWait, SendFin) => LastAck,
            (FinWait1, FinAcked) => FinWait2,
            (FinWait1, ReceiveFin) => Closing,
            (FinWait2, ReceiveFin) => TimeWait,
            (Closing, FinAcked) => TimeWait,
            (LastAck, FinAcked) => Closed,
            (TimeWait, Expire) => Closed,
            (_, Abort) => Closed,
            _ => return None,
        })
    }

    /// Both SYNs were exchanged.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// We may still send data.
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }

    /// The peer may still send data.
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

#[cfg(test)]
mod tests {
    use super::{Move::*, State::*, *};

    fn walk(from: State, moves: &[Move]) -> Option<State> {
        moves.iter().try_fold(from, |state, by| state.after(*by))
    }

    #[test]
    fn the_usual_lives() {
        assert_eq!(walk(Closed, &[SendSyn, ReceiveSynAck, SendFin, FinAcked, ReceiveFin, Expire]), Some(Closed));
        assert_eq!(walk(Listen, &[ReceiveSyn, SynAcked, ReceiveFin, SendFin, FinAcked]), Some(Closed));
        assert_eq!(walk(Established, &[SendFin, ReceiveFin, FinAcked]), Some(TimeWait));
        assert_eq!(walk(Closed, &[SendSyn, ReceiveSyn, SynAcked]), Some(Established));
    }

    #[test]
    fn impossible_moves_are_refused() {
        assert_eq!(Closed.after(ReceiveFin), None);
        assert_eq!(TimeWait.after(SendFin), None);
        assert_eq!(FinWait2.after(FinAcked), None);
        assert_eq!(Established.after(ReceiveSynAck), None);
    }
}
