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
}
