//! The applications that advice is for.

use crate::frontier::applications;
use anabranch_metrics::names;
use anabranch_run::RunRecord;
use anabranch_scenario::{Scenario, TrafficKind};
use anabranch_units::Duration;
use serde::{Deserialize, Serialize};

/// Share of late frames at which a call is half as good as without any.
const HALF_AS_GOOD: f64 = 0.01;

/// Use of the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Unlimited data.
    Downloads,
    /// Speech both ways, each frame of which is late 150 ms after its capture.
    Calls,
    /// A page of 1 MB: 40 objects over six connections.
    Pages,
    /// Answers of 30 KB, half a second apart.
    Requests,
    /// 25 frames per second that take 60 % of what all lines carry.
    Frames,
}

impl Use {
    /// All of them, in the order of the answer.
    pub const ALL: [Self; 5] = [Self::Downloads, Self::Calls, Self::Pages, Self::Requests, Self::Frames];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Downloads => "downloads",
            Self::Calls => "calls",
            Self::Pages => "pages",
            Self::Requests => "requests",
            Self::Frames => "frames",
        }
    }

    /// The measure, in words: after it a gain is said.
    pub const fn measure(self) -> &'static str {
        match self {
            Self::Downloads => "more goodput",
            Self::Calls => "fewer late frames",
            Self::Frames => "shorter waits for the slowest frames (95th percentile)",
            Self::Pages => "faster pages",
            Self::Requests => "faster answers",
        }
    }

    /// The paths of `scenario` with this application.
    pub(super) fn over(self, scenario: &Scenario) -> Scenario {
        let base = match self {
            Self::Downloads => "bulk",
            Self::Pages | Self::Requests => "web",
            Self::Calls | Self::Frames => "frames",
        };
        let mut made = applications(scenario, &[base]).remove(0).scenario;
        match self {
            Self::Calls => {
                made.traffic = vec![TrafficKind::CALL.into()];
                made.duration = Some(Duration::from_secs(10) + scenario.start_jitter);
            }
            Self::Requests => {
                let interval = Duration::from_millis(500);
                made.traffic = vec![TrafficKind::Request { request: 400, size: 30_000, interval, count: None }.into()];
                made.duration = Some(Duration::from_secs(10) + scenario.start_jitter);
            }
            Self::Downloads | Self::Pages | Self::Frames => {}
        }
        made
    }

    /// Greater is better; 0 if nothing was done.
    pub(super) fn speed(self, run: &RunRecord) -> f64 {
        let metric = |name: &str| run.metrics.get(name).copied().filter(|value| run.finished && *value > 0.0);
        let inverse = |name: &str| metric(name).map(|value| 1.0 / value);
        let speed = match self {
            Self::Downloads => metric(names::GOODPUT),
            // None late is a result, too.
            Self::Calls => run.metrics.get(names::LATE).map(|late| 1.0 / (late + HALF_AS_GOOD)),
            Self::Frames => inverse("app_delay_p95_s"),
            Self::Pages => inverse(names::COMPLETION),
            Self::Requests => inverse(names::RESPONSE),
        };
        speed.unwrap_or(0.0)
    }
}
