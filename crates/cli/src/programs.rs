//! Programs that a command line starts and this machine lacks.

use crate::failure::Failure;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;

/// Programs that are often run over paths, each with its package in Debian and Ubuntu.
const PACKAGES: [(&str, &str); 14] = [
    ("curl", "curl"),
    ("dig", "bind9-dnsutils"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iperf", "iperf"),
    ("iperf3", "iperf3"),
    ("mptcpize", "mptcpize"),
    ("nc", "netcat-openbsd"),
    ("ping", "iputils-ping"),
    ("python3", "python3"),
    ("ss", "iproute2"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
    ("wget", "wget"),
];

/// The programs that `command` starts and that are not on the PATH.
pub fn missing_of_command(command: &[OsString]) -> Option<Failure> {
    let words: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
    refusal(&absent(&words))
}

/// The same for a command line of `sh`. Its other words may be the shell's own: known programs alone count.
pub fn missing_of_line(line: &str) -> Option<Failure> {
    let words: Vec<&OsStr> = line.split_whitespace().map(OsStr::new).collect();
    let absent: Vec<&OsStr> = absent(&words).into_iter().filter(|word| package(word).is_some()).collect();
    refusal(&absent)
}

/// The program, and the one that `mptcpize run` starts, as far as they are not here.
fn absent<'a>(words: &[&'a OsStr]) -> Vec<&'a OsStr> {
    let behind = match words {
        [first, second, rest @ ..] if *first == "mptcpize" && *second == "run" => {
            rest.iter().find(|word| !word.as_encoded_bytes().starts_with(b"-"))
        }
        _ => None,
    };
    words.first().into_iter().chain(behind).copied().filter(|word| !is_here(word)).collect()
}

/// True if `program` is a path, whose start then tells, or is an executable file in a folder of the PATH.
fn is_here(program: &OsStr) -> bool {
    let is_executable = |file: std::path::PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = env::var_os("PATH").unwrap_or_default();
    program.as_encoded_bytes().contains(&b'/') || env::split_paths(&path).any(|dir| is_executable(dir.join(program)))
}

fn package(program: &OsStr) -> Option<&'static str> {
    PACKAGES.iter().find(|(known, _)| program == *known).map(|(_, package)| *package)
}

fn refusal(absent: &[&OsStr]) -> Option<Failure> {
    let names: Vec<String> = absent.iter().map(|program| format!("`{}`", program.to_string_lossy())).collect();
    let verb = match names.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let mut packages: Vec<&str> = absent.iter().filter_map(|program| package(program)).collect();
    packages.dedup();
    let help = match packages.is_empty() {
        true => "give its path, or install it".to_owned(),
        false => format!("Debian and Ubuntu: apt install {}", packages.join(" ")),
    };
    let message = format!("{} {verb} not on the PATH", names.join(" and "));
    Some(Failure::missing("anabranch::shell::no_program", message, Some(help)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(failure: Option<Failure>) -> String {
        failure.map(|failure| failure.render(false)).unwrap_or_default()
    }

    #[test]
    fn a_program_that_is_not_here_is_named() {
        let command = |words: &[&str]| missing_of_command(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(command(&["sh", "-c", "no-such-program"]).is_none());
        assert!(command(&["./no-such-program"]).is_none(), "its start reports it");
        assert!(told(command(&["no-such-program"])).contains("`no-such-program` is not on the PATH"));
        let both = told(command(&["mptcpize", "run", "-d", "no-such-program"]));
        assert!(both.contains("`no-such-program`"), "{both}");
        assert!(missing_of_line("cd / && exec no-such-program").is_none());
    }
}
