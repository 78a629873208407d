//! Loss rate of a single flow that fills a bottleneck's buffer, as a function of the buffer's size.

use crate::storage::{Cycle, Storage};
use libm::ceil;

/// One packet is lost per cycle of congestion avoidance, so the loss rate is 1 ÷ packets per cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferbloatLoss {
    /// The bottleneck.
    pub storage: Storage,
    /// Packets that one acknowledgment covers.
    pub delayed_ack: f64,
}

impl BufferbloatLoss {
    /// Packets sent per cycle: N = ⌈μ·T_ca + F⌉, which with the printed T_ca is ⌈(3b/8)(F + 1)² + F⌉.
    pub fn cycle_packets(&self, cycle: Cycle) -> f64 {
        let growing = self.storage.packet_rate() * self.storage.cycle_time(self.delayed_ack, cycle);
        ceil(growing + self.storage.packets() - 1e-9)
    }

    /// 1/N.
    pub fn loss_ratio(&self, cycle: Cycle) -> f64 {
        1.0 / self.cycle_packets(cycle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(buffer: f64, floor_bdp: bool) -> BufferbloatLoss {
        BufferbloatLoss { storage: Storage { buffer, floor_bdp, ..Storage::default() }, delayed_ack: 2.0 }
    }

    #[test]
    fn the_quoted_loss_rates_follow_from_the_printed_cycle_and_a_product_of_12() {
        // B in μτ, N, 1/N in percent, quoted in percent.
        for (buffer, n, percent, quoted) in
            [(0.0, 139.0, 0.719, 0.7), (1.0, 493.0, 0.203, 0.2), (8.0, 9019.0, 0.0111, 0.01)]
        {
            let model = model(buffer, true);
            assert_eq!(model.cycle_packets(Cycle::Printed), n);
            let ratio = model.loss_ratio(Cycle::Printed) * 100.0;
            assert!((ratio / percent - 1.0).abs() < 5e-3 && (ratio / quoted - 1.0).abs() < 0.12, "{ratio}");
        }
    }

    #[test]
    fn the_exact_product_and_the_cycle_of_the_text_give_others() {
        for (buffer, exact, text) in [(0.0, 0.625, 0.879), (1.0, 0.188, 0.225), (8.0, 0.0101, 0.0114)] {
            let exactly = model(buffer, false).loss_ratio(Cycle::Printed) * 100.0;
            assert!((exactly / exact - 1.0).abs() < 6e-3, "{exactly}");
            let as_text = model(buffer, true).loss_ratio(Cycle::Text) * 100.0;
            assert!((as_text / text - 1.0).abs() < 5e-3, "{as_text}");
        }
    }
}
