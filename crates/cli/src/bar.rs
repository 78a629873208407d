//! A progress bar on the terminal.

use crate::terminal::say;
use anabranch_workbench::progress::Progress;
use anabranch_workbench::visible::visible;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error; hidden unless that is a terminal.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// One that is shown once runs are planned.
    pub fn new() -> Self {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left") {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Progress for Bar {
    fn advance(&self, done: usize, planned: usize) {
        self.0.set_length(planned as u64);
        self.0.set_position(done as u64);
    }

    fn say(&self, text: &str) {
        self.0.println(visible(text));
    }

    fn warn(&self, text: &str) {
        self.0.suspend(|| say(&format!("{text}\n")));
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}
