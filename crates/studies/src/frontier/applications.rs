//! The applications that run over every path set.

use super::mirrored::mirrored;
use anabranch_network::{BottleneckSpec, PathSpec, Topology};
use anabranch_scenario::{ConnectionsPer, ObjectSizes, Scenario, Traffic, TrafficKind};
use anabranch_units::{Direction, Duration, Rate, TrafficDirection};

/// An application over a path set.
#[derive(Clone, Debug)]
pub struct Application {
    /// `bulk`, `256 KB`, `frames`.
    pub name: &'static str,
    /// The path set with it.
    pub scenario: Scenario,
}

/// Every application, in the order of the tables.
pub const APPLICATIONS: [&str; 7] = [BULK, SMALL, WEB, "256 KB", "2 MB", "8 MB", FRAMES];
const BULK: &str = "bulk";
const WEB: &str = "web";
const FRAMES: &str = "frames";
/// Twelve packets, of which the first subflow's initial window takes ten: it leaves almost nothing to schedule,
/// so it runs only on request.
const SMALL: &str = "16 KB";

/// The applications unless the user names others: without transfers of 16 KB.
pub fn usual_applications() -> Vec<&'static str> {
    APPLICATIONS.into_iter().filter(|name| *name != SMALL).collect()
}

/// Bulk and frames last so long, if that is not too much data.
const LONGEST: Duration = Duration::from_secs(10);
/// The most data that the paths of a set could carry in that time.
const MOST_BYTES: u64 = 25_000_000;
/// They last so long at least, however much it is.
const SHORTEST: Duration = Duration::from_secs(2);
/// A transfer that takes longer is given up: it counts as never finished.
const PATIENCE: Duration = Duration::from_secs(60);

const TRANSFERS: [(&str, u64); 4] = [(SMALL, 16_000), ("256 KB", 256_000), ("2 MB", 2_000_000), ("8 MB", 8_000_000)];

/// A page: bytes, objects, connections, bytes of a request.
const PAGE: (u64, u32, u32, u64) = (1_000_000, 40, 6, 400);

/// Frames per second, and the part of what all paths together carry that they take.
const FRAME_INTERVAL: Duration = Duration::from_millis(40);
const FRAME_PERCENT: u64 = 60;

/// The applications `names` of [`APPLICATIONS`], in that order; if the path set's own traffic is of several flows, each is
/// shared equally among this number of connections, except for pages, which always have six.
pub fn applications(paths: &Scenario, names: &[&str]) -> Vec<Application> {
    let asked = APPLICATIONS.into_iter().filter(|name| names.contains(name));
    asked.map(|name| Application { name, scenario: scenario(paths, name) }).collect()
}

fn scenario(paths: &Scenario, name: &str) -> Scenario {
    let direction = paths.direction();
    let capacity = capacity(&paths.topology, direction.first());
    let flows = paths.traffic.first().map_or(1, |traffic| traffic.flows).max(1);
    let each = |size: u64| (size / u64::from(flows)).max(1);
    let (kind, duration) = match name {
        BULK => (TrafficKind::Bulk { size: None }, unlimited(capacity)),
        WEB => (page(), PATIENCE),
        FRAMES => {
            let size = each(capacity.bytes_in(FRAME_INTERVAL) * FRAME_PERCENT / 100);
            (TrafficKind::Frames { size, interval: FRAME_INTERVAL, count: None, deadline: None }, unlimited(capacity))
        }
        _ => {
            let size = TRANSFERS.iter().find(|(known, _)| *known == name).map(|(_, size)| each(*size));
            (TrafficKind::Bulk { size }, PATIENCE)
        }
    };
    let flows = if matches!(kind, TrafficKind::Web { .. }) { 1 } else { flows };
    // The server of a page over the paths of an upload is at their near end.
    let (direction, paths) = match direction {
        TrafficDirection::Up if kind.has_requests() => (TrafficDirection::Down, &mirrored(paths.clone())),
        _ if kind.has_requests() => (TrafficDirection::Down, paths),
        _ => (direction, paths),
    };
    let mut scenario = Scenario {
        traffic: vec![Traffic { flows, direction, ..kind.into() }],
        duration: Some(duration + paths.start_jitter),
        warmup: Duration::ZERO,
        ..paths.clone()
    };
    // Applications for which delay counts set TCP_NODELAY.
    scenario.settings.tcp.nagle &= matches!(name, BULK) || TRANSFERS.iter().any(|(known, _)| *known == name);
    scenario
}

fn page() -> TrafficKind {
    let (size, objects, connections, request) = PAGE;
    let connections_per = ConnectionsPer::Page;
    TrafficKind::Web { size, objects, connections, connections_per, sizes: ObjectSizes::Lognormal, request }
}

fn unlimited(capacity: Rate) -> Duration {
    LONGEST.min(capacity.time_for(MOST_BYTES)).max(SHORTEST)
}

/// The bottleneck of a path on this way, unless it is shared.
fn own(path: &PathSpec, way: Direction) -> Option<&BottleneckSpec> {
    path.way(way).bottleneck.own()
}

/// The capacity of all paths together on this way, at first; of a recording, its mean; of a policed path, its contract.
fn capacity(topology: &Topology, way: Direction) -> Rate {
    let links = topology.links.iter().map(|link| link.bottleneck(way));
    let bps = |bottleneck: &BottleneckSpec| {
        let contract = bottleneck.police.map_or(u64::MAX, |police| police.rate.as_bps());
        bottleneck.capacity.initial_rate().as_bps().min(contract)
    };
    let own = topology.paths.iter().filter_map(|path| own(path, way));
    Rate::from_bps(own.chain(links).map(bps).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::Document;

    #[test]
    fn applications_over_an_upload_send_up() {
        let text = "[[path]]\nname = 'a'\nrate = { down = '80mbit', up = '8mbit' }\ndelay = '5ms'\n\
                    [[traffic]]\nkind = 'bulk'\nsize = '1MB'\ndirection = 'up'\n";
        let scenario = Document::parse("x.toml", text).unwrap().scenario;
        let [bulk, page, frames] = &applications(&scenario, &[BULK, WEB, FRAMES])[..] else { panic!("three") };
        assert_eq!(bulk.scenario.direction(), TrafficDirection::Up);
        let TrafficKind::Frames { size, .. } = frames.scenario.traffic[0].kind else { panic!("frames") };
        // 60 % of what passes up in 40 ms.
        assert_eq!((frames.scenario.direction(), size), (TrafficDirection::Up, 24_000));
        // The page's server has the thin direction.
        assert_eq!(page.scenario.direction(), TrafficDirection::Down);
        assert_eq!(page.scenario.topology.paths[0].down, scenario.topology.paths[0].up);
    }

    #[test]
    fn frames_over_a_policed_path_fit_its_contract() {
        let text = |police: &str| {
            let paths = format!("[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '5ms'\n{police}\n");
            format!("{paths}[[traffic]]\nkind = 'bulk'\nsize = '1MB'\n")
        };
        let size = |police: &str| {
            let scenario = Document::parse("x.toml", &text(police)).unwrap().scenario;
            match applications(&scenario, &[FRAMES]).remove(0).scenario.traffic[0].kind {
                TrafficKind::Frames { size, .. } => size,
                _ => panic!("frames"),
            }
        };
        // 60 % of what passes in 40 ms.
        assert_eq!(size(""), 60_000);
        assert_eq!(size("police = { rate = '5mbit', burst = '20KB' }"), 15_000);
        assert_eq!(size("police = { rate = '50mbit', burst = '20KB' }"), 60_000);
    }
}
