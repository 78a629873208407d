//! Every scheduler does what its source says that it is for, or the table says that it does not.

#![allow(clippy::disallowed_methods, reason = "the test spreads its runs over threads, and reads the page")]

use anabranch_run::{Pool, VirtualTime};
use anabranch_studies::purposes::{self, Measured, NETWORKS, PURPOSES, Purpose, Verdict};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two threads: what every machine has.
struct Two;

impl Pool for Two {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|i| *i < count).for_each(task)
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
    }
}

fn measured() -> &'static [Measured] {
    static MEASURED: OnceLock<Vec<Measured>> = OnceLock::new();
    MEASURED.get_or_init(|| purposes::measure(&VirtualTime::default(), &Two).unwrap_or_else(|wrong| panic!("{wrong}")))
}

#[test]
fn every_scheduler_shows_what_it_is_for_or_is_known_not_to() {
    let wrong: Vec<_> = measured().iter().filter(|of| of.verdict != of.purpose.verdict).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_page_is_as_generated() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/purposes.md");
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    let made = purposes::page(measured()).unwrap();
    let renew = "cargo run -p anabranch-studies --bin purposes > docs/lab/purposes.md";
    assert!(made == kept, "docs/lab/purposes.md is out of date; renew it with `{renew}`");
}

#[test]
fn every_entry_of_the_registry_has_a_row() {
    let base = |purpose: &Purpose| purpose.scheduler.split('(').next().unwrap_or_default();
    for entry in anabranch_schedulers::all() {
        assert!(PURPOSES.iter().any(|purpose| base(purpose) == entry.name), "{}", entry.name);
    }
    for suffix in anabranch_schedulers::suffixes() {
        assert!(PURPOSES.iter().any(|purpose| base(purpose).ends_with(suffix.name)), "{}", suffix.name);
    }
}

#[test]
fn every_row_names_a_network_and_what_is_not_shown_has_a_reason() {
    for purpose in PURPOSES {
        assert!(NETWORKS.iter().any(|network| network.name == purpose.network), "{purpose:?}");
        assert_eq!(purpose.verdict == Verdict::NotShown, !purpose.reason.is_empty(), "{purpose:?}");
        assert!(purpose.scheduler != purpose.against, "{purpose:?}");
    }
    for network in NETWORKS {
        assert!(PURPOSES.iter().any(|purpose| purpose.network == network.name), "{}", network.name);
    }
}
