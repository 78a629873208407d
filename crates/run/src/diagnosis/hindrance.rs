//! Hindrances of a run, and the same scenario without each.

use super::{DiagnosisKind, listed, product, size};
use crate::plan::loss_is_random;
use anabranch_engine::FirstPath;
use anabranch_network::{Change, LossSpec};
use anabranch_scenario::{Over, Scenario, TimelineChange};
use anabranch_units::PathId;

/// A receive window of so many times what the paths need is no limit.
const AMPLE: u64 = 4;
/// Where the need is not known: so many times what it is.
const WIDER: u64 = 16;

/// Something that may hold runs back, and can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// The receive window, and the send buffer, which bounds it.
    Window,
    /// Random losses on the path with this index.
    Loss(usize),
    /// Other flows where the cross traffic with this index is; the first one there.
    Cross(usize),
    /// The path that the connection opens over, where the one with this index is better.
    FirstPath(usize),
}

impl Hindrance {
    /// Those of a scenario, but for those that runs tell: whether the window was full, and which path is best alone.
    pub fn of(scenario: &Scenario) -> Vec<Self> {
        let mut all: Vec<Self> =
            (0..scenario.topology.paths.len()).filter(|path| is_lossy(scenario, *path)).map(Self::Loss).collect();
        for cross in &scenario.cross {
            let first = scenario.cross.iter().position(|other| other.over == cross.over).unwrap_or(0);
            if !all.contains(&Self::Cross(first)) {
                all.push(Self::Cross(first));
            }
        }
        all
    }

    /// The scenario without it. Every random stream has a name of its own, so the others draw what they drew.
    pub fn without(self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        match self {
            Self::Window => {
                let ample = ample(&scenario);
                scenario.settings.recv_buffer = ample;
                scenario.settings.send_buffer = scenario.settings.send_buffer.max(ample);
            }
            Self::Loss(path) => {
                let spec = &mut scenario.topology.paths[path];
                (spec.down.loss, spec.up.loss) = (LossSpec::None, LossSpec::None);
                scenario.timeline.retain(|entry| !changes_loss(&entry.change, path));
            }
            Self::Cross(first) => {
                let over = scenario.cross[first].over.clone();
                scenario.cross.retain(|cross| cross.over != over);
            }
            Self::FirstPath(path) => scenario.settings.first_path = FirstPath::On(PathId(path as u8)),
        }
        scenario
    }

    /// Kind of finding.
    pub fn kind(self) -> DiagnosisKind {
        match self {
            Self::Window => DiagnosisKind::Window,
            Self::Loss(_) => DiagnosisKind::Loss,
            Self::Cross(_) => DiagnosisKind::Cross,
            Self::FirstPath(_) => DiagnosisKind::FirstPath,
        }
    }

    /// Name of the hindrance, as the limit of a run: `loss on wlan`.
    pub fn name(self, scenario: &Scenario) -> String {
        let topology = &scenario.topology;
        match self {
            Self::Window => "the receive window".to_owned(),
            Self::Loss(path) => format!("loss on {}", topology.paths[path].name),
            Self::FirstPath(_) => "the path that it opens over".to_owned(),
            Self::Cross(first) => match &scenario.cross[first].over {
                Over::Path(path) => format!("other flows over {}", topology.paths[*path].name),
                Over::Links(links) => {
                    format!("other flows over {}", listed(links.iter().map(|link| topology.links[*link].name.as_str())))
                }
            },
        }
    }

    /// The change that makes the difference: `without it`.
    pub fn remedy(self, scenario: &Scenario) -> String {
        match self {
            Self::Window => format!(
                "with recv_buffer = {} instead of {}",
                size(ample(scenario)),
                size(scenario.settings.recv_buffer)
            ),
            Self::Loss(_) => "without it".to_owned(),
            Self::Cross(_) => "without them".to_owned(),
            Self::FirstPath(path) => format!("with connection.first_path = {:?}", scenario.topology.paths[path].name),
        }
    }
}

/// A receive buffer that limits no run.
fn ample(scenario: &Scenario) -> u64 {
    let has = scenario.settings.recv_buffer;
    let needed = product(scenario).map_or(has * WIDER, |needed| needed * AMPLE);
    needed.max(has * 2).next_power_of_two()
}

fn is_lossy(scenario: &Scenario, path: usize) -> bool {
    let spec = &scenario.topology.paths[path];
    [&spec.down.loss, &spec.up.loss].into_iter().any(loss_is_random)
        || scenario.timeline.iter().any(|entry| changes_loss(&entry.change, path))
}

fn changes_loss(change: &TimelineChange, path: usize) -> bool {
    matches!(change, TimelineChange::Network(Change::Loss(of, ..)) if *of == path)
}
