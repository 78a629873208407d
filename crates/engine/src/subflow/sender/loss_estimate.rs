//! How often a path loses: loss episodes per packet.

/// Weight of one packet. The memory is about its inverse.
const GAIN: f64 = 1.0 / 256.0;

/// A moving average that forgets by packets, not by time.
#[derive(Debug, Default)]
pub(super) struct LossEstimate(f64);

impl LossEstimate {
    /// Packets arrived. Each weighs the past by 1/(1 + gain), which for the few that one acknowledgment reports is
    /// as good as the power and needs none.
    pub fn on_delivered(&mut self, packets: u32) {
        if self.0 > 0.0 {
            self.0 /= 1.0 + GAIN * f64::from(packets);
        }
    }

    /// A recovery or a timeout began.
    pub fn on_episode(&mut self) {
        self.0 = (self.0 + GAIN) / (1.0 + GAIN);
    }

    /// Episodes per packet, 0 to 1.
    pub fn get(&self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_at_the_rate_of_episodes() {
        let mut loss = LossEstimate::default();
        assert_eq!(loss.get(), 0.0);
        for _ in 0..100 {
            loss.on_episode();
            (0..50).for_each(|_| loss.on_delivered(2));
        }
        // Just before the next episode it is a little below one in 101.
        assert!((0.7 / 101.0..1.0 / 101.0).contains(&loss.get()), "{}", loss.get());
        (0..2560).for_each(|_| loss.on_delivered(1));
        assert!(loss.get() < 1e-6);
    }
}
