//! Proportional rate reduction: how fast to send during fast recovery (RFC 6937, with Linux's choice of the bound).

/// The effect of an acknowledgment in recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Packets newly acknowledged or SACKed.
    pub delivered: u32,
    /// Packets newly marked lost.
    pub lost: u32,
    /// The cumulative acknowledgment moved.
    pub una_advanced: bool,
}

/// One recovery. All counts in packets.
#[derive(Debug)]
pub(super) struct Prr {
    ssthresh: u32,
    recover_fs: u32,
    delivered: u64,
    sent: u64,
    window: u32,
}

impl Prr {
    /// Recovery begins with `recover_fs` packets outstanding (`RecoverFS`).
    pub fn new(ssthresh: u32, recover_fs: u32) -> Self {
        Self { ssthresh, recover_fs: recover_fs.max(1), delivered: 0, sent: 0, window: 0 }
    }

    /// Packets that may be in flight until the next acknowledgment.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// A packet was sent, new or again.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An acknowledgment that left `in_flight` packets in flight. RFC 6937 §3.1.
    pub fn on_ack(&mut self, progress: &Progress, in_flight: u32) {
        if progress.delivered == 0 {
            return;
        }
        self.delivered += u64::from(progress.delivered);
        let may_send = if in_flight > self.ssthresh {
            // sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            let proportional = self.delivered * u64::from(self.ssthresh);
            proportional.div_ceil(u64::from(self.recover_fs)).saturating_sub(self.sent)
        } else {
            // The conservative bound; while the repair goes well, one packet more: slow start's (PRR-SSRB).
            let conservative = self.delivered.saturating_sub(self.sent).max(u64::from(progress.delivered));
            let bonus = u64::from(progress.una_advanced && progress.lost == 0);
            (conservative + bonus).min(u64::from(self.ssthresh - in_flight))
        };
        // The first retransmission is always allowed.
        let may_send = may_send.max(u64::from(self.sent == 0));
        self.window = in_flight.saturating_add(u32::try_from(may_send).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sack(delivered: u32) -> Progress {
        Progress { delivered, lost: 0, una_advanced: false }
    }

    /// Sends as much as the window allows and says how much that was.
    fn send(prr: &mut Prr, in_flight: &mut u32) -> u32 {
        let n = prr.window().saturating_sub(*in_flight);
        (0..n).for_each(|_| prr.on_sent());
        *in_flight += n;
        n
    }

    #[test]
    fn one_packet_leaves_for_every_two_delivered_until_the_window_is_halved() {
        // 20 packets in flight, the first lost, ssthresh 10: RFC 6937 §3, figure 1.
        let mut prr = Prr::new(10, 20);
        let mut in_flight = 16;
        let mut sent = Vec::new();
        prr.on_ack(&Progress { delivered: 3, lost: 1, una_advanced: false }, in_flight);
        sent.push(send(&mut prr, &mut in_flight));
        for _ in 0..16 {
            in_flight -= 1;
            prr.on_ack(&sack(1), in_flight);
            sent.push(send(&mut prr, &mut in_flight));
        }
        // At the end the window is reached, and every delivered packet is replaced.
        assert_eq!(sent, [2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(in_flight, 10);
    }

    #[test]
    fn after_heavy_losses_only_what_is_delivered_is_replaced() {
        // 20 outstanding, 15 of them lost: RFC 6937 §3, figure 3 (conservative while no progress is made).
        let mut prr = Prr::new(10, 20);
        let mut in_flight = 2;
        prr.on_ack(&Progress { delivered: 3, lost: 15, una_advanced: false }, in_flight);
        assert_eq!(send(&mut prr, &mut in_flight), 3);
        in_flight -= 1;
        prr.on_ack(&sack(1), in_flight);
        assert_eq!(send(&mut prr, &mut in_flight), 1);
        // A partial acknowledgment without a new loss: slow start.
        in_flight -= 1;
        prr.on_ack(&Progress { delivered: 1, lost: 0, una_advanced: true }, in_flight);
        assert_eq!(send(&mut prr, &mut in_flight), 2);
        // One that shows another loss: no more than is delivered.
        in_flight -= 2;
        prr.on_ack(&Progress { delivered: 1, lost: 1, una_advanced: true }, in_flight);
        assert_eq!(send(&mut prr, &mut in_flight), 1);
    }

    #[test]
    fn the_first_retransmission_is_never_held_back() {
        let mut prr = Prr::new(1, 100);
        prr.on_ack(&sack(1), 50);
        assert_eq!(prr.window(), 51);
        prr.on_sent();
        prr.on_ack(&sack(0), 50);
        assert_eq!(prr.window(), 51);
        prr.on_ack(&sack(1), 49);
        assert_eq!(prr.window(), 49);
    }

    #[test]
    fn no_threshold_is_no_overflow() {
        let mut prr = Prr::new(u32::MAX, 0);
        prr.on_ack(&sack(u32::MAX), u32::MAX - 1);
        assert_eq!(prr.window(), u32::MAX);
    }
}
