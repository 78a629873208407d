//! A paper of one item, and runs of its rows.

use anabranch_run::RunRecord;

/// The paper's text as far as its claims.
pub const HEAD: &str = r#"
key = "test"
title = "T"
authors = "A"
venue = "V"

[[item]]
id = "one"
title = "An item"
where = "Figure 1"
scenario = "one"
rows = ["minrtt", "blest+or", "otias"]
"#;

/// A run of `row` with its goodput; `cell`: the sweep's key `x`, if there is one.
pub fn record(row: &str, seed: usize, cell: Option<&str>, goodput: f64) -> RunRecord {
    RunRecord {
        scheduler: row.into(),
        congestion: "olia".into(),
        seed: seed as u64,
        cell: cell.map(|x| ("x".to_owned(), x.to_owned())).into_iter().collect(),
        finished: true,
        metrics: [("goodput_bps".to_owned(), goodput)].into_iter().collect(),
        paths: Default::default(),
        digest: String::new(),
        events: 0,
        live: None,
        curves: Default::default(),
    }
}
