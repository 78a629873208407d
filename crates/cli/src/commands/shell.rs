//! `anabranch shell`

use crate::args::ShellArguments;
use crate::link_table::link_table;
use crate::outcome::Outcome;
use crate::programs::{absent_of_command, absent_of_line, refusal};
use crate::terminal;
use anabranch_lab::LabError;
use anabranch_lab::preflight::preflight;
use anabranch_lab::shell::{Pending, Served, Shell, ShellSummary, Unarrived, Why};
use anabranch_report::text::{preflight_table, seconds};
use anabranch_scenario::{Override, Scenario};
use anabranch_units::Side;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::folder::Folder;
use anabranch_workbench::load::{Loaded, set_overrides};
use anabranch_workbench::output::Output;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The exit code of shells for a program that cannot be started.
const NOT_STARTED: u8 = 127;

/// Runs a command, or a shell, over a scenario's paths. What it prints goes to our own streams while it runs.
pub fn shell(arguments: &ShellArguments) -> Result<Outcome, Failure> {
    let scenario = scenario(arguments)?;
    // Said before anything is set up, and before a missing privilege is found.
    let command = command(arguments);
    let of_server = arguments.server.as_deref().map(absent_of_line).unwrap_or_default();
    let of_client = absent_of_command(&command);
    if let Some(missing) = refusal(&[of_server, of_client.clone()].concat()) {
        return if of_client.is_empty() { Err(missing) } else { Ok(Outcome { code: NOT_STARTED, ..missing.into() }) };
    }
    let summary_file = arguments.summary.as_deref().map(Output::claim).transpose()?;
    let measure = |limit| preflight(&scenario.topology, scenario.hosts.ip == 6, limit);
    let measured = arguments.preflight.limit().map(measure).transpose().map_err(failed)?;
    let mut shell = Shell::new(&scenario).map_err(failed)?;
    if let Some(folder) = &arguments.pcap {
        shell.capture(captures(folder)?).map_err(failed)?;
    }
    let say = |text: &str| {
        if !arguments.quiet {
            // Now: the terminal is not ours once the command runs.
            terminal::say(text);
        }
    };
    say(&measured.as_ref().map(preflight_table).unwrap_or_default());
    say(&banner(&scenario.name, &shell));
    if let Some(server) = &arguments.server
        && shell.serve(server).map_err(failed)? == Served::Silent
    {
        say("the server does not listen yet\n");
    }
    let code = match shell.run(&command) {
        Err(error @ LabError::Program { .. }) => {
            return Ok(Outcome { code: NOT_STARTED, ..failed(error).into() });
        }
        ran => ran.map_err(failed)?,
    };
    let left = shell.settle(&mut |left| say(&waiting(left))).map_err(failed)?;
    let (mut summary, captured) = shell.finish().map_err(failed)?;
    let mut wrong: Vec<Failure> = captured.err().map(failed).into_iter().collect();
    summary.live.preflight = measured;
    if let Some(file) = summary_file {
        // Strings and finite numbers only: this cannot fail.
        let text = serde_json::to_string_pretty(&summary).unwrap_or_default() + "\n";
        wrong.extend(file.write(text).err());
    }
    let report = if arguments.quiet { String::new() } else { report(&summary) };
    // A word of a loss is never left out.
    let notes = left.as_ref().map(unarrived).unwrap_or_default() + &report;
    Ok(Outcome { notes, wrong, code, ..Outcome::default() })
}

/// The one network that the file describes.
fn scenario(arguments: &ShellArguments) -> Result<Scenario, Failure> {
    // The shell runs until it is ended: the scenario needs no end of its own.
    let mut overrides = vec![Override::new("shell", "duration", "86400s")];
    overrides.extend(set_overrides(&arguments.set));
    let seed = arguments.seed.map(|seed| Override::new("--seed", "seed", seed.to_string()));
    overrides.extend(seed);
    let mut cells = Loaded::read(&arguments.scenario, overrides)?.document.cells;
    match cells.len() {
        1 => Ok(cells.remove(0).1),
        n => {
            let message =
                format!("{} is a sweep of {n} cells, and a shell has one network", arguments.scenario.display());
            Err(Failure::unusable("anabranch::shell::sweep", message, Some("leave [sweep] out".into())))
        }
    }
}

/// New files for the packets of the client and of the server.
fn captures(folder: &Path) -> Result<[(PathBuf, File); 2], Failure> {
    let opened = Folder::make(folder)?;
    let create = |name: &str| {
        let path = folder.join(name);
        let file = opened.create(name).map_err(|error| Failure::unwritable(&path, &error))?;
        Ok((path, file))
    };
    Ok([create("client.pcapng")?, create("server.pcapng")?])
}

fn command(arguments: &ShellArguments) -> Vec<OsString> {
    if arguments.command.is_empty() {
        return vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())];
    }
    arguments.command.clone()
}

fn failed(error: LabError) -> Failure {
    Failure::missing("anabranch::shell::failed", error.to_string(), error.help())
}

/// How much that is, in words.
fn amount(left: &Pending) -> String {
    let several = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let streams = format!("{} bytes of {}", left.bytes, several(left.connections, "connection"));
    let packets = several(left.packets, "packet");
    match (left.connections, left.packets) {
        (0, _) => packets,
        (_, 0) => streams,
        _ => format!("{streams}, {packets}"),
    }
}

/// Said while the command's last data is under way.
fn waiting(left: &Pending) -> String {
    format!("waiting for data under way ({}); Ctrl-C ends the wait\n", amount(left))
}

/// The data that was lost.
fn unarrived(Unarrived { left, why }: &Unarrived) -> String {
    let why = match why {
        Why::Interrupted => "a signal ended the wait".to_owned(),
        Why::NoProgress(time) => format!("nothing arrived for {time}"),
        Why::TooLong(time) => format!("it took more than {time}"),
    };
    format!("data was lost: {} did not arrive; {why}\n", amount(left))
}

/// The hosts, and how to enter them from another terminal.
fn banner(name: &str, shell: &Shell) -> String {
    let mut text = format!("{name}: you are the client; $ANABRANCH_SERVER is {}\n", shell.server());
    for (path, address) in shell.paths() {
        let _ = writeln!(text, "  path {path}: {address}");
    }
    let (client, server) = (shell.namespace(Side::Client), shell.namespace(Side::Server));
    let _ = writeln!(
        text,
        "  from another terminal: nsenter --net={client}\n  at the server:         nsenter --net={server}"
    );
    if let Some((wanted, chosen)) = shell.other_congestion() {
        let _ = writeln!(
            text,
            "  connections use the congestion control {chosen}: this kernel does not give {wanted} to every user"
        );
    }
    text
}

/// Kernels' counters that tell what became of Multipath TCP, with what they count.
const COUNTERS: [(&str, &str); 7] = [
    ("MPTcpExtMPCapableSYNTX", "MPTCP connections"),
    ("MPTcpExtMPJoinSynAckRx", "subflows joined"),
    ("MPTcpExtMPCapableFallbackSYNACK", "fallbacks in the handshake"),
    ("MPTcpExtMPCapableFallbackACK", "fallbacks at the first data"),
    ("MPTcpExtInfiniteMapTx", "later fallbacks"),
    ("MPTcpExtSubflowStale", "subflows stale"),
    ("TcpRetransSegs", "segments retransmitted"),
];

/// The summary as lines to read.
fn report(summary: &ShellSummary) -> String {
    let mut text = format!("\n{}, {:.1} s\n\n{}\n", summary.scenario, summary.elapsed_s, link_table(&summary.paths));
    for (host, counters) in &summary.live.counters {
        let known = COUNTERS.iter().filter_map(|(name, about)| Some(format!("{about} {}", counters.get(*name)?)));
        let known: Vec<String> = known.collect();
        if !known.is_empty() {
            let _ = writeln!(text, "{host}: {}", known.join(", "));
        }
    }
    let emulation = &summary.live.emulation;
    let _ = writeln!(
        text,
        "emulation: 99 % of {} packets at most {} late, the latest {}{}",
        emulation.packets,
        seconds(emulation.late_p99_s),
        seconds(emulation.late_max_s),
        if emulation.accurate { "" } else { ": the machine was too busy for exact timing" }
    );
    if emulation.late_burst_packets > 1 {
        let _ = writeln!(
            text,
            "emulation: up to {} packets left in one burst that the paths had spaced",
            emulation.late_burst_packets
        );
    }
    if emulation.device_drops > 0 {
        let _ = writeln!(text, "emulation: {} packets dropped by devices, not by paths", emulation.device_drops);
    }
    text
}
