//! The increase of a coupled subflow as a share of single-path TCP's: equations 11 and 12.

/// Two subflows under the coupled control (LIA); the first one's increase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IncrementEfficiency {
    /// Window of the second subflow ÷ window of the first: β = w2/w1.
    pub beta: f64,
    /// RTT of the second subflow ÷ RTT of the first: γ = R2/R1.
    pub gamma: f64,
    /// Window of the first subflow w1, packets.
    pub window: f64,
}

impl IncrementEfficiency {
    /// Increase of the first subflow's window per acknowledged packet, packets: α/W, at most 1/w1.
    pub fn increase(&self) -> f64 {
        self.efficiency() / self.window
    }

    /// The same as a share of TCP's increase alone, 1/w1.
    pub fn efficiency(&self) -> f64 {
        // Eq 11 (RFC 6356 §3): α/W = max(wᵢ/Rᵢ²) / (Σ wᵢ/Rᵢ)². In units of w1 and R1; where the first subflow is the better
        // one, β ≤ γ², this is equation 12.
        let better = (self.beta / (self.gamma * self.gamma)).max(1.0);
        let rates = 1.0 + self.beta / self.gamma;
        (better / (rates * rates)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn efficiency(beta: f64, gamma: f64) -> f64 {
        IncrementEfficiency { beta, gamma, window: 10.0 }.efficiency()
    }

    #[test]
    fn vectors_of_equation_12() {
        assert_eq!(efficiency(2.0, 2.0), 0.25);
        // The paper reads 0.65 off its figure.
        assert!((efficiency(2.0, 8.0) - 0.64).abs() < 1e-12);
        for (beta, gamma) in [(1.0, 2.0), (4.0, 8.0)] {
            assert!((efficiency(beta, gamma) - 4.0 / 9.0).abs() < 1e-12);
        }
        // "By 61 %": the increase is computed with γ = 2, and γ is 8.
        assert!((1.0 - efficiency(2.0, 2.0) / efficiency(2.0, 8.0) - 0.609).abs() < 5e-4);
    }

    #[test]
    fn vectors_of_the_control_itself() {
        // The values of this project's `lia`: windows 10 and 20 with RTTs 100 and 200 ms; 2 and 50 with 10 ms and 1 s.
        for (beta, gamma, window, increase) in [(2.0, 2.0, 10.0, 0.025), (25.0, 100.0, 2.0, 0.32)] {
            assert!((IncrementEfficiency { beta, gamma, window }.increase() - increase).abs() < 1e-12);
        }
    }

    #[test]
    fn where_the_other_subflow_is_better_equation_11_holds() {
        // β = 8 > γ² = 4: max is w2/R2² = 2; (1 + 4)² = 25.
        assert!((efficiency(8.0, 2.0) - 0.08).abs() < 1e-12);
        assert!((efficiency(4.0, 2.0) - 1.0 / 9.0).abs() < 1e-12);
        // Never faster than TCP alone (RFC 6356 §3).
        assert_eq!(efficiency(0.5, 0.1), 1.0);
        let model = IncrementEfficiency { beta: 2.0, gamma: 2.0, window: 20.0 };
        assert_eq!(model.increase(), 0.0125);
    }
}
