//! Resources after a world ends badly.

use crate::common::{Plan, Steer, alone, ms};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The network namespaces in which this process has a thread, or to which it has a descriptor.
fn namespaces() -> BTreeSet<u64> {
    let entries = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let threads =
        entries("/proc/self/task").filter_map(|task| Some(fs::metadata(task.path().join("ns/net")).ok()?.ino()));
    let files = entries("/proc/self/fd").filter_map(|file| {
        let target = fs::read_link(file.path()).ok()?;
        target.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
    });
    threads.chain(files).collect()
}

/// A thread that panics in the middle of a transfer takes its host along: the applications' threads, the devices and
/// the unnamed namespace.
#[test]
fn a_panic_leaves_no_namespace() {
    let Some(_alone) = alone() else { return };
    let before = namespaces();
    let (tell, told) = mpsc::channel();
    let world = std::thread::spawn(move || {
        let plan = Plan::new(anabranch_units::Side::Client, 2);
        let (engine, kernel) = (Steer::new(), Steer::new());
        let mut exchange = plan.begin(vec![engine.workload()], vec![kernel.workload()], 1, None);
        engine.send(10_000_000);
        let until = exchange.clock.now() + ms(500);
        exchange.run(until, &mut ()).expect("a world that goes on");
        assert!(kernel.progress().received > 0, "nothing arrived yet");
        let namespace = &exchange.outside[0].host.namespace;
        let own = namespace.enter(|| fs::metadata("/proc/thread-self/ns/net").expect("a namespace").ino());
        tell.send(own.expect("a visit")).expect("someone who listens");
        panic!("on purpose");
    });
    assert!(world.join().is_err());
    let namespace = told.recv().expect("the namespace was there");
    assert!(!before.contains(&namespace));
    let begun = Instant::now();
    while namespaces().contains(&namespace) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the namespace is still in use");
        std::thread::sleep(Duration::from_millis(20));
    }
}
