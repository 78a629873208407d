//! The end of our stream: DATA_FIN, and the FINs of subflows (RFC 8684 §3.3.3, RFC 9293 §3.10.4).

use super::Sending;
use crate::subflow::{Subflow, Subflows};

impl Sending {
    /// After the last data comes the end. `informed`: the peer is known to hold the connection for plain TCP, if it is.
    pub fn settle(&mut self, informed: bool, subflows: &mut Subflows) {
        if !self.is_plain() {
            return self.settle_data_fin();
        }
        // RFC 9293 §3.10.4: FIN after the last data. What is queued may still be taken back. A peer that does not know yet that
        // this is plain TCP would take the FIN for the end of a subflow only.
        if self.stream.is_finished() && informed && self.all_sent() {
            subflows.iter_mut().for_each(Subflow::finish);
        }
    }

    /// In plain TCP the FIN is the end of the stream (RFC 9293 §3.6). A peer that does not know of a fall back acknowledges it, too,
    /// and waits for mappings: its own FIN shows that it does not (RFC 8684 §3.7).
    pub fn note_closed(&mut self, subflows: &[Subflow]) {
        let ended = self.is_plain() && self.stream.is_finished() && self.all_delivered();
        if ended && subflows.iter().any(Subflow::has_closed) {
            self.stream.data_fin.on_acked();
        }
    }
}
