//! Programs of the system that set a network up.

use crate::LabError;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Runs a program to its end with `input`, in the namespace of the calling thread; returns its output.
///
/// # Errors
/// It is not installed, cannot be started, or fails.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, LabError> {
    let line = || format!("{program} {}", arguments.join(" "));
    let output = output(program, arguments, input).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LabError::Tool { program: program.into() },
        _ => LabError::System { what: format!("`{}`", line()), source: error },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(LabError::Command { command: line(), output: String::from_utf8_lossy(&output.stderr).into_owned() })
}

fn output(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .env("PATH", search_path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    child.wait_with_output()
}

/// The search path of programs, with the administrators' directories, which are not on every user's PATH.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    path.push(":/usr/sbin:/sbin");
    path
}
