//! Measures the emulated paths from outside, before a run.
//!
//! The hosts and the world of the measurement are separate and temporary: the run that follows starts in a fresh world.
//! Loss, reordering, cross traffic, outages and the timeline are not measured.

mod estimate;

use crate::probe::Probe;
use crate::{LabError, RealTime, privilege};
use anabranch_network::{BottleneckSpec, CapacitySpec, LinkSpec, PathSpec, QueueSpec, Topology, WaySpec};
use anabranch_run::layout::host;
use anabranch_run::{Driver, Job, Plan, Preflight, Refusal, RunError, RunOutcome, WayCheck, WayFigures};
use anabranch_scenario::Host;
use anabranch_trace::Recorder;
use anabranch_units::{Direction, Duration, Side};
use estimate::Sounding;
use std::sync::{Mutex, PoisonError};

/// Measures every direction of every measurable path, within `limit`.
///
/// # Errors
/// A lack of privilege, or a failed system call.
pub fn preflight(topology: &Topology, v6: bool, limit: Duration) -> Result<Preflight, LabError> {
    compare(topology, topology, v6, limit)
}

/// Measures `actual`, and compares it with `configured`, which has the same paths.
///
/// # Errors
/// As [`preflight`].
pub fn compare(configured: &Topology, actual: &Topology, v6: bool, limit: Duration) -> Result<Preflight, LabError> {
    privilege::acquire()?;
    let begun = std::time::Instant::now();
    let mut probe = Probe::new(&clean(actual), 0, v6)?;
    let mut spent = Duration::ZERO;
    let mut ways = Vec::new();
    for (n, path) in configured.paths.iter().enumerate() {
        for (direction, way) in [(Direction::Down, &path.down), (Direction::Up, &path.up)] {
            let Some((_, bottleneck)) = configured.narrowest(n, direction) else { continue };
            let delay = configured.delay(path, direction);
            let mut check = WayCheck::new(&path.name, direction, figures(bottleneck, delay));
            match Sounding::new(bottleneck, way.overhead) {
                _ if way.bottleneck.route().len() > 1 => check.skipped = Some("it crosses several links".into()),
                None => check.skipped = Some("its capacity is recorded".into()),
                Some(sounding) => {
                    let takes = sounding.lasts + delay;
                    if spent + takes > limit {
                        check.skipped = Some(format!("it would take {:.1} s", takes.as_secs_f64()));
                    } else {
                        spent += takes;
                        sound(&mut probe, n, direction, &sounding, &mut check)?;
                    }
                }
            }
            ways.push(check);
        }
    }
    Ok(Preflight { took_s: begun.elapsed().as_secs_f64(), late_p99_s: probe.lateness().p99.as_secs_f64(), ways })
}

fn sound(
    probe: &mut Probe,
    path: usize,
    direction: Direction,
    sounding: &Sounding,
    check: &mut WayCheck,
) -> Result<(), LabError> {
    let samples = probe.send(path, direction, &sounding.shots, Duration::ZERO)?;
    let found = sounding.found(&samples);
    check.configured.queue_packets = sounding.queue.map(f64::from);
    check.measured =
        WayFigures { rate_bps: found.rate_bps, delay_s: found.delay_s, queue_packets: found.queue_packets };
    check.jitter_s = found.jitter_s;
    check.judge();
    Ok(())
}

/// The paths without random events and without a schedule.
fn clean(topology: &Topology) -> Topology {
    let way = |way: &WaySpec| WaySpec { overhead: way.overhead, ..WaySpec::clean(way.bottleneck.clone(), way.delay) };
    let path = |path: &PathSpec| PathSpec { name: path.name.clone(), down: way(&path.down), up: way(&path.up) };
    let link = |link: &LinkSpec| LinkSpec {
        behind: link.behind.as_ref().map(|behind| Box::new([way(&behind[0]), way(&behind[1])])),
        ..link.clone()
    };
    Topology { paths: topology.paths.iter().map(path).collect(), links: topology.links.iter().map(link).collect() }
}

fn figures(bottleneck: &BottleneckSpec, delay: Duration) -> WayFigures {
    WayFigures {
        rate_bps: match &bottleneck.capacity {
            CapacitySpec::Fixed(_) | CapacitySpec::Bucket(_) => {
                Some(bottleneck.capacity.initial_rate().as_bps() as f64)
            }
            CapacitySpec::Trace(_) | CapacitySpec::Steps(_) => None,
        },
        delay_s: Some(delay.as_secs_f64()),
        queue_packets: match bottleneck.queue {
            QueueSpec::Packets(packets) => Some(packets.into()),
            // A queue that counts bytes, or is actively managed, has no configured limit in packets.
            QueueSpec::Bytes(_) | QueueSpec::Managed(..) => None,
        },
    }
}

/// The real-time driver, with each network measured before its first run.
#[derive(Debug)]
pub struct Preflighted {
    limit: Duration,
    known: Mutex<Vec<(Topology, bool, Preflight)>>,
}

impl Preflighted {
    /// A driver that measures within `limit` per network.
    pub fn new(limit: Duration) -> Self {
        Self { limit, known: Mutex::new(Vec::new()) }
    }

    /// The measurement of a job's network, made at its first use.
    fn of(&self, job: &Job) -> Result<Preflight, LabError> {
        let (topology, v6) = (&job.scenario.topology, job.scenario.hosts.ip == 6);
        // The lock is held while measuring, because other measurements would disturb this one.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., preflight)) = known.iter().find(|(of, ip, _)| (of, *ip) == (topology, v6)) {
            return Ok(preflight.clone());
        }
        let preflight = preflight(topology, v6, self.limit)?;
        known.push((topology.clone(), v6, preflight.clone()));
        Ok(preflight)
    }
}

impl Driver for Preflighted {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        RealTime.prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        // Between two engines no packet leaves the process.
        let kernels = [Side::Client, Side::Server].into_iter().any(|side| host(job, side) == Host::Linux);
        let preflight = kernels.then(|| self.of(job)).transpose();
        let preflight = preflight.map_err(|error| match error {
            LabError::Interrupted => RunError::Interrupted,
            error => RunError::Fault { what: error.to_string() },
        })?;
        let mut outcome = RealTime.run(job, listener)?;
        if let Some(live) = &mut outcome.live {
            live.preflight = preflight;
        }
        Ok(outcome)
    }
}
