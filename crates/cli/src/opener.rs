//! Shows a file with whatever the desktop has for it.

use crate::search_path::is_on_path;
use anabranch_workbench::failure::Failure;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(target_os = "windows") {
    "explorer.exe"
} else {
    "xdg-open"
};

/// The desktop's program that opens files.
#[derive(Debug)]
pub struct Opener(());

impl Opener {
    /// Finds the program in `PATH`.
    ///
    /// # Errors
    /// `PATH` has no such program.
    pub fn find() -> Result<Self, Failure> {
        if is_on_path(PROGRAM.as_ref()) {
            return Ok(Self(()));
        }
        let help = "leave out --open, and open report.html in a browser".to_owned();
        Err(Failure::missing(CODE, format!("nothing here opens files: `{PROGRAM}` is not in PATH"), Some(help)))
    }

    /// Opens the report `file`.
    ///
    /// # Errors
    /// The program cannot: without a desktop, for instance.
    pub fn open(&self, file: &Path) -> Result<(), Failure> {
        let help = format!("the report is written: open {} in a browser", file.display());
        show(file.as_os_str(), "the report", help)
    }

    /// Opens the page at `url`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_page(&self, url: &str) -> Result<(), Failure> {
        show(url.as_ref(), "the page", format!("open {url} in a browser"))
    }
}

fn show(target: &OsStr, what: &str, help: String) -> Result<(), Failure> {
    let ran =
        Command::new(PROGRAM).arg(target).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let why = match ran {
        // Windows' says 1 whatever happens.
        Ok(status) if status.success() || cfg!(target_os = "windows") => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Failure::missing(CODE, format!("`{PROGRAM}` did not open {what}: {why}"), Some(help)))
}

const CODE: &str = "anabranch::report::not_opened";
