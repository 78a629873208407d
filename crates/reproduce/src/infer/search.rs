//! The search for testbeds whose baselines are those that were published.

use super::draw::{Region, draw};
use super::library::{Kept, Library, NoneNearer, Ruler};
use super::read::Extent;
use super::tally::Spread;
use super::unknown::{Position, Unknown};
use crate::anchor::published;
use crate::claim::Claim;
use crate::judge::judge;
use crate::paper::Item;
use crate::plan::{TESTBED, Testbed};
use anabranch_run::RunRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Draws so far, and which of them are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// How much is drawn and kept.
    pub extent: Extent,
    /// Published values of all anchors.
    published: Vec<f64>,
    /// The draws.
    pub library: Library,
    /// The nearest draws after each round.
    pub rounds: Vec<Kept>,
    /// How distances are measured: by the spread of the first round.
    pub ruler: Ruler,
}

impl Search {
    /// A search by these published values.
    pub fn new(extent: Extent, published: Vec<f64>) -> Self {
        let ruler = Ruler { spreads: vec![None; published.len()], published: published.clone() };
        Self { extent, published, library: Library::default(), rounds: Vec::new(), ruler }
    }

    /// The draws of the next round; `None` if all are done. Without anchors nothing chooses: as many are drawn as are kept.
    pub fn next(&self, unknowns: &[Unknown]) -> Option<Vec<Position>> {
        let Extent { draws, keep, rounds, seed, .. } = self.extent;
        if self.published.is_empty() {
            return self.library.positions.is_empty().then(|| draw(&Region::whole(unknowns.len()), 0, keep, seed));
        }
        let region = match self.rounds.last() {
            _ if self.rounds.len() >= rounds as usize => return None,
            None => Region::whole(unknowns.len()),
            Some(kept) => {
                let near: Vec<&Position> = kept.draws.iter().map(|&draw| &self.library.positions[draw]).collect();
                Region::around(unknowns, &near)
            }
        };
        Some(draw(&region, self.rounds.len() as u32 * draws, draws, seed))
    }

    /// Adds a round with what the baselines gave in each of its draws.
    ///
    /// # Errors
    /// No draw is nearer than another.
    pub fn add(&mut self, positions: Vec<Position>, ours: Vec<Vec<Option<f64>>>) -> Result<(), NoneNearer> {
        self.library.positions.extend(positions);
        self.library.ours.extend(ours);
        if self.published.is_empty() {
            let draws = (0..self.library.positions.len()).collect();
            self.rounds.push(Kept { draws, tolerance: 0.0 });
            return Ok(());
        }
        if self.rounds.is_empty() {
            self.ruler = Ruler::of(&self.published, &self.library);
            let has_values = self.library.ours.iter().any(|ours| ours.iter().all(Option::is_some));
            if has_values && self.ruler.spreads.iter().all(Option::is_none) {
                return Err(NoneNearer::EquallyFar);
            }
        }
        self.rounds.push(Kept::nearest(&self.ruler.distances(&self.library), self.extent.keep as usize)?);
        Ok(())
    }

    /// The draws that are kept.
    pub fn kept(&self) -> &[usize] {
        self.rounds.last().map_or(&[], |kept| &kept.draws)
    }

    /// Draws of the first round.
    pub fn first(&self) -> usize {
        self.library.positions.len().min(self.extent.draws as usize)
    }

    /// The values of one anchor: over the first round, and in the kept draws.
    pub fn of_anchor(&self, anchor: usize) -> (Option<Spread>, Option<Spread>) {
        let values = |draws: &mut dyn Iterator<Item = usize>| -> Vec<f64> {
            draws.filter_map(|draw| *self.library.ours[draw].get(anchor)?).collect()
        };
        let all = values(&mut (0..self.first()));
        (Spread::of(&all), Spread::of(&values(&mut self.kept().iter().copied())))
    }
}

/// A published baseline beside the draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// The item.
    pub item: String,
    /// In our words.
    pub text: String,
    /// Place in the paper.
    pub place: String,
    /// Published, in the unit.
    pub published: f64,
    /// The unit.
    pub unit: String,
    /// Over all draws of the first round.
    pub all: Option<Spread>,
    /// Over the kept ones.
    pub kept: Option<Spread>,
    /// The published value lies outside the central 95 % of all draws: an error of the model, not of the choice.
    pub outside: bool,
}

impl Drawn {
    /// The anchor `number` of all, which is one of `item`.
    pub fn of(search: &Search, number: usize, item: &Item, anchor: &Claim) -> Self {
        let published = published(anchor);
        let (all, kept) = search.of_anchor(number);
        Self {
            item: item.id.clone(),
            text: anchor.text.clone(),
            place: anchor.place.clone(),
            published,
            unit: anchor.unit.name.to_owned(),
            outside: all.is_none_or(|all| published < all.low || published > all.high),
            all,
            kept,
        }
    }
}

/// The runs of each testbed, in the order of `testbeds`.
pub fn by_testbed(testbeds: &[Testbed], runs: impl Iterator<Item = RunRecord>) -> Vec<Vec<RunRecord>> {
    let places: BTreeMap<&str, usize> =
        testbeds.iter().enumerate().map(|(n, testbed)| (testbed.name.as_str(), n)).collect();
    let mut all = vec![Vec::new(); testbeds.len()];
    for run in runs {
        let place = run.cell.get(TESTBED).and_then(|name| places.get(name.as_str()));
        place.into_iter().for_each(|&n| all[n].push(run.clone()));
    }
    all
}

/// The values of an item's baselines in a testbed, anchor by anchor.
pub fn values(item: &Item, testbed: &Testbed, runs: &[RunRecord]) -> Vec<Option<f64>> {
    let judged = judge(&item.anchors, runs, &item.rows, &testbed.rows);
    judged.into_iter().map(|judged| Some(judged.estimate?.mean).filter(|mean| mean.is_finite())).collect()
}
