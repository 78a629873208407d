//! Advice in words.

use super::race::DRAWS;
use super::{Advice, UseAdvice};
use anabranch_metrics::half_width;
use std::fmt::Write as _;

/// Schedulers that are named; the others are counted.
const NAMED: usize = 4;
/// Lines that carry this part of the best possible are full.
const FULL: f64 = 0.9;

/// A number of frames per minute, in words: `12`, `0.4`.
fn per_minute(frames: f64) -> String {
    if frames < 9.95 && frames > 0.0 { format!("{frames:.1}") } else { format!("{frames:.0}") }
}

impl Advice {
    /// A paragraph for each use, then what the figures rest on.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.uses {
            let _ = writeln!(text, "For {}: {}\n", one.of.name(), one.sentences().join(" "));
        }
        let error = match self.error {
            error if error > 0.0 => format!(
                "In each draw after the first, rates, delays and queues lie within {:.0} % of the input, losses within {:.0} %",
                100.0 * error,
                (300.0 * error).min(100.0)
            ),
            _ => "The draws differ in their seeds alone".to_owned(),
        };
        let (draws, congestion) = (self.draws, &self.congestion);
        let _ = writeln!(text, "± is a 95 % interval over {draws} simulated draws, with {congestion}. {error}.");
        text
    }
}

impl UseAdvice {
    /// Sentences of the advice: the choice, the gain, the reason, the alternatives, the certainty.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![if self.bond { self.together() } else { self.alone() }];
        if self.bond {
            sentences.push(self.opening());
        }
        sentences.extend(self.limit());
        sentences.extend(self.others());
        sentences.extend(self.money());
        sentences.push(self.sureness());
        sentences
    }

    /// `41 % ± 6 %`.
    fn gain(&self) -> String {
        format!("{:.0} % ± {:.0} %", 100.0 * self.gain.abs(), 100.0 * half_width(self.gain, self.gain_ci95))
    }

    fn together(&self) -> String {
        let Self { scheduler, best_single, .. } = self;
        if let Some((own, single)) = self.late_per_minute {
            let (own, single) = (per_minute(own), per_minute(single));
            return format!(
                "use {scheduler}. Expect {own} late frames per minute, and {single} over {best_single} alone."
            );
        }
        format!("use {scheduler}. Expect {} {} than over {best_single} alone.", self.gain(), self.of.measure())
    }

    fn alone(&self) -> String {
        let Self { scheduler, best_single, .. } = self;
        let found = match self.gain {
            gain if gain < 0.0 && self.gain_ci95.1 < 0.0 => format!("is {} worse", self.gain()),
            _ => format!("gains nothing that the draws show ({:+.1} % ± {:.1} %)", 100.0 * self.gain, {
                100.0 * half_width(self.gain, self.gain_ci95)
            }),
        };
        let late =
            self.late_per_minute.map(|(_, single)| format!(" Expect {} late frames per minute.", per_minute(single)));
        let late = late.unwrap_or_default();
        format!("do not bond: use {best_single} alone.{late} The best scheduler for all lines, {scheduler}, {found}.")
    }

    fn opening(&self) -> String {
        let open = &self.open_on;
        if self.open_matters {
            let better = if self.late_per_minute.is_some() { "better" } else { "faster" };
            format!("Open on {open}: that is {better} than on {}.", self.best_single)
        } else {
            format!("Open on {open}; no other line does better.")
        }
    }

    /// Sentence about the limit of the result.
    fn limit(&self) -> Option<String> {
        let ratio = self.oracle_ratio.filter(|_| self.bond)?;
        let parts: Vec<String> =
            self.shares.iter().map(|(path, share)| format!("{path} {:.0} %", 100.0 * share)).collect();
        let parts = parts.join(", ");
        let percent = 100.0 * ratio;
        Some(match ratio >= FULL {
            true => format!("The lines' capacity is the limit: {percent:.0} % of the best possible ({parts})."),
            false => format!("It reaches {percent:.0} % of the best possible over all lines ({parts})."),
        })
    }

    fn others(&self) -> Option<String> {
        let mut said = String::new();
        if !self.same.is_empty() {
            let named = self.same[..self.same.len().min(NAMED)].join(", ");
            let more = self.same.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} others") } else { String::new() };
            let _ = write!(said, "The draws show no difference from {named}{more}. ");
        }
        if let Some((name, gain)) = &self.runner_up {
            let _ = write!(said, "Runner-up: {name} ({:+.0} %). ", 100.0 * gain);
        }
        if let Some((name, gain)) = self.worst.as_ref().filter(|(name, _)| *name != self.scheduler) {
            let _ = write!(said, "The worst choice is {name} ({:+.0} %). ", 100.0 * gain);
        }
        Some(said.trim_end().to_owned()).filter(|said| !said.is_empty())
    }

    fn money(&self) -> Option<String> {
        let (all, single) = self.price.filter(|_| self.bond)?;
        Some(format!("A run costs {all:.4} with all lines and {single:.4} over {} alone.", self.best_single))
    }

    fn sureness(&self) -> String {
        match self.bond {
            true => format!("It beats that line in {} of {DRAWS} draws.", self.wins),
            false => format!("It is behind that line in {} of {DRAWS} draws.", DRAWS - self.wins),
        }
    }
}
