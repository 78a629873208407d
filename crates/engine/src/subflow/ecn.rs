//! Explicit congestion notification on one subflow (RFC 3168 §6.1). Each subflow negotiates it alone, and a mark concerns its path
//! alone.
//!
//! Positions are offsets in the subflow's sequence.

use anabranch_wire::{Ecn, Flags, Segment};

/// ECN of one subflow. By default it is not spoken, and no segment has a bit of it.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    /// Marks of the peer's packets are echoed.
    on: bool,
    /// New data is sent as ECN-capable; the peer's echoes count.
    capable: bool,
    /// A mark came, and no CWR of the peer since.
    echoes: bool,
    /// The next new data carries CWR.
    reports: bool,
    /// The end of the data sent when the window was last reduced, for any reason.
    reduced: u64,
    /// The same, when it was last reduced because of a mark, and no timeout came since.
    marked: u64,
    /// A mark requires the last reduction, even if that had another reason.
    justified: bool,
}

/// `segment`, a SYN or SYN/ACK, sets up ECN (RFC 3168 §6.1.1). A SYN/ACK with both bits reflects those of the SYN: its host does
/// not know them.
pub(crate) fn sets_up(segment: &Segment) -> bool {
    let (ece, cwr) = (segment.flags.has(Flags::ECE), segment.flags.has(Flags::CWR));
    ece && cwr != segment.flags.has(Flags::ACK)
}

impl EcnState {
    /// After a handshake. `on`: both ends have set ECN up. `plain`: a SYN of ours did not; then RFC 3168 §6.1.1 forbids ECT, but the
    /// peer may not know.
    pub fn agreed(on: bool, plain: bool) -> Self {
        Self { on, capable: on && !plain, ..Self::default() }
    }

    /// ECN is spoken. Where it is not, nothing else is to be called.
    #[inline(always)]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    // ---- as receiver ----

    /// An acceptable segment came. True if it is to be acknowledged at once: the peer's window shrinks with the first echo, and is
    /// small when CWR comes (Linux).
    #[inline(never)]
    pub fn on_arrival(&mut self, segment: &Segment) -> bool {
        let before = self.echoes;
        let reduced = segment.flags.has(Flags::CWR);
        // RFC 3168 §6.1.3: until CWR comes; a mark on the same packet is a new one
        self.echoes &= !reduced;
        // RFC 3168 §6.1.4: a pure acknowledgment is never ECN-capable, so that a mark on it means nothing.
        let carries = !segment.payload.is_empty();
        self.echoes |= carries && segment.ecn == Ecn::Ce;
        carries && (reduced || self.echoes != before)
    }

    // ---- as sender ----

    /// Completes a segment that acknowledges. `new`: its payload is sent for the first time.
    #[inline(never)]
    pub fn complete(&mut self, out: &mut Segment, new: bool) {
        if self.echoes {
            // RFC 3168 §6.1.3: in every acknowledgment
            out.flags = out.flags | Flags::ECE;
        }
        // RFC 3168 §6.1.4, §6.1.5, §6.1.6: neither on pure acknowledgments, nor on what is retransmitted, nor on window probes
        if self.capable && new && !out.payload.is_empty() {
            out.ecn = Ecn::Ect0;
            if core::mem::take(&mut self.reports) {
                // RFC 3168 §6.1.2: on the first new data after the reduction
                out.flags = out.flags | Flags::CWR;
            }
        }
    }

    /// An acknowledgment echoes a mark, and everything below `una` is acknowledged. True if the window is to be reduced: once in a
    /// window of data (RFC 3168 §6.1.2). What is sent after a reduction begins with CWR, and only its acknowledgment can bring an echo
    /// that is no answer to older marks.
    pub fn is_new_mark(&self, una: u64) -> bool {
        self.capable && una > self.reduced
    }

    /// An acknowledgment echoes a mark.
    pub fn on_echo(&mut self) {
        self.justified = self.capable;
    }

    /// The congestion control learned of a new mark, when everything below `nxt` had been sent. `heeded`: it reduced the window.
    pub fn on_marked(&mut self, nxt: u64, heeded: bool) {
        self.on_reduced(nxt);
        self.justified = true;
        if heeded {
            self.marked = nxt;
        }
    }

    /// The window was reduced, when everything below `nxt` had been sent. RFC 3168 §6.1.2: the peer learns it whatever the reason.
    pub fn on_reduced(&mut self, nxt: u64) {
        if self.capable {
            self.reports = true;
            self.reduced = nxt;
            self.justified = false;
        }
    }

    /// The same because of a timeout. `again`: a further reduction of the same episode, which is undone as a whole. RFC 3168 §6.1.2: a
    /// retransmission that is lost afterwards is a new sign of congestion, in a marked window too.
    pub fn on_timeout(&mut self, nxt: u64, again: bool) {
        let justified = self.justified && again;
        self.on_reduced(nxt);
        self.justified = justified;
        self.marked = 0;
    }

    /// A mark requires the last reduction: it stands even if nothing was lost.
    pub const fn is_justified(&self) -> bool {
        self.justified
    }

    /// The last reduction because of a loss was undone: the peer need not learn of it, and its echoes count as before.
    pub fn on_undo(&mut self) {
        self.reports = false;
        self.reduced = self.marked;
    }

    /// A loss is found while everything below `una` is acknowledged: the window has been reduced for this window of data already,
    /// because of a mark (RFC 3168 §6.1.2).
    pub fn covers_loss(&self, una: u64) -> bool {
        una < self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn segment(flags: Flags, ecn: Ecn, payload: &'static [u8]) -> Segment {
        Segment { flags, ecn, payload: Bytes::from_static(payload), ..Segment::default() }
    }

    fn data(ecn: Ecn) -> Segment {
        segment(Flags::ACK, ecn, b"data")
    }

    fn sent(state: &mut EcnState, new: bool, payload: &'static [u8]) -> (Flags, Ecn) {
        let mut out = segment(Flags::ACK, Ecn::NotEct, payload);
        state.complete(&mut out, new);
        (out.flags, out.ecn)
    }

    #[test]
    fn a_handshake_sets_it_up_with_these_bits_alone() {
        let (syn, syn_ack, ece, cwr) = (Flags::SYN, Flags::SYN | Flags::ACK, Flags::ECE, Flags::CWR);
        for (flags, sets) in [
            (syn | ece | cwr, true),
            (syn | ece, false),
            (syn | cwr, false),
            (syn, false),
            (syn_ack | ece, true),
            (syn_ack | ece | cwr, false),
            (syn_ack | cwr, false),
            (syn_ack, false),
        ] {
            assert_eq!(sets_up(&segment(flags, Ecn::NotEct, b"")), sets, "{flags}");
        }
    }

    #[test]
    fn a_mark_is_echoed_until_the_peer_says_that_it_reduced() {
        let mut state = EcnState::agreed(true, false);
        assert!(!state.on_arrival(&data(Ecn::Ect0)));
        assert_eq!(sent(&mut state, false, b""), (Flags::ACK, Ecn::NotEct));
        assert!(state.on_arrival(&data(Ecn::Ce)));
        assert!(!state.on_arrival(&data(Ecn::Ce)), "known already");
        for _ in 0..3 {
            assert_eq!(sent(&mut state, false, b""), (Flags::ACK | Flags::ECE, Ecn::NotEct));
        }
        let reduced = |ecn| segment(Flags::ACK | Flags::CWR, ecn, b"data");
        assert!(state.on_arrival(&reduced(Ecn::Ce)), "a mark of its own");
        assert_eq!(sent(&mut state, false, b"").0, Flags::ACK | Flags::ECE);
        assert!(state.on_arrival(&reduced(Ecn::Ect0)));
        assert_eq!(sent(&mut state, false, b"").0, Flags::ACK);
        // A pure acknowledgment cannot be marked.
        assert!(!state.on_arrival(&segment(Flags::ACK, Ecn::Ce, b"")));
        assert_eq!(sent(&mut state, false, b"").0, Flags::ACK);
    }

    #[test]
    fn new_data_alone_is_capable_and_says_once_that_the_window_was_reduced() {
        let mut state = EcnState::agreed(true, false);
        state.on_marked(100, true);
        assert_eq!(sent(&mut state, false, b"again"), (Flags::ACK, Ecn::NotEct));
        assert_eq!(sent(&mut state, true, b""), (Flags::ACK, Ecn::NotEct), "a FIN");
        assert_eq!(sent(&mut state, true, b"new"), (Flags::ACK | Flags::CWR, Ecn::Ect0));
        assert_eq!(sent(&mut state, true, b"new"), (Flags::ACK, Ecn::Ect0));
    }

    #[test]
    fn a_window_of_data_is_marked_once() {
        let mut state = EcnState::agreed(true, false);
        assert!(state.is_new_mark(1));
        state.on_marked(100, true);
        assert!(!state.is_new_mark(50) && !state.is_new_mark(100) && state.is_new_mark(101));
        assert!(state.covers_loss(99) && !state.covers_loss(100));
        // A loss in the next window counts, and marks of that window do not any more.
        state.on_reduced(200);
        assert!(!state.is_new_mark(200) && !state.covers_loss(150));
        state.on_undo();
        assert!(state.is_new_mark(150));
        assert_eq!(sent(&mut state, true, b"new").0, Flags::ACK);
    }

    #[test]
    fn a_mark_that_is_not_heeded_covers_no_loss() {
        let mut state = EcnState::agreed(true, false);
        state.on_marked(100, false);
        assert!(!state.covers_loss(50) && !state.is_new_mark(100));
        assert_eq!(sent(&mut state, true, b"new").0, Flags::ACK | Flags::CWR);
    }

    #[test]
    fn a_mark_covers_no_loss_after_a_timeout() {
        let mut state = EcnState::agreed(true, false);
        state.on_marked(100, true);
        state.on_timeout(100, false);
        assert!(!state.covers_loss(50) && !state.is_new_mark(100));
    }

    #[test]
    fn an_echo_justifies_the_reduction_before_it() {
        let mut state = EcnState::agreed(true, false);
        state.on_reduced(100);
        assert!(!state.is_justified());
        state.on_echo();
        assert!(state.is_justified());
        // A further timeout of the same episode, and one of a new episode
        state.on_timeout(100, true);
        assert!(state.is_justified());
        state.on_timeout(200, false);
        assert!(!state.is_justified());
        state.on_marked(300, true);
        assert!(state.is_justified());
        let mut incapable = EcnState::agreed(true, true);
        incapable.on_echo();
        assert!(!incapable.is_justified());
    }

    #[test]
    fn a_host_that_gave_up_the_offer_echoes_and_sends_no_ect() {
        let mut state = EcnState::agreed(true, true);
        assert!(state.is_on() && state.on_arrival(&data(Ecn::Ce)) && !state.is_new_mark(9));
        state.on_reduced(5);
        assert_eq!(sent(&mut state, true, b"new"), (Flags::ACK | Flags::ECE, Ecn::NotEct));
        assert!(!EcnState::agreed(false, false).is_on());
    }
}
