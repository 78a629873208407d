//! A run as a client requests it, and the limits of a server.

use crate::message::RunRequest;
use anabranch_carrier::MAX_PATHS;
use anabranch_engine::Settings;
use anabranch_run::layout::unsupported;
use anabranch_run::{Choice, Job, RunError};
use anabranch_scenario::{
    Diagnostic, Host, PlugIn, Scenario, Traffic, TrafficKind, congestion, read_unswept, scheduler,
};
use anabranch_units::Duration;
use std::sync::Arc;

/// Bytes of the longest scenario: one with 16 paths has 10,000.
const SCENARIO: usize = 16 << 10;
/// Most connections of a run.
const CONNECTIONS: u32 = 1_000;
/// Most bytes that the buffers of all connections of a run may take.
const BUFFERS: u64 = 512 << 20;

/// Least interval of frames: a server that was busy for a second has ten thousand to make up for.
const INTERVAL: Duration = Duration::from_micros(100);

/// The request for a job, whose scenario in full is `scenario`.
pub(super) fn ask(scenario: &str, job: &Job) -> RunRequest {
    let (single, scheduler) = match &job.choice {
        Choice::Single(path) => (Some(*path as u8), String::new()),
        Choice::Multipath(plug_in) => (None, plug_in.with_parameters()),
    };
    let congestion = job.congestion.with_parameters();
    RunRequest { scenario: scenario.to_owned(), single, scheduler, congestion, seed: job.seed }
}

/// The job of a request.
///
/// # Errors
/// Why it cannot be done, in a sentence.
pub(super) fn job(ask: &RunRequest) -> Result<Job, String> {
    let first = |mistakes: Vec<Diagnostic>| match mistakes.first() {
        Some(mistake) => format!("the client's scenario: {mistake}"),
        None => "the client's scenario cannot be read".to_owned(),
    };
    let len = ask.scenario.len();
    if len > SCENARIO {
        return Err(format!("the client's scenario has {len} bytes (at most {SCENARIO})"));
    }
    let scenario = read_unswept("the client's scenario", &ask.scenario).map_err(first)?;
    admit(&scenario).map_err(|error| error.to_string())?;
    let choice = match ask.single {
        Some(path) if usize::from(path) < scenario.topology.paths.len() => Choice::Single(path.into()),
        Some(path) => return Err(format!("the scenario has no path {path}")),
        None => Choice::Multipath(plug_in(scheduler, &ask.scheduler)?),
    };
    let congestion = plug_in(congestion, &ask.congestion)?;
    Ok(Job { congestion, ..Job::of(Arc::new(scenario), choice, ask.seed) })
}

fn plug_in<M: std::fmt::Display>(read: fn(&str, &str) -> Result<PlugIn, Vec<M>>, text: &str) -> Result<PlugIn, String> {
    read("the request", text)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Bytes that the buffers of all connections of a run may take at one end, and what comes beyond their windows.
pub(super) fn buffers(scenario: &Scenario) -> u64 {
    let settings = &scenario.settings;
    let connections: u64 = scenario.traffic.iter().map(|traffic| u64::from(traffic.connections())).sum();
    Settings::memory(settings.send_buffer, settings.recv_buffer).saturating_mul(connections)
}

/// Both ends refuse features that real links lack, and more than a client may have of a server.
///
/// # Errors
/// Names it.
pub(super) fn admit(scenario: &Scenario) -> Result<(), RunError> {
    let no = |what: &str| Err(unsupported(&format!("{what} on real links")));
    if scenario.hosts.any_is(Host::Linux) {
        return no("Linux as a host");
    }
    if scenario.hosts.ip == 6 {
        return no("IPv6 inside the carrier");
    }
    if !scenario.cross.is_empty() || !scenario.timeline.is_empty() || !scenario.topology.links.is_empty() {
        return no("cross traffic, a timeline or a shared link");
    }
    if scenario.topology.paths.len() > MAX_PATHS {
        return no(&format!("more than {MAX_PATHS} paths"));
    }
    let connections: u32 = scenario.traffic.iter().map(Traffic::connections).fold(0, u32::saturating_add);
    if connections > CONNECTIONS {
        return no(&format!("{connections} connections (at most {CONNECTIONS})"));
    }
    let is_hasty = |kind: &TrafficKind| matches!(kind, TrafficKind::Frames { interval, .. } if *interval < INTERVAL);
    if scenario.traffic.iter().any(|traffic| is_hasty(&traffic.kind)) {
        return no("frames at intervals below 100us");
    }
    if buffers(scenario) > BUFFERS {
        return no(&format!("buffers of more than {} MiB in all", BUFFERS >> 20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str =
        "duration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n[[traffic]]\nkind = \"bulk\"\n";

    fn of(scenario: &str, single: Option<u8>) -> RunRequest {
        let text = |name: &str| name.to_owned();
        RunRequest {
            scenario: text(scenario),
            single,
            scheduler: text("blest(delta=0.5)"),
            congestion: text("olia"),
            seed: 7,
        }
    }

    #[test]
    fn a_job_is_the_same_at_both_ends() {
        for single in [None, Some(0)] {
            let here = job(&of(SCENARIO, single)).unwrap();
            let there = job(&ask(SCENARIO, &here)).unwrap();
            assert_eq!((here.choice, here.congestion, here.seed), (there.choice, there.congestion, 7));
            assert_eq!(here.scenario, there.scenario);
        }
    }

    #[track_caller]
    fn refused(ask: &RunRequest, why: &str) {
        let error = job(ask).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn what_a_server_does_not_do_is_refused() {
        refused(&of("nonsense", None), "the client's scenario");
        refused(&of(&" ".repeat(super::SCENARIO + 1), None), "16385 bytes (at most 16384)");
        refused(&of(&format!("{SCENARIO}[sweep]\nseed = [1, 2]"), None), "a sweep cannot stand here");
        refused(&of(SCENARIO, Some(1)), "no path 1");
        refused(&RunRequest { scheduler: "bleest".into(), ..of(SCENARIO, None) }, "bleest");
        refused(&RunRequest { congestion: "cubik".into(), ..of(SCENARIO, None) }, "cubik");
        let with = |text: &str| of(&format!("{SCENARIO}{text}\n"), None);
        refused(&with("[hosts]\nsender = \"linux\""), "Linux as a host");
        refused(&with("[hosts]\nip = 6"), "IPv6");
        refused(&of(&format!("{SCENARIO}flows = 2000"), None), "2000 connections");
        let path = |n| format!("[[path]]\nname = \"p{n}\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n");
        refused(&with(&(0..16).map(path).collect::<String>()), "more than 16 paths");
        refused(&with("[connection]\nsend_buffer = \"600MiB\""), "buffers of more than 512 MiB");
        // An eighth of the receive buffer may come beyond the window.
        let received = |size| with(&format!("[connection]\nsend_buffer = \"62MiB\"\nrecv_buffer = \"{size}MiB\""));
        refused(&received(401), "buffers of more than 512 MiB");
        assert!(job(&received(400)).is_ok());
        let traffic = |kind: &str| of(&SCENARIO.replace("kind = \"bulk\"", kind), None);
        let frames = |interval| traffic(&format!("kind = \"frames\"\nsize = \"1KB\"\ninterval = \"{interval}\""));
        refused(&frames("99us"), "intervals below 100us");
        assert!(job(&frames("100us")).is_ok());
        // A scenario that names a file reads none of the server's.
        refused(&of(&SCENARIO.replace("rate = \"1mbit\"", "trace = \"/etc/passwd\""), None), "/etc/passwd");
    }
}
