//! Programs that a command line starts and this machine lacks.

use crate::search_path::is_on_path;
use anabranch_workbench::failure::Failure;
use indexmap::IndexSet;
use std::ffi::{OsStr, OsString};

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
pub fn absent_of_command(command: &[OsString]) -> Vec<&OsStr> {
    absent(&command.iter().map(OsString::as_os_str).collect::<Vec<_>>())
}

/// The same for a command line of `sh`. Its other words may be the shell's own: known programs alone count.
pub fn absent_of_line(line: &str) -> Vec<&OsStr> {
    let words: Vec<&OsStr> = line.split_whitespace().map(OsStr::new).collect();
    absent(&words).into_iter().filter(|word| package(word).is_some()).collect()
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

/// True if `program` is a path, whose start then tells, or is on the PATH.
fn is_here(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/') || is_on_path(program)
}

fn package(program: &OsStr) -> Option<&'static str> {
    PACKAGES.iter().find(|(known, _)| program == *known).map(|(_, package)| *package)
}

/// Names all of these, each once, with their packages.
pub fn refusal(absent: &[&OsStr]) -> Option<Failure> {
    let absent: IndexSet<&OsStr> = absent.iter().copied().collect();
    let names: Vec<String> = absent.iter().map(|program| format!("`{}`", program.to_string_lossy())).collect();
    let verb = match names.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let packages: IndexSet<&str> = absent.iter().filter_map(|program| package(program)).collect();
    let help = match packages.is_empty() {
        true => "give its path, or install it".to_owned(),
        false => format!("Debian and Ubuntu: apt install {}", packages.into_iter().collect::<Vec<_>>().join(" ")),
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
        let command = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            refusal(&absent_of_command(&words))
        };
        assert!(command(&["sh", "-c", "no-such-program"]).is_none());
        assert!(command(&["./no-such-program"]).is_none(), "its start reports it");
        assert!(told(command(&["no-such-program"])).contains("`no-such-program` is not on the PATH"));
        let both = told(command(&["mptcpize", "run", "-d", "no-such-program"]));
        assert!(both.contains("`no-such-program`"), "{both}");
        assert_eq!(absent_of_line("cd / && exec no-such-program"), Vec::<&OsStr>::new());
    }

    #[test]
    fn each_program_and_package_is_named_once() {
        let absent = ["ss", "no-such-program", "ip", "ss"].map(OsStr::new);
        let text = told(refusal(&absent));
        assert!(text.contains("`ss` and `no-such-program` and `ip` are not on the PATH"), "{text}");
        assert!(text.contains("apt install iproute2\n"), "{text}");
    }
}
