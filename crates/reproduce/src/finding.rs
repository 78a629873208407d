//! Why results differ from claims, with the runs that show it.

use crate::claim::Claim;
use crate::item_row::ItemRow;
use crate::judge::judge;
use crate::outcome::{FindingOutcome, Shown, Verdict};
use anabranch_run::RunRecord;

/// A sentence, and the figures by which a reader can check it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The name by which claims call it.
    pub id: String,
    /// The figures found.
    pub text: String,
    /// Figures of runs: in which reading (`None` = as written), and which. Each is a value or a change in its band.
    pub shown: Vec<(Option<String>, Claim)>,
}

/// The runs of a reading (`None` = as written) and its rows, if it was run.
pub(crate) type RunsOf<'a, 'f> = &'f dyn Fn(Option<&str>) -> Option<(&'a [RunRecord], &'a [ItemRow])>;

impl Finding {
    /// Looks each figure up.
    pub(crate) fn check(&self, rows: &[ItemRow], runs_of: RunsOf<'_, '_>) -> FindingOutcome {
        let look = |(reading, claim): &(Option<String>, Claim)| {
            let Some((runs, instead)) = runs_of(reading.as_deref()) else {
                return Shown { reading: reading.clone(), ours: String::new(), holds: None };
            };
            let judged = judge(std::slice::from_ref(claim), runs, rows, instead).remove(0);
            let ours = format!("{} {}", judged.named, judged.ours);
            let holds =
                (judged.verdict != Verdict::NotRun).then_some(judged.estimate.is_some_and(|estimate| {
                    judged.band.is_some_and(|(low, high)| (low..=high).contains(&estimate.mean))
                }));
            Shown { reading: reading.clone(), ours, holds }
        };
        FindingOutcome { id: self.id.clone(), text: self.text.clone(), shown: self.shown.iter().map(look).collect() }
    }
}
