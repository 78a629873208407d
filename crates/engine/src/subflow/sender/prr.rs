//! Proportional rate reduction (RFC 6937, with the reduction bound of RFC 9937's slow start when things go well).

/// How much may be sent during fast recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    ssthresh: u64,
    /// Packets outstanding when recovery began (`RecoverFS`).
    flight: u64,
    delivered: u64,
    out: u64,
    /// Packets that may be sent now.
    allowance: u32,
}

impl Prr {
    /// Recovery begins with `flight` packets outstanding; at least one retransmission may be sent.
    pub fn begin(ssthresh: u32, flight: u32) -> Self {
        Self { ssthresh: ssthresh.into(), flight: u64::from(flight).max(1), allowance: 1, ..Self::default() }
    }

    /// An acknowledgment delivered `packets`; `pipe` are in flight; `progress`: it advanced and marked nothing lost.
    pub fn on_ack(&mut self, packets: u32, pipe: u32, progress: bool) {
        let (packets, pipe) = (u64::from(packets), u64::from(pipe));
        self.delivered += packets;
        let count = if pipe > self.ssthresh {
            // RFC 6937 §3.1: proportional rate reduction
            (self.delivered * self.ssthresh).div_ceil(self.flight).saturating_sub(self.out)
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(packets) + u64::from(progress);
            bound.min(self.ssthresh - pipe)
        };
        // The first retransmission is never held back.
        self.allowance = count.max(u64::from(self.out == 0)) as u32;
    }

    /// A packet left.
    pub fn on_sent(&mut self) {
        self.out += 1;
        self.allowance = self.allowance.saturating_sub(1);
    }

    pub fn allowance(&self) -> u32 {
        self.allowance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_packet_for_each_delivered() {
        // RFC 6937 §4: ssthresh is half of the flight of 20, one lost.
        let mut prr = Prr::begin(10, 20);
        let (mut pipe, mut sent) = (16, 0);
        for _ in 0..16 {
            prr.on_ack(1, pipe, false);
            pipe -= 1;
            for _ in 0..prr.allowance() {
                prr.on_sent();
                pipe += 1;
                sent += 1;
            }
        }
        assert!((8..=9).contains(&sent), "{sent}");
        assert!((9..=10).contains(&pipe), "{pipe}");
    }
}
