//! Runs connections between an engine and a kernel to their end.

use crate::common::{Notes, Plan, ms};
use anabranch_lab::Exchange;
use anabranch_lab::kernel::{Counters, Protocol};
use anabranch_trace::{CloseReason, Event, Violation};
use anabranch_units::{Duration, Side};
use anabranch_workload::{Duplex, Workload};
use std::sync::Mutex;
use std::thread;

pub const BOTH: [Side; 2] = [Side::Client, Side::Server];
pub const MIB: u64 = 1 << 20;
/// Violations that are harmless on a path that loses or reorders: an overtaken segment has an old timestamp (RFC 7323
/// §5.3); a kernel that has everything resets a subflow on which the engine still retransmits, with numbers that are
/// old by then.
pub const EXCUSED: &[Violation] = &[Violation::OldTimestamp, Violation::Unacceptable];

/// An engine at this end and a kernel at the other, which join over all of `paths` paths of 100 Mbit/s and a round trip
/// of 4 ms. TIME-WAIT is short, so that a run sees an engine's connections end.
pub fn plan(engine: Side, paths: usize) -> Plan {
    let mut plan = Plan::new(engine, paths);
    plan.paths = (0..paths).map(|n| crate::common::path(&format!("path{n}"), 100, 2)).collect();
    plan.settings.tcp.time_wait = ms(100);
    plan.captured = false;
    match engine {
        Side::Client => plan,
        Side::Server => (1..paths).fold(plan, |plan, path| plan.endpoint(path, "subflow")),
    }
}

/// The same in plain TCP, over one path.
pub fn plain(engine: Side) -> Plan {
    let mut plan = plan(engine, 1);
    plan.settings.mptcp = false;
    plan.protocol = Protocol::Tcp;
    plan
}

/// Over IPv4 and over IPv6.
pub fn families(plan: Plan) -> [Plan; 2] {
    [plan.clone(), plan.v6()]
}

pub fn sysctl(plan: &mut Plan, name: &str, value: impl ToString) {
    plan.sysctls.push((name.into(), value.to_string()));
}

/// Runs `run` with each case, `at_a_time` of them side by side: waiting runs use little of the machine.
pub fn each<T: Send>(cases: impl IntoIterator<Item = T>, at_a_time: usize, run: impl Fn(T) + Sync) {
    let cases: Mutex<Vec<(usize, T)>> = Mutex::new(cases.into_iter().enumerate().collect());
    let test = thread::current().name().unwrap_or("test").to_owned();
    let (cases, run, test) = (&cases, &run, &test);
    let take = || cases.lock().expect("no case panics while it is taken").pop();
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(move || {
                while let Some((n, case)) = take() {
                    // Under a distinct name, which its capture has too.
                    thread::scope(|scope| {
                        let named = thread::Builder::new().name(format!("{test}-{n}"));
                        named.spawn_scoped(scope, || run(case)).expect("a thread");
                    });
                }
            });
        }
    });
}

/// The state after all connections have ended.
pub struct Outcome {
    pub exchange: Exchange,
    pub notes: Notes,
    pub counters: Counters,
}

impl Outcome {
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// The engine found no violation in the kernel's segments except `excused`, and all connections ended in order.
    pub fn assert_clean(&self, excused: &[Violation]) {
        let violations = self.notes.violations();
        let wrong: Vec<_> = violations.iter().filter(|violation| !excused.contains(violation)).collect();
        assert!(wrong.is_empty(), "{wrong:?}\n{}", describe(&self.exchange, &self.notes));
        self.assert_finished();
    }

    /// Neither end found a violation, and all connections ended in order.
    pub fn assert_in_order(&self) {
        self.assert_clean(&[]);
        assert_eq!(self.counter("TcpInErrs") + self.counter("TcpInCsumErrors"), 0, "{:#?}", self.counters);
        // Its own join, where its program's end overtakes the answer: interop_control's close.rs.
        let overtaken = self.counter("MPTcpExtMPJoinSynTx").saturating_sub(self.counter("MPTcpExtMPJoinSynAckRx"));
        assert!(self.counter("MPTcpExtMPRstTx") <= overtaken, "{:#?}", self.counters);
        for name in
            ["Fallback", "Infinite", "CsumErr", "HMacFailure", "MPFail", "MPRstRx", "DSSNotMatching", "DSSCorruption"]
        {
            let seen =
                self.counters.iter().filter(|(counter, _)| counter.starts_with("MPTcpExt") && counter.contains(name));
            assert_eq!(seen.count(), 0, "{name}: {:#?}", self.counters);
        }
    }

    /// Every connection of the engine ended because both streams had.
    fn assert_finished(&self) {
        let ends = self.notes.events.iter().filter_map(|(_, _, event)| match event {
            Event::Closed(why) => Some(*why),
            _ => None,
        });
        assert!(ends.clone().all(|why| why == CloseReason::Finished), "{:?}", ends.collect::<Vec<_>>());
    }
}

/// The world's time between two checks of a condition.
const TURN: Duration = Duration::from_millis(5);

/// Runs the world until `holds`; panics after `patience`, and if either application finds a fault.
pub fn until(
    exchange: &mut Exchange,
    notes: &mut Notes,
    patience: Duration,
    what: &str,
    mut holds: impl FnMut(&Exchange, &Notes) -> bool,
) {
    let limit = exchange.clock.now() + patience;
    while !holds(exchange, notes) {
        let now = exchange.clock.now();
        assert!(now < limit, "waited in vain: {what}\n{}", describe(exchange, notes));
        if let Err(error) = exchange.run(now + TURN, notes) {
            panic!("{error}\n{}", describe(exchange, notes));
        }
    }
}

/// The state that a failed test shows.
fn describe(exchange: &Exchange, notes: &Notes) -> String {
    let last = notes.events.iter().rev().take(40).rev();
    let events: String = last.map(|(at, path, event)| format!("{at} {path} {event:?}\n")).collect();
    let host = &exchange.outside[0].host;
    let sockets = host.namespace.command("ss", &["-Htanoi"], "");
    format!("{events}{:?}\n{}", host.counted(), sockets.unwrap_or_default())
}

/// One connection per pair of sizes: the engine sends the first number of bytes, the kernel the second, both at once.
/// The client opens `at_once` of them at a time. Ends when the engine has no connection left.
pub fn transfer(plan: &Plan, sizes: &[(u64, u64)], at_once: usize, patience: Duration) -> Outcome {
    transfer_noting(plan, sizes, at_once, patience, Notes::new(plan.engine, plan.captured))
}

/// The same with `notes`.
pub fn transfer_noting(
    plan: &Plan,
    sizes: &[(u64, u64)],
    at_once: usize,
    patience: Duration,
    mut notes: Notes,
) -> Outcome {
    let duplex = |size, expected| Box::new(Duplex::new(size, expected)) as Box<dyn Workload>;
    let at_engine = sizes.iter().map(|(engine, kernel)| duplex(*engine, *kernel)).collect();
    let at_kernel = sizes.iter().map(|(engine, kernel)| duplex(*kernel, *engine)).collect();
    let mut exchange = plan.begin(at_engine, at_kernel, at_once, None);
    let (engine, kernel) = (plan.engine, plan.kernel());
    until(&mut exchange, &mut notes, patience, "all bytes", |exchange, _| {
        exchange.world.done(0, engine) == sizes.len() && exchange.world.done(0, kernel) == 1
    });
    until(&mut exchange, &mut notes, patience, "the end of every connection", |exchange, _| {
        exchange.world.endpoint(0, engine).is_some_and(|endpoint| endpoint.is_empty())
    });
    let counters = exchange.outside[0].host.counted().expect("counters");
    Outcome { exchange, notes, counters }
}

/// One connection with `bytes` in each direction.
pub fn both_ways(plan: &Plan, bytes: u64) -> Outcome {
    transfer(plan, &[(bytes, bytes)], 1, ms(60_000))
}
