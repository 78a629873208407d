//! The assessment of a claim, and how it is written.

use crate::outcome::Verdict;
use crate::pair::Pair;
use anabranch_run::Estimate;

/// The assessment of one claim.
pub struct Assessment {
    pub ours: String,
    pub estimate: Option<Estimate>,
    pub p: Option<f64>,
    /// Scatter of a change: see [`crate::outcome::Judged::scatter`].
    pub scatter: Option<f64>,
    /// The pairs of an order.
    pub pairs: Vec<Pair>,
    pub verdict: Verdict,
    pub reason: Option<String>,
}

impl Assessment {
    /// A verdict that needs no test and no reason.
    pub fn plain(ours: String, estimate: Option<Estimate>, verdict: Verdict) -> Self {
        Self { ours, estimate, p: None, scatter: None, pairs: Vec::new(), verdict, reason: None }
    }

    /// No value: the claim's runs were not done, or its value is undefined in them.
    pub fn nothing(lack: NoValue) -> Self {
        let (verdict, reason) = match lack {
            NoValue::NotRun => (Verdict::NotRun, None),
            NoValue::Undefined(why) => (Verdict::Differs, Some(why)),
        };
        Self { ours: "—".into(), estimate: None, p: None, scatter: None, pairs: Vec::new(), verdict, reason }
    }
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// The cell was left out, as in a quick look.
    NotRun,
    /// In a few words, why there is no value.
    Undefined(String),
}

impl<T: Into<String>> From<T> for NoValue {
    fn from(why: T) -> Self {
        Self::Undefined(why.into())
    }
}

/// A value in its band reproduces it.
pub fn within(value: f64, (low, high): (f64, f64)) -> Verdict {
    if (low..=high).contains(&value) { Verdict::Reproduces } else { Verdict::Differs }
}

/// Decimals that show three figures of so large a number.
pub fn decimals(number: f64) -> usize {
    let mut decimals = 2usize;
    let mut number = number;
    while number >= 10.0 && decimals > 0 {
        (number, decimals) = (number / 10.0, decimals - 1);
    }
    while number > 0.0 && number < 1.0 && decimals < 5 {
        (number, decimals) = (number * 10.0, decimals + 1);
    }
    decimals
}

pub fn interval(estimate: &Estimate, decimals: usize, unit: &str) -> String {
    let mean = format!("{:.decimals$}", estimate.mean);
    let spread = match (estimate.ci95_low, estimate.ci95_high) {
        (Some(low), Some(high)) => format!(" [{low:.decimals$}, {high:.decimals$}]"),
        _ => String::new(),
    };
    format!("{mean}{spread} {unit}").trim_end().to_owned() + &format!(", n = {}", estimate.n)
}
