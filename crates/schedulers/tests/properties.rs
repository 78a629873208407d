//! Properties of every scheduler, on random paths.

mod toy;

use anabranch_plugin::schedule::Scheduler;
use anabranch_schedulers::adversary::Adversary;
use anabranch_schedulers::{all, build, suffixes, takes_suffix};
use anabranch_units::Instant;
use anabranch_units::SendKind;
use proptest::prelude::*;
use std::collections::BTreeSet;
use toy::{BOUNDLESS, MSS, Sent, Toy, ToyPath};

/// Later than any run needs.
const LIMIT: Instant = Instant::from_millis(10_000_000);

/// Every scheduler, alone and with each suffix that it takes.
fn names() -> Vec<String> {
    let bare = all().iter().map(|e| e.name.to_string());
    let pull = all().iter().filter(|e| takes_suffix(e));
    let suffixed = pull.flat_map(|e| suffixes().iter().map(|s| format!("{}{}", e.name, s.name)));
    bare.chain(suffixed).chain(["otias(1)".into(), "otias(2)".into()]).collect()
}

fn scheduler(name: &str) -> Box<dyn Scheduler> {
    match name.split_once('(') {
        None => build(name, &[]).unwrap(),
        Some((base, level)) => build(base, &[("optim".into(), level.trim_end_matches(')').parse().unwrap())]).unwrap(),
    }
}

fn run(scheduler: Box<dyn Scheduler>, paths: &[ToyPath], window: u64, writes: &[(u64, u64)]) -> Toy {
    let mut toy = Toy::new(scheduler, paths, window, window);
    toy.run(writes, LIMIT);
    toy
}

fn a_path() -> impl Strategy<Value = ToyPath> {
    (1u64..200, 1u32..20, any::<bool>())
        .prop_map(|(delay, window, sampled)| ToyPath { sampled, ..ToyPath::new(delay, window) })
}

fn some_writes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0u64..2000, 1u64..80), 1..5)
}

fn total(writes: &[(u64, u64)]) -> u64 {
    writes.iter().map(|(_, packets)| packets * MSS).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn everything_arrives_whatever_path_dies(
        mut paths in prop::collection::vec(a_path(), 2..5),
        silent_from in 0u64..1500,
        window in 3u64..100,
        writes in some_writes(),
    ) {
        paths[0].silent_from = Some(silent_from);
        // The path that dies may have any index.
        let at = silent_from as usize % paths.len();
        paths.swap(0, at);
        for name in names() {
            let toy = run(scheduler(&name), &paths, window * MSS, &writes);
            prop_assert_eq!(toy.view.data_acked(), total(&writes), "{}", name);
            prop_assert_eq!(toy.view.outstanding().bytes(), 0);
        }
    }

    #[test]
    fn even_an_adversary_gets_everything_there(
        mut paths in prop::collection::vec(a_path(), 2..5),
        window in 3u64..100,
        writes in some_writes(),
        seed in any::<u64>(),
    ) {
        paths[1].silent_from = Some(300);
        let toy = run(Box::new(Adversary::new(seed)), &paths, window * MSS, &writes);
        prop_assert_eq!(toy.view.data_acked(), total(&writes));
    }

    #[test]
    fn each_new_byte_is_sent_once(paths in prop::collection::vec(a_path(), 1..5), packets in 1u64..200) {
        for name in names() {
            let toy = run(scheduler(&name), &paths, BOUNDLESS, &[(0, packets)]);
            let mut first: Vec<_> = toy.sent.iter().filter(|s| s.kind == SendKind::First).map(|s| s.number).collect();
            first.sort();
            prop_assert!(first.windows(2).all(|w| w[0] < w[1]), "{}", name);
            // Data retransmitted elsewhere before it leaves its queue (linux-default) need not be sent for the first
            // time.
            let all: BTreeSet<_> = toy.sent.iter().map(|s| s.number).collect();
            prop_assert!(all.into_iter().eq(1..=packets), "{}", name);
        }
    }

    #[test]
    fn one_path_leaves_no_choice(path in a_path(), window in 3u64..100, writes in some_writes()) {
        let sent = |name: &str| run(scheduler(name), core::slice::from_ref(&path), window * MSS, &writes).sent;
        let expect = sent("minrtt");
        prop_assert_eq!(expect.len() as u64 * MSS, total(&writes));
        for name in names() {
            prop_assert_eq!(sent(&name), expect.clone(), "{}", name);
        }
    }

    #[test]
    fn equal_paths_and_a_wide_window_leave_min_rtt(path in a_path(), n in 2usize..5, writes in some_writes()) {
        let paths = vec![path; n];
        let sent = |name: &str| -> Vec<Sent> { run(scheduler(name), &paths, BOUNDLESS, &writes).sent };
        let expect = sent("minrtt");
        for name in ["minrtt+pr", "minrtt+or", "blest", "blest+or", "blest-linux", "blest-linux+pr", "ecf", "ecf+pr"] {
            prop_assert_eq!(sent(name), expect.clone(), "{}", name);
        }
    }
}
