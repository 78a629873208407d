//! Terms of the sums of coupled algorithms.

use crate::flows::{Flow, Flows, view_of};
use anabranch_plugin::schedule::PathView;
use anabranch_units::Duration;

/// The established subflows with an RTT sample, each with its view: coupled sums run over these.
pub fn measured<'a, T>(
    flows: &'a Flows<T>,
    paths: &'a [PathView],
) -> impl Iterator<Item = (&'a Flow<T>, &'a PathView)> + Clone {
    flows.iter().filter_map(|f| Some((f, view_of(paths, f.id).filter(|p| p.srtt.is_some())?)))
}

/// A window in bytes. In fast recovery it is at ssthresh, which is the value that counts (RFC 6356 §3).
pub fn window_bytes<T>(flow: &Flow<T>, path: &PathView) -> f64 {
    f64::from(flow.window.cwnd()) * mss(path)
}

/// A segment size in bytes, at least 1, for use as a factor.
pub fn mss(path: &PathView) -> f64 {
    f64::from(path.mss.max(1))
}

/// The smoothed RTT in seconds, at least a nanosecond, for use as a divisor.
pub fn rtt(path: &PathView) -> f64 {
    path.srtt.unwrap_or(Duration::ZERO).max(Duration::from_nanos(1)).as_secs_f64()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::window::WindowState;
    use anabranch_units::PathId;

    /// A connection in congestion avoidance: (window, RTT in ms, MSS) of each path.
    pub(crate) fn connection<T>(paths: &[(u32, u64, u32)], state: impl Fn(usize) -> T) -> (Flows<T>, Vec<PathView>) {
        let (mut flows, mut views) = (Flows::default(), Vec::new());
        for (i, (cwnd, ms, mss)) in paths.iter().enumerate() {
            let id = PathId(i as u8);
            flows.join(id, 10, state(i));
            flows.get_mut(id).expect("joined").window = WindowState::at(*cwnd, 1);
            views.push(PathView { srtt: Some(Duration::from_millis(*ms)), ..PathView::new(id, *mss) });
        }
        (flows, views)
    }
}
