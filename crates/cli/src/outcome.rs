//! The outcome of a command: its results, and its failures beside them.

use anabranch_workbench::failure::Failure;
use anabranch_workbench::visible::visible;

/// The answer of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// For standard output.
    pub output: String,
    /// For standard error, after the output.
    pub errors: String,
    /// 0 = success, 1 = a run or check failed, 2 = the input cannot be used, 130 = interrupted; of `shell`, the exit code of
    /// what it ran.
    pub code: u8,
}

impl Answer {
    /// The same when its output could not be written: that is reported last, and is no success.
    #[must_use]
    pub fn unprinted(mut self, error: &std::io::Error, colour: bool) -> Self {
        let failure = Failure::unwritable("standard output".as_ref(), error);
        self.errors += &failure.render(colour);
        self.code = self.code.max(failure.exit_code());
        self
    }
}

/// Results, perhaps of a part of the work, and what kept the rest away or could not be written. What is wrong never takes
/// the results with it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// For standard output.
    pub output: String,
    /// For standard error, after the output.
    pub notes: String,
    /// For standard error, after that.
    pub wrong: Vec<Failure>,
    /// The exit code of a program that was run, unless it is 0.
    pub code: u8,
}

impl Outcome {
    /// Results with what went wrong beside them.
    pub fn new(output: String, wrong: Vec<Failure>) -> Self {
        Self { output, wrong, ..Self::default() }
    }

    /// In colour if asked.
    pub fn answer(self, colour: bool) -> Answer {
        let errors =
            self.wrong.iter().fold(visible(&self.notes).into_owned(), |text, failure| text + &failure.render(colour));
        // An interruption counts for more than a file that was not written.
        let ours = self.wrong.iter().map(Failure::exit_code).max().unwrap_or(0);
        let code = if self.code == 0 { ours } else { self.code };
        Answer { output: self.output, errors, code }
    }
}

impl From<String> for Outcome {
    fn from(output: String) -> Self {
        Self::new(output, Vec::new())
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::new(String::new(), vec![failure])
    }
}
