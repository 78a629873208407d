//! Reno: additive increase, multiplicative decrease (RFC 5681, 6582).

use crate::single::{SinglePath, Uncoupled};
use crate::window::{MIN_SSTHRESH, WindowState};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::PathView;

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "reno",
    aliases: &["newreno", "uncoupled"],
    about: "Reno per subflow, uncoupled: one packet more per round trip, half after a loss",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Uncoupled::new(Reno)),
};

const PAGE: &str = "\
## Idea
Probe for capacity by one packet per round trip and halve the window when a packet is lost. Several subflows probe
independently: uncoupled Reno.

## Rule
Slow start, while w < ssthresh: w += 1 per acknowledged packet.
Congestion avoidance: w += 1/w per acknowledged packet.
Loss or ECN mark, once per episode: ssthresh = max(floor(w/2), 2), w = ssthresh.
Retransmission timeout: the same ssthresh, w = 1.
With random loss at probability p the mean window is about sqrt(3/(2p)).

## When it helps
As the yardstick: \"one TCP\" in every statement about fairness means this. On paths whose round-trip time times rate is
below some hundred packets.

## When it hurts
On long fast paths, where a loss costs w/2 round trips. On several subflows through one bottleneck it takes as many
shares as it has subflows. Random loss counts as congestion.

## Departures
Acknowledged packets are counted rather than acknowledgments (RFC 3465 without a limit per acknowledgment), as Linux
does, so delayed acknowledgments do not slow the increase; `tcp.abc_limit` sets that limit. The threshold is half the
window, not half the flight size, again as Linux. During fast recovery the engine's proportional rate reduction replaces
NewReno's window inflation; the window itself is at ssthresh at once.

## References
RFC 5681, RFC 6582, RFC 6937.
";

/// Reno's threshold after a loss (RFC 5681 §3.1 eq 4, with the window in place of the flight size).
pub(crate) fn halved(window: &WindowState) -> u32 {
    (window.cwnd() / 2).max(MIN_SSTHRESH)
}

/// Reno on one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl SinglePath for Reno {
    fn on_ack(&mut self, window: &mut WindowState, ack: &Acked, _path: &PathView) {
        let acked = window.slow_start(ack);
        if acked > 0 {
            window.add(f64::from(acked) / f64::from(window.cwnd())); // RFC 5681 §3.1 eq 3
        }
    }

    fn ssthresh(&mut self, window: &WindowState) -> u32 {
        halved(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_plugin::congestion::Loss;
    use anabranch_units::{Instant, PathId};

    fn after(loss: Loss, cwnd: u32) -> (u32, u32) {
        let mut window = WindowState::at(cwnd, 5);
        Reno.on_loss(&mut window, Instant::ZERO, loss, &PathView::new(PathId(0), 1400));
        (window.cwnd(), window.ssthresh())
    }

    #[test]
    fn loss_vectors() {
        assert_eq!(after(Loss::Fast, 21), (10, 10));
        assert_eq!(after(Loss::Marked, 21), (10, 10));
        assert_eq!(after(Loss::Fast, 3), (2, 2));
        assert_eq!(after(Loss::Timeout { again: false }, 40), (1, 20));
        assert_eq!(after(Loss::Timeout { again: true }, 40), (1, 5));
        assert_eq!(after(Loss::Penalty, 40), (20, 2));
    }

    #[test]
    fn a_tenth_per_packet_at_ten_and_one_packet_per_window() {
        let mut window = WindowState::at(10, 5);
        let path = PathView::new(PathId(0), 1400);
        let mut ack = Acked::default();
        (ack.counted, ack.cwnd_limited, ack.may_grow) = (1, true, true);
        Reno.on_ack(&mut window, &ack, &path);
        assert_eq!(window.exact(), 10.1);
        // A delayed acknowledgment counts as the packets that it acknowledges.
        ack.counted = 2;
        (0..4).for_each(|_| Reno.on_ack(&mut window, &ack, &path));
        assert_eq!(window.cwnd(), 10);
        ack.counted = 1;
        Reno.on_ack(&mut window, &ack, &path);
        assert_eq!(window.cwnd(), 11);
    }
}
