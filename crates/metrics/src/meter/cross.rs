//! TCP flows beside the connections under test.

use anabranch_trace::{Event, Origin};
use anabranch_units::{ConnId, Duration, Instant, Side};

/// A TCP flow that is cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossFlow {
    /// Id of the flow's connection.
    pub id: ConnId,
    /// Bytes to be delivered; `None` = until the end.
    pub size: Option<u64>,
}

/// Sums over all of them.
#[derive(Clone, Debug)]
pub(super) struct CrossFlows {
    flows: Vec<Progress>,
    /// Bytes delivered in the measured time.
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    flow: CrossFlow,
    started: Option<Instant>,
    /// Bytes delivered since it began.
    delivered: u64,
    completion: Option<Duration>,
}

impl CrossFlows {
    pub fn new(flows: &[CrossFlow]) -> Self {
        let progress = |flow: &CrossFlow| Progress { flow: *flow, started: None, delivered: 0, completion: None };
        Self { flows: flows.iter().map(progress).collect(), delivered: 0 }
    }

    /// The measured time begins.
    pub fn restart(&mut self) {
        self.delivered = 0;
    }

    /// `counts`: in the measured time. A transfer counts as finished whenever it is. Apart, since most runs have none.
    #[cold]
    #[inline(never)]
    pub fn on_event(&mut self, now: Instant, origin: Origin, event: &Event, counts: bool) {
        // They are numbered one after the other.
        let Some(first) = self.flows.first() else { return };
        let place = origin.connection.0.wrapping_sub(first.flow.id.0) as usize;
        let Some(progress) = self.flows.get_mut(place).filter(|p| p.flow.id == origin.connection) else { return };
        match event {
            Event::ControlSent { flags, .. }
                if origin.host == Some(Side::Client) && flags & super::SYN_ACK == super::SYN =>
            {
                progress.started.get_or_insert(now);
            }
            Event::Delivered(range) => {
                progress.delivered += range.len();
                if counts {
                    self.delivered += range.len();
                }
                let done = progress.flow.size.is_some_and(|size| progress.delivered >= size);
                if let (true, None, Some(started)) = (done, progress.completion, progress.started) {
                    progress.completion = Some(now.since(started));
                }
            }
            _ => {}
        }
    }

    /// The metrics, over `time` measured.
    pub fn values(&self, time: Duration) -> [(&'static str, Option<f64>); 3] {
        let any = !self.flows.is_empty();
        let sized = self.flows.iter().any(|progress| progress.flow.size.is_some());
        let finished: Vec<f64> = self.flows.iter().filter_map(|p| p.completion).map(Duration::as_secs_f64).collect();
        let mean = super::ratio(finished.iter().sum(), finished.len() as f64);
        let goodput = super::ratio(self.delivered as f64 * 8.0, time.as_secs_f64());
        [
            ("cross_goodput_bps", goodput.filter(|_| any)),
            ("cross_completion_mean_s", mean),
            ("cross_finished", sized.then_some(finished.len() as f64)),
        ]
    }
}
