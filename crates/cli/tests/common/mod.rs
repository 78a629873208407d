//! A driver whose outcomes are known, and ways to ask.

use anabranch_cli::{Answer, Drivers, answer};
use anabranch_run::{CONNECTION, Choice, Driver, Emulation, Job, Live, Plan, Refusal, RunError, RunOutcome};
use anabranch_scenario::Host;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, Range, Side};

/// About 30 Mbit/s with a scheduler, 20 and 4 on the single paths, and a little luck; the scenario `doomed` fails, `halted` is interrupted,
/// `slow` does not finish with seed 2, `wild` scatters by its seed. Two events a run.
pub struct Fake;

impl Driver for Fake {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if job.scenario.name == "doomed" {
            return Err(RunError::Fault { what: "a wrong byte at 1400".into() });
        }
        if job.scenario.name == "halted" {
            return Err(RunError::Interrupted);
        }
        let origin = Origin { host: Some(Side::Client), connection: CONNECTION, path: PathId(0) };
        listener.record(Instant::from_millis(3), origin, &Event::Connected(true));
        listener.record(Instant::from_millis(25), origin, &Event::Delivered(Range::new(0, 1400)));

        let names: Vec<String> = job.scenario.topology.paths.iter().map(|path| path.name.clone()).collect();
        let (base, used) = match &job.choice {
            Choice::Multipath(scheduler) => (34.0 - 0.5 * scheduler.name.len() as f64, names.clone()),
            Choice::Single(index) => ([20.0, 4.0][*index], vec![names[*index].clone()]),
        };
        let finished = job.scenario.name != "slow" || job.seed != 2;
        let wild = if job.scenario.name == "wild" { (2 * (job.seed % 7)) as f64 } else { 0.0 };
        let luck = wild + 0.01 * (job.seed * (3 + base as u64) % 5) as f64;
        let share = 1.0 / used.len() as f64;
        let path = |name: String| (name, [("share".to_owned(), share), ("timeouts".to_owned(), 1.0)].into());
        let mut metrics = vec![("goodput_bps", 1e6 * (base + luck)), ("ofo_mean_bytes", 204_800.0)];
        if job.scenario.name == "slow" && finished {
            metrics.push(("completion_s", 1.0 + 0.1 * job.seed as f64));
        }
        match job.choice {
            Choice::Multipath(_) => metrics.extend([("opportunistic_packets", 1234.5), ("oracle_ratio", 0.9)]),
            Choice::Single(_) => metrics.push(("oracle_ratio_of_all", 0.9 * (base + luck) / 31.0)),
        }
        Ok(RunOutcome {
            metrics: metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            paths: used.into_iter().map(path).collect(),
            digest: format!("{:032x}", job.seed),
            events: 2,
            finished,
            ..RunOutcome::default()
        })
    }
}

/// The same in real time, on a machine whose kernel knows no scheduler but `fifo` and its own; the scenario `locked` finds no
/// privilege, `stopped` is interrupted.
pub struct FakeLab;

impl Driver for FakeLab {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        for job in plan.jobs() {
            if job.scenario.name == "locked" {
                return Err(Refusal::Missing { what: "no root".into(), help: Some("become root".into()) });
            }
            if let (Choice::Multipath(scheduler), Host::Linux) = (&job.choice, job.scenario.hosts.sender)
                && !["fifo", "linux-default"].contains(&scheduler.name.as_str())
            {
                let (word, why) = (scheduler.name.clone(), "not here".to_owned());
                return Err(Refusal::Word { kind: "scheduler", word, why, help: "take `fifo`".into() });
            }
        }
        Ok(())
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if job.scenario.name == "stopped" && job.seed > 1 {
            return Err(RunError::Interrupted);
        }
        let accurate = job.seed != 2;
        let emulation = Emulation {
            packets: 10,
            late_p99_s: 0.0004 * job.seed as f64,
            late_max_s: 0.0005 * job.seed as f64,
            accurate,
            ..Emulation::default()
        };
        let not_applied = vec!["tcp.pacing: no".to_owned()];
        let settings = [("client".to_owned(), [("mtu".to_owned(), "1500".to_owned())].into())].into();
        let live = Live { emulation, kernel: Some("6.18.0".into()), not_applied, settings, ..Live::default() };
        Ok(RunOutcome { live: Some(live), ..Fake.run(job, listener)? })
    }
}

/// The answer of `anabranch ARGUMENTS`, with [`Fake`] and [`FakeLab`] as drivers.
pub fn ask(arguments: &[&str]) -> Answer {
    let arguments = std::iter::once(&"anabranch").chain(arguments).map(|argument| argument.into());
    answer(
        arguments,
        &Drivers { virtual_time: &Fake, real_time: &FakeLab, preflight: |_| Box::new(FakeLab), cache: None },
        false,
    )
}

/// The output of a command that succeeds.
#[track_caller]
pub fn output(arguments: &[&str]) -> String {
    let Answer { output, errors, code } = ask(arguments);
    assert_eq!((errors.as_str(), code), ("", 0));
    output
}

/// The diagnostic of a command that fails with `code`.
#[track_caller]
pub fn errors(arguments: &[&str], code: u8) -> String {
    let answer = ask(arguments);
    assert_eq!((answer.output.as_str(), answer.code), ("", code), "{}", answer.errors);
    answer.errors
}
