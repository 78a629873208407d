//! A paper's claims in the kept testbeds.

use super::library::central;
use crate::claim::{Claim, Kind, Standing, is_about_equal};
use crate::classify::{is_below_resolution, stand};
use crate::conclude::tested;
use crate::judge::SIGNIFICANT;
use crate::outcome::{Judged, Stand};
use crate::pair::Pair;
use crate::paper::Item;
use anabranch_metrics::quantile;
use serde::{Deserialize, Serialize};

/// A claim over the kept testbeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The item.
    pub item: String,
    /// The claim, in our words.
    pub claim: String,
    /// Place in the paper.
    pub place: String,
    /// Metric and rows.
    pub named: String,
    /// The published value, as the claim has it.
    pub published: String,
    /// The published figure, where there is one, in the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// Unit of the figure and of ours.
    pub unit: String,
    /// Testbeds in which it could be judged.
    pub of: usize,
    /// Those in which it holds: in sign or order, or within the band of a value.
    pub holds: usize,
    /// Ours over the testbeds: median and the central 95 %; `None` of an order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<Spread>,
    /// The answer.
    pub answer: Answer,
    /// A mark: the paper's own repetitions are too few to show so small a difference.
    pub too_few: bool,
    /// The claim compares schedulers and is no duplicate.
    pub contrast: bool,
    /// The pairs of rows that it puts in an order: those of an order, or the one of a change with a sign.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pairs: Vec<PairTally>,
    /// The reason of the answer, where it is not plain.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reason: String,
}

impl Tally {
    /// The claim holds in some testbeds and fails in others, each in at least a quarter.
    pub fn is_toss_up(&self) -> bool {
        let fails = self.of - self.holds;
        matches!(self.answer, Answer::Agrees | Answer::Differs) && 4 * self.holds.min(fails) >= self.of
    }
}

/// Two rows over the kept testbeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairTally {
    /// The row that has more or less, as published.
    pub first: String,
    /// The other row.
    pub second: String,
    /// Testbeds in which they are as published.
    pub holds: usize,
    /// Testbeds that have both.
    pub of: usize,
}

impl PairTally {
    /// They are as published in at least half of the testbeds.
    pub fn agrees(&self) -> bool {
        self.of > 0 && 2 * self.holds >= self.of
    }
}

/// A quantity over the kept testbeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the testbeds have more.
    pub median: f64,
    /// Lower end of the central 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Spread {
    /// The spread of the values of testbeds; `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (low, high) = central(values)?;
        Some(Self { median: quantile(values, 0.5)?, low, high })
    }
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The claim holds in at least half of the testbeds, and the published figure, if there is one, lies in the central 95 % of ours.
    #[serde(rename = "agrees")]
    Agrees,
    /// Otherwise.
    #[serde(rename = "differs")]
    Differs,
    /// Another place of the paper contradicts it.
    #[serde(rename = "the paper contradicts itself")]
    Contradicted,
    /// A baseline of the item was published outside the central 95 % of all draws.
    #[serde(rename = "cannot be drawn")]
    CannotBeDrawn,
    /// Open, trivial, the datum of another claim, or on how runs vary: there is one run of each row in a testbed.
    #[serde(rename = "not counted")]
    NotCounted,
    /// No testbed has a value.
    #[serde(rename = "not run")]
    NotRun,
}

impl Answer {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Contradicted => "the paper contradicts itself",
            Self::CannotBeDrawn => "cannot be drawn",
            Self::NotCounted => "not counted",
            Self::NotRun => "not run",
        }
    }
}

/// Counts the claims of an item over `testbeds`, in each of which they were judged by one seed. `repeated` are the same claims by several
/// seeds of the nearest testbed, which show how much single runs vary; `outside` names the baselines of the item that cannot be drawn.
pub fn tally(
    item: &Item,
    testbeds: &[Vec<Judged>],
    repeated: &[Judged],
    repetitions: Option<u32>,
    outside: &[String],
) -> Vec<Tally> {
    let of = |(n, claim): (usize, &Claim)| {
        let judged = testbeds.iter().filter_map(|claims| claims.get(n).cloned()).collect();
        let scatter = repeated.get(n).and_then(|judged| judged.scatter);
        one(&item.id, claim, judged, (scatter, repetitions), outside)
    };
    item.claims.iter().enumerate().filter_map(of).collect()
}

fn one(
    item: &str,
    claim: &Claim,
    judged: Vec<Judged>,
    (scatter, repetitions): (Option<f64>, Option<u32>),
    outside: &[String],
) -> Option<Tally> {
    let first = judged.first()?.clone();
    let values: Vec<f64> = judged.iter().filter_map(|judged| Some(judged.estimate.as_ref()?.mean)).collect();
    let ranked = ranked(&judged);
    let stands: Vec<Stand> = judged.into_iter().map(|judged| stand(claim, &tested(judged), SIGNIFICANT)).collect();
    let of = stands.iter().filter(|stand| **stand != Stand::NotTested).count();
    let holds = stands.iter().filter(|stand| **stand <= Stand::InDirection).count();
    let pairs = if ranked.is_empty() { of_change(claim, holds, of) } else { ranked };
    let ours = Spread::of(&values);
    let answer = answer(claim, (of, holds), first.figure, ours, outside);
    let reason = match answer {
        Answer::CannotBeDrawn => outside.join("; "),
        _ => first.reason.unwrap_or_default(),
    };
    Some(Tally {
        item: item.to_owned(),
        claim: first.text,
        place: first.place,
        named: first.named,
        published: first.published,
        figure: first.figure,
        unit: first.unit,
        of,
        holds,
        ours,
        answer,
        too_few: is_below_resolution(claim, scatter, repetitions),
        contrast: first.contrast,
        pairs,
        reason,
    })
}

/// The pairs of an order.
fn ranked(judged: &[Judged]) -> Vec<PairTally> {
    let Some(longest) = judged.iter().map(|judged| &judged.pairs).max_by_key(|pairs| pairs.len()) else {
        return Vec::new();
    };
    let count = |(n, pair): (usize, &Pair)| {
        let own: Vec<&Pair> = judged.iter().filter_map(|judged| judged.pairs.get(n)).collect();
        PairTally {
            first: pair.better.clone(),
            second: pair.worse.clone(),
            holds: own.iter().filter(|pair| pair.agrees()).count(),
            of: own.len(),
        }
    };
    longest.iter().enumerate().map(count).collect()
}

/// The pair of a change that is published with a sign.
fn of_change(claim: &Claim, holds: usize, of: usize) -> Vec<PairTally> {
    match &claim.kind {
        Kind::Change { of: first, against, band, .. } if claim.is_contrast() && !is_about_equal(*band) => {
            vec![PairTally { first: first.row.clone(), second: against.row.clone(), holds, of }]
        }
        _ => Vec::new(),
    }
}

fn answer(
    claim: &Claim,
    (of, holds): (usize, usize),
    figure: Option<f64>,
    ours: Option<Spread>,
    outside: &[String],
) -> Answer {
    // A change of zero is claimed within the band: whether it holds says all.
    let figure = figure.filter(|figure| *figure != 0.0 || !matches!(claim.kind, Kind::Change { .. }));
    let half = claim.uncertainty.unwrap_or(0.0);
    let meets =
        figure.is_none_or(|figure| ours.is_some_and(|ours| ours.low <= figure + half && ours.high >= figure - half));
    // Where no unknown moves it, the interval has no width, and the band that is committed decides.
    let meets = meets || (ours.is_some_and(|ours| ours.low == ours.high) && 2 * holds >= of);
    let needs_sign = matches!(claim.kind, Kind::Change { .. } | Kind::Order { .. });
    match &claim.standing {
        Standing::Contradicted(_) => Answer::Contradicted,
        Standing::Open(_) | Standing::Trivial(_) | Standing::Duplicate(_) => Answer::NotCounted,
        // One seed per testbed does not vary.
        Standing::Testable if matches!(claim.kind, Kind::Change { spread: true, .. }) => Answer::NotCounted,
        Standing::Testable if of == 0 => Answer::NotRun,
        Standing::Testable if !outside.is_empty() => Answer::CannotBeDrawn,
        Standing::Testable if meets && (!needs_sign || 2 * holds >= of) => Answer::Agrees,
        Standing::Testable => Answer::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;
    use anabranch_run::RunRecord;

    const PAPER: &str = r#"
key = "p"
title = "t"
authors = "a"
venue = "v"
repetitions = 4

[[item]]
id = "i"
title = "t"
where = "w"
scenario = "s"
rows = ["minrtt", "blest"]

[[item.claim]]
text = "more"
metric = "goodput_bps"
of = "blest"
against = "minrtt"
published = 10
band = [0, inf]

[[item.claim]]
text = "far more"
metric = "goodput_bps"
of = "blest"
against = "minrtt"
published = 300

[[item.claim]]
text = "a value"
metric = "goodput_bps"
value = "blest"
published = 110

[[item.claim]]
text = "an order"
metric = "goodput_bps"
order = ["minrtt", "blest"]
best = "most"

[[item.claim]]
text = "a value that no run has"
metric = "completion_s"
value = "blest"
published = 1

[[item.claim]]
text = "elsewhere otherwise"
metric = "goodput_bps"
of = "blest"
against = "minrtt"
published = 10
contradicted = "there"
"#;

    fn run(scheduler: &str, seed: u64, goodput: f64) -> RunRecord {
        let outcome = anabranch_run::RunOutcome {
            metrics: [("goodput_bps".to_owned(), goodput)].into_iter().collect(),
            finished: true,
            ..anabranch_run::RunOutcome::default()
        };
        RunRecord::new(scheduler, "cubic", seed, Default::default(), outcome)
    }

    /// Eleven testbeds in which BLEST has 5 to 15 % more.
    fn tallies(outside: &[String]) -> Vec<Tally> {
        let paper = read(PAPER).expect("it is right");
        let item = &paper.items[0];
        let judge = |runs: &[RunRecord]| crate::judge::judge(&item.claims, runs, &item.rows, &[]);
        let testbeds: Vec<Vec<Judged>> =
            (5..=15).map(|n| judge(&[run("minrtt", 1, 100.0), run("blest", 1, 100.0 + f64::from(n))])).collect();
        let noisy = [(1, 90.0), (2, 110.0), (3, 100.0)].map(|(seed, goodput)| run("minrtt", seed, goodput));
        let also = [(1, 95.0), (2, 115.0), (3, 105.0)].map(|(seed, goodput)| run("blest", seed, goodput));
        tally(item, &testbeds, &judge(&[noisy, also].concat()), paper.repetitions, outside)
    }

    #[test]
    fn claims_are_counted_over_testbeds() {
        let found = tallies(&[]);
        let answers: Vec<(Answer, usize, usize)> = found.iter().map(|t| (t.answer, t.holds, t.of)).collect();
        assert_eq!(
            answers,
            [
                (Answer::Agrees, 11, 11),
                (Answer::Differs, 11, 11),
                (Answer::Agrees, 11, 11),
                (Answer::Differs, 0, 11),
                (Answer::Differs, 0, 11),
                (Answer::Contradicted, 0, 0),
            ]
        );
        let ours = found[0].ours.expect("there are values");
        assert!((ours.median - 10.0).abs() < 1e-9 && ours.low >= 5.0 - 1e-9 && ours.high <= 15.0 + 1e-9, "{ours:?}");
        // 10 % of runs that vary by as much, four times.
        assert!(found[0].too_few && !found[1].too_few);
    }

    #[test]
    fn a_claim_that_holds_in_a_quarter_to_three_quarters_is_a_toss_up() {
        let mut tally = tallies(&[]).remove(0);
        let mut is = |holds, answer| {
            (tally.of, tally.holds, tally.answer) = (100, holds, answer);
            tally.is_toss_up()
        };
        let agreeing = [24, 25, 50, 75, 76].map(|holds| is(holds, Answer::Agrees));
        assert_eq!(agreeing, [false, true, true, true, false]);
        assert!(is(40, Answer::Differs) && !is(50, Answer::CannotBeDrawn));
    }

    #[test]
    fn where_no_unknown_moves_a_value_its_band_decides() {
        let paper = read(&PAPER.replace("published = 110", "published = 110\nband = [100, 120]")).expect("it is right");
        let item = &paper.items[0];
        let answer = |goodput: f64| {
            let runs = [run("minrtt", 1, 100.0), run("blest", 1, goodput)];
            let testbeds = vec![crate::judge::judge(&item.claims, &runs, &item.rows, &[]); 11];
            tally(item, &testbeds, &[], None, &[])[2].answer
        };
        assert_eq!((answer(112.0), answer(125.0)), (Answer::Agrees, Answer::Differs));
    }

    #[test]
    fn claims_whose_baseline_cannot_be_drawn_say_which() {
        let found = tallies(&["minRTT: packets".to_owned()]);
        assert_eq!(found[0].answer, Answer::CannotBeDrawn);
        assert_eq!(found[0].reason, "minRTT: packets");
        assert_eq!(found[5].answer, Answer::Contradicted);
    }

    #[test]
    fn an_order_is_counted_by_its_pairs() {
        let found = tallies(&[]);
        let pairs = |n: usize| -> Vec<(&str, &str, usize, usize)> {
            let all = found[n].pairs.iter();
            all.map(|pair| (pair.first.as_str(), pair.second.as_str(), pair.holds, pair.of)).collect()
        };
        assert_eq!(pairs(0), [("blest", "minrtt", 11, 11)]);
        assert_eq!(pairs(2), []);
        // BLEST has more in all, and the order has it last.
        assert_eq!(pairs(3), [("minrtt", "blest", 0, 11)]);
    }
}
