//! Groups of hosts: pairs that are alike, and the scenario of one pair as if it were alone.

use crate::fabric::Pairing;
use crate::scenario::{PathOptions, PlugIn, Scenario, TimelineChange, TimelineEntry, Traffic};
use anabranch_engine::FirstPath;
use anabranch_units::{Duration, PathId};

/// Pairs of hosts that are alike. What is `None` or empty is as the scenario has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name in results.
    pub name: String,
    /// Pairs of hosts, at least 1.
    pub count: u32,
    /// Paths by index, at least one: each pair has its own copies.
    pub paths: Vec<usize>,
    /// Senders and their receivers, where paths cross a fabric.
    pub pairing: Pairing,
    /// Scheduler, whatever a run compares.
    pub scheduler: Option<PlugIn>,
    /// Congestion control, whatever a run compares.
    pub congestion: Option<PlugIn>,
    /// Whether its hosts speak Multipath TCP.
    pub mptcp: Option<bool>,
    /// Bytes written and not yet acknowledged.
    pub send_buffer: Option<u64>,
    /// Bytes of the receive window.
    pub recv_buffer: Option<u64>,
    /// When its traffic starts.
    pub start: Option<Duration>,
    /// Random delay of each pair's start, below this value.
    pub start_jitter: Option<Duration>,
    /// The applications of each pair; the scenario's if there are none.
    pub traffic: Vec<Traffic>,
}

impl Group {
    /// One pair without paths, with the scenario's settings.
    pub(crate) fn named(name: String) -> Self {
        Self {
            name,
            count: 1,
            paths: Vec::new(),
            pairing: Pairing::default(),
            scheduler: None,
            congestion: None,
            mptcp: None,
            send_buffer: None,
            recv_buffer: None,
            start: None,
            start_jitter: None,
            traffic: Vec::new(),
        }
    }
}

impl Scenario {
    /// The applications of a group.
    pub(crate) fn applications_of<'s>(&'s self, group: &'s Group) -> &'s [Traffic] {
        if group.traffic.is_empty() { &self.traffic } else { &group.traffic }
    }

    /// The applications of all hosts.
    pub(crate) fn applications(&self) -> impl Iterator<Item = &Traffic> {
        let own = self.groups.iter().flat_map(|group| self.applications_of(group));
        let only = self.traffic.iter().filter(|_| self.groups.is_empty());
        only.chain(own)
    }

    /// The scenario of one pair of a group, alone: the group's paths in its order, all links, no cross traffic.
    #[must_use]
    pub fn of_pair(&self, group: &Group) -> Self {
        let place = |path: usize| group.paths.iter().position(|own| *own == path);
        let mut pair =
            Self { fabrics: Vec::new(), groups: Vec::new(), per_pair: Vec::new(), cross: Vec::new(), ..self.clone() };
        pair.topology.paths = group.paths.iter().map(|path| self.topology.paths[*path].clone()).collect();
        pair.paths = group.paths.iter().map(|path| PathOptions { fabric: None, ..self.paths[*path] }).collect();
        pair.traffic = self.applications_of(group).to_vec();
        let keeps =
            |entry: &&TimelineEntry| group.scheduler.is_none() || !matches!(entry.change, TimelineChange::Scheduler(_));
        pair.timeline = self.timeline.iter().filter(keeps).filter_map(|entry| of_paths(entry, place)).collect();
        pair.scheduler = group.scheduler.clone().unwrap_or(pair.scheduler);
        pair.congestion = group.congestion.clone().unwrap_or(pair.congestion);
        pair.start = group.start.unwrap_or(pair.start);
        pair.start_jitter = group.start_jitter.unwrap_or(pair.start_jitter);
        let settings = &mut pair.settings;
        settings.mptcp = group.mptcp.unwrap_or(settings.mptcp);
        settings.send_buffer = group.send_buffer.unwrap_or(settings.send_buffer);
        settings.recv_buffer = group.recv_buffer.unwrap_or(settings.recv_buffer);
        if let FirstPath::On(path) = settings.first_path {
            settings.first_path = place(path.index()).map_or(FirstPath::First, |n| FirstPath::On(PathId(n as u8)));
        }
        pair
    }
}

/// A change as a pair sees it, whose path has another index; `None` if it is of a path that the pair does not have.
fn of_paths(entry: &TimelineEntry, place: impl Fn(usize) -> Option<usize>) -> Option<TimelineEntry> {
    let mut entry = entry.clone();
    let path = match &mut entry.change {
        TimelineChange::Network(change) => change.path_mut(),
        TimelineChange::Option(path, _) => Some(path),
        TimelineChange::Scheduler(_) => None,
    };
    if let Some(path) = path {
        *path = place(*path)?;
    }
    Some(entry)
}
