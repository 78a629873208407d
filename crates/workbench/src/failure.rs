//! How a command fails, and how it reports that.

use crate::beside::meant;
use crate::input::why;
use crate::visible::visible;
use anabranch_run::Refusal;
use anabranch_scenario::without_crowds;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, Report};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::ops::Range;
use std::path::Path;

/// The number of errors of a command line that are reported; those of a scenario file are limited where it is read.
const MOST: usize = 60;

/// The fate of runs that were finished before a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salvage {
    /// There are none.
    Nothing,
    /// Their results are printed.
    Printed,
    /// They are in a journal, from which the same command continues.
    Kept,
}

impl Salvage {
    /// In words.
    pub fn help(self) -> &'static str {
        match self {
            Self::Nothing => "nothing was finished",
            Self::Printed => {
                "finished runs are printed; --out DIR would also keep them, so that the same command could continue"
            }
            Self::Kept => "finished runs are kept: the same command continues from here",
        }
    }
}

/// Why a command gives no answer.
#[derive(Debug)]
pub enum Failure {
    /// The input cannot be used: exit code 2. All that is wrong with it, in order.
    Unusable(Vec<Report>),
    /// A run or check failed, the system lacks something, or a file could not be written: exit code 1.
    Failed(Report),
    /// A signal ended it: exit code 130, as shells count it.
    Interrupted(Report),
}

impl Failure {
    /// Input that cannot be used, with what to do instead.
    pub fn unusable(code: &str, message: impl Into<String>, help: Option<String>) -> Self {
        Self::Unusable(vec![report(code, message, help)])
    }

    /// A run or a file that failed.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::missing(code, message, None)
    }

    /// The system lacks something; with what can be done about it.
    pub fn missing(code: &str, message: impl Into<String>, help: Option<String>) -> Self {
        Self::Failed(report(code, message, help))
    }

    /// A signal came in the middle of `what`; `kept` is what becomes of that which was done.
    pub fn interrupted(what: &str, kept: Salvage) -> Self {
        Self::Interrupted(report("anabranch::run::interrupted", what, Some(kept.help().into())))
    }

    /// A driver's refusal before it begins.
    pub fn refused(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Word { kind, word, why, help } => {
                let diagnostic = MietteDiagnostic::new(format!("no such {kind} on this host"))
                    .with_code("anabranch::run::not_on_this_host")
                    .with_help(help)
                    .with_label(LabeledSpan::new(Some(why), 0, word.len()));
                Self::Unusable(vec![Report::new(diagnostic).with_source_code(word)])
            }
            Refusal::Missing { what, help } => Self::missing("anabranch::run::missing", what, help),
        }
    }

    /// A file or directory that cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::failed("anabranch::cli::unwritable", format!("cannot write {}: {}", meant(path).display(), why(error)))
    }

    /// One unknown word of what the user typed, underlined, with its nearest neighbour, the words that begin with it, or the
    /// valid ones.
    pub fn unknown_word(what: &str, typed: &str, candidates: &[&str], otherwise: &str) -> Self {
        let nearest = anabranch_scenario::nearest(typed, candidates.iter().copied());
        let meant = nearest.map_or_else(|| beginning_with(typed, candidates), |word| vec![word]);
        let help = match meant.split_last() {
            None => otherwise.to_owned(),
            Some((only, [])) => format!("did you mean `{only}`?"),
            Some((last, others)) => format!("did you mean `{}` or `{last}`?", others.join("`, `")),
        };
        let diagnostic = MietteDiagnostic::new(format!("there is no {what} `{typed}`"))
            .with_code("anabranch::cli::unknown_word")
            .with_help(help)
            .with_label(LabeledSpan::new(Some("unknown".into()), 0, typed.len()));
        Self::Unusable(vec![Report::new(diagnostic).with_source_code(typed.to_owned())])
    }

    /// 1, 2 or 130.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unusable(_) => 2,
            Self::Failed(_) => 1,
            Self::Interrupted(_) => 130,
        }
    }

    /// For standard error; in colour if asked, unless it quotes what a terminal would obey: that is shown, and nothing is coloured.
    pub fn render(&self, colour: bool) -> String {
        let plain = self.rendered(false);
        match visible(&plain) {
            Cow::Owned(shown) => shown,
            Cow::Borrowed(_) if colour => self.rendered(true),
            Cow::Borrowed(_) => plain,
        }
    }

    fn rendered(&self, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
        let reports = match self {
            Self::Unusable(reports) => reports.as_slice(),
            Self::Failed(report) | Self::Interrupted(report) => std::slice::from_ref(report),
        };
        let mut text = String::new();
        let shown = without_crowds(reports.iter().collect(), |report| report.code().map(|code| code.to_string()));
        for report in shown.iter().take(MOST) {
            if handler.render_report(&mut text, report.as_ref()).is_err() {
                let _ = writeln!(text, "error: {report}");
            }
        }
        if let Some(more @ 1..) = reports.len().checked_sub(shown.len().min(MOST)) {
            let _ = writeln!(text, "\n{more} more mistakes\n");
        }
        text
    }
}

/// The candidates that begin with what was typed; none if they are more than a line has room for.
fn beginning_with<'a>(typed: &str, candidates: &[&'a str]) -> Vec<&'a str> {
    const MOST: usize = 6;
    let long = |word: &&str| typed.len() >= 3 && word.starts_with(typed);
    let mut words: Vec<&str> = candidates.iter().copied().filter(long).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() > MOST { Vec::new() } else { words }
}

/// The error in the part `at` of a `text` that the user typed, underlined.
pub fn word_report(text: &str, at: Range<usize>, label: &str, help: &str) -> Report {
    let diagnostic = MietteDiagnostic::new(format!("`{}` {label}", &text[at.clone()]))
        .with_code("anabranch::cli::unusable_word")
        .with_help(help)
        .with_label(LabeledSpan::new(Some("here".into()), at.start, at.len()));
    Report::new(diagnostic).with_source_code(text.to_owned())
}

fn report(code: &str, message: impl Into<String>, help: Option<String>) -> Report {
    let diagnostic = MietteDiagnostic::new(message).with_code(code);
    Report::new(match help {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_takes_the_colours_away() {
        let failure = |text: &str| Failure::unusable("a::b", text, Some(format!("help {text}")));
        let plain = failure("plain").render(true);
        assert!(plain.contains('\u{1b}') && plain.contains("plain"));
        let hostile = failure("x\u{1b}[31my\u{202e}").render(true);
        assert!(!hostile.contains(['\u{1b}', '\u{202e}']) && hostile.contains(r"x\x1b[31my\u{202e}"), "{hostile}");
    }
}
