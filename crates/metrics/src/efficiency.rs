//! How much of a single path's increase a coupled congestion control allows itself on its better path.

use anabranch_trace::WindowChange;
use anabranch_units::PathId;

/// The increment efficiency of LIA over two paths (Chen and Towsley, eq. 12): on the path with the greater w/RTT² its window
/// grows by 1/(1 + β/γ)² of what a single path's would, with β = w₂/w₁ the ratio of the windows and γ = R₂/R₁ that of the
/// round-trip times, the other path's above.
#[derive(Clone, Copy, Debug, Default)]
pub struct IncrementEfficiency {
    /// Window in packets and RTT in seconds, of each path that has both.
    paths: [Option<(f64, f64)>; 2],
}

impl IncrementEfficiency {
    /// A path's window and RTT now; `None` when it is gone. Only the paths 0 and 1 count.
    pub fn set(&mut self, path: PathId, window: Option<&WindowChange>) {
        let Some(slot) = self.paths.get_mut(path.index()) else { return };
        let known = window.filter(|w| w.cwnd > 0 && !w.srtt.is_zero());
        *slot = known.map(|w| (f64::from(w.cwnd), w.srtt.as_secs_f64()));
    }

    /// Value of the efficiency; `None` unless both paths have a window and an RTT.
    pub fn value(&self) -> Option<f64> {
        let [Some(a), Some(b)] = self.paths else { return None };
        let gain = |(w, rtt): (f64, f64)| w / (rtt * rtt);
        let (better, other) = if gain(a) >= gain(b) { (a, b) } else { (b, a) };
        let root = 1.0 + (other.0 / other.1) / (better.0 / better.1);
        Some(1.0 / (root * root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Duration;

    fn efficiency(windows: [(u32, u64); 2]) -> Option<f64> {
        let mut efficiency = IncrementEfficiency::default();
        for (path, (cwnd, ms)) in (0..).zip(windows) {
            let srtt = Duration::from_millis(ms);
            let window = WindowChange { cwnd, ssthresh: u32::MAX, in_flight: 0, srtt, rtt: None };
            efficiency.set(PathId(path), Some(&window));
        }
        efficiency.value()
    }

    /// (β, γ) of the paper's figure 6, and the same with the paths' places changed.
    #[test]
    fn the_published_points() {
        for (beta, gamma, value) in [(2, 2, 0.25), (2, 8, 0.64), (1, 2, 4.0 / 9.0), (4, 8, 4.0 / 9.0)] {
            for (windows, what) in
                [([(10, 20), (10 * beta, 20 * gamma)], "as is"), ([(10 * beta, 20 * gamma), (10, 20)], "swapped")]
            {
                let ours = efficiency(windows).unwrap();
                assert!((ours - value).abs() < 1e-12, "{beta} {gamma} {what}: {ours}");
            }
        }
    }

    #[test]
    fn both_paths_must_be_known() {
        assert_eq!(efficiency([(10, 20), (10, 0)]), None);
        let mut one = IncrementEfficiency::default();
        one.set(PathId(7), None);
        assert_eq!(one.value(), None);
    }
}
