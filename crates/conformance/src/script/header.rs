//! The lines before the first step.

use super::field::{duration, path_of};
use super::lex::{Cursor, Result};
use super::{
    Clause, EngineWord, JoinLine, KernelWord, PathLine, Script, ScriptError, Settings, Step, WORDS_OF_HEADERS,
};
use core::time::Duration;

/// The header as read so far.
pub(super) struct Header<'a> {
    file: &'a str,
    title: Vec<String>,
    /// Only comments have been read so far.
    in_title: bool,
    clauses: Vec<Clause>,
    kernel: Option<KernelWord>,
    engine: EngineWord,
    settings: Settings,
    paths: Vec<PathLine>,
    joins: Vec<JoinLine>,
}

impl<'a> Header<'a> {
    pub fn new(file: &'a str) -> Self {
        Self {
            file,
            title: Vec::new(),
            in_title: true,
            clauses: Vec::new(),
            kernel: None,
            engine: EngineWord::Passes,
            settings: Settings::default(),
            paths: Vec::new(),
            joins: Vec::new(),
        }
    }

    /// A line without tokens: the title, if it comes first.
    pub fn comment(&mut self, source: &str) {
        if self.in_title {
            self.title.extend(source.trim().strip_prefix('#').map(|text| text.trim().to_owned()));
        }
    }

    pub fn read(&mut self, cursor: &mut Cursor<'_>, source: &str) -> Result<()> {
        self.in_title = false;
        match cursor.word("a word")? {
            "clause" => self.clause(cursor)?,
            "kernel" => self.kernel(cursor, source)?,
            "engine" => self.engine(cursor, source)?,
            "set" => setting(cursor, &mut self.settings)?,
            "path" => self.paths.push(path(cursor)?),
            "join" => {
                let path = path_of(cursor)?;
                self.joins.push(JoinLine { path, backup: cursor.take("backup") });
            }
            _ => return Err(cursor.unknown("line of a header", &WORDS_OF_HEADERS)),
        }
        cursor.finish()
    }

    fn clause(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let document = cursor.word("a document")?.to_owned();
        let number = document.strip_prefix("rfc").filter(|n| n.parse::<u16>().is_ok());
        if number.is_none() {
            return Err(cursor.before("a document is written like `rfc8684`"));
        }
        let section = cursor.word("a section")?.trim_start_matches('§').to_owned();
        let mut rule = String::new();
        while let Some(word) = cursor.peek() {
            cursor.at += 1;
            let space = if rule.is_empty() || word == "," { "" } else { " " };
            rule = format!("{rule}{space}{word}");
        }
        self.clauses.push(Clause { document, section, rule });
        Ok(())
    }

    fn kernel(&mut self, cursor: &mut Cursor<'_>, source: &str) -> Result<()> {
        let word = match cursor.word("passes, differs or skipped")? {
            "passes" => KernelWord::Passes,
            "differs" => KernelWord::Differs(reason(cursor, source)?),
            "skipped" => KernelWord::Skipped(reason(cursor, source)?),
            _ => return Err(cursor.unknown("word of the kernel", &["passes", "differs", "skipped"])),
        };
        self.kernel = Some(word);
        Ok(())
    }

    fn engine(&mut self, cursor: &mut Cursor<'_>, source: &str) -> Result<()> {
        self.engine = match cursor.word("passes, fails or leaves-out")? {
            "passes" => EngineWord::Passes,
            "fails" => EngineWord::Fails(reason(cursor, source)?),
            "leaves-out" => EngineWord::LeavesOut(reason(cursor, source)?),
            _ => return Err(cursor.unknown("word of the engine", &["passes", "fails", "leaves-out"])),
        };
        Ok(())
    }

    pub fn finish(self, steps: Vec<Step>) -> core::result::Result<Script, ScriptError> {
        let error = |message: &str| ScriptError {
            file: self.file.to_owned(),
            line: 1,
            column: 1,
            token: String::new(),
            message: message.to_owned(),
            nearest: None,
        };
        if self.clauses.is_empty() {
            return Err(error("the script names no `clause`"));
        }
        if self.title.is_empty() {
            return Err(error("the script has no comment at its top that says what it tests"));
        }
        if steps.is_empty() {
            return Err(error("the script has no step"));
        }
        let kernel = self.kernel.ok_or_else(|| error("the script does not say what the `kernel` does"))?;
        Ok(Script {
            file: self.file.to_owned(),
            title: self.title.join(" "),
            clauses: self.clauses,
            kernel,
            engine: self.engine,
            settings: self.settings,
            paths: self.paths,
            joins: self.joins,
            steps,
        })
    }
}

/// `, because it …`
fn reason(cursor: &mut Cursor<'_>, source: &str) -> Result<String> {
    cursor.expect(",")?;
    cursor.expect("because")?;
    let text = source.split_once("because").map_or("", |(_, text)| text.trim());
    if text.is_empty() {
        return Err(cursor.error("the reason is missing"));
    }
    cursor.at = cursor.tokens.len();
    Ok(text.trim_end_matches('.').to_owned())
}

/// `1 local.0 peer.1 port 5000 local_port 81`
fn path(cursor: &mut Cursor<'_>) -> Result<PathLine> {
    let path = path_of(cursor)?;
    let local = index(cursor, "local.")?;
    let peer = index(cursor, "peer.")?;
    let mut line = PathLine { path, local, peer, port: None, local_port: None };
    while cursor.peek().is_some() {
        match cursor.word("port")? {
            "port" => line.port = Some(cursor.number("a port", 65_535)? as u16),
            "local_port" => line.local_port = Some(cursor.number("a port", 65_535)? as u16),
            _ => return Err(cursor.unknown("part of a path", &["port", "local_port"])),
        }
    }
    Ok(line)
}

fn index(cursor: &mut Cursor<'_>, prefix: &str) -> Result<u8> {
    let word = cursor.word("an address")?;
    let index = word.strip_prefix(prefix).and_then(|n| n.parse().ok()).filter(|n| *n < 8);
    index.ok_or_else(|| cursor.before(format!("an address of a path is written like `{prefix}0`")))
}

const SETTINGS: [&str; 25] = [
    "mptcp",
    "checksum",
    "mss",
    "recv_buffer",
    "send_buffer",
    "timestamps",
    "sack",
    "ecn",
    "nagle",
    "idle_restart",
    "rack",
    "quick_ack",
    "initial_window",
    "rto_min",
    "rto_max",
    "syn_retries",
    "retries",
    "time_wait",
    "keep_alive",
    "scheduler",
    "congestion",
    "accept_announced",
    "dss",
    "ipv6",
    "race",
];

fn setting(cursor: &mut Cursor<'_>, settings: &mut Settings) -> Result<()> {
    match cursor.word("a setting")? {
        "mptcp" => settings.mptcp = on(cursor)?,
        "checksum" => settings.checksum = on(cursor)?,
        "timestamps" => settings.timestamps = on(cursor)?,
        "sack" => settings.sack = on(cursor)?,
        "ecn" => settings.ecn = on(cursor)?,
        "nagle" => settings.nagle = on(cursor)?,
        "idle_restart" => settings.idle_restart = on(cursor)?,
        "rack" => settings.rack = on(cursor)?,
        "quick_ack" => settings.quick_ack = on(cursor)?,
        "accept_announced" => settings.accept_announced = on(cursor)?,
        "ipv6" => settings.ipv6 = on(cursor)?,
        "mss" => settings.mss = cursor.number("an MSS", 8960)? as u16,
        "recv_buffer" => settings.recv_buffer = cursor.number("a size in bytes", 1 << 30)?,
        "send_buffer" => settings.send_buffer = cursor.number("a size in bytes", 1 << 30)?,
        "initial_window" => settings.initial_window = cursor.number("a number of segments", 1000)? as u32,
        "syn_retries" => settings.syn_retries = cursor.number("a number", 127)? as u32,
        "retries" => settings.retries = cursor.number("a number", 255)? as u32,
        "rto_min" => settings.rto_min = seconds(cursor)?,
        "rto_max" => settings.rto_max = seconds(cursor)?,
        "time_wait" => settings.time_wait = seconds(cursor)?,
        "keep_alive" => settings.keep_alive = Some(seconds(cursor)?),
        "race" => settings.race = Some(seconds(cursor)?),
        "scheduler" => settings.scheduler = cursor.word("a scheduler")?.to_owned(),
        "congestion" => settings.congestion = cursor.word("a congestion control")?.to_owned(),
        "dss" => match cursor.number("4 or 8", 8)? {
            bytes @ (4 | 8) => settings.dss = bytes as u8,
            _ => return Err(cursor.before("data numbers have 4 or 8 bytes")),
        },
        _ => return Err(cursor.unknown("setting", &SETTINGS)),
    }
    Ok(())
}

fn on(cursor: &mut Cursor<'_>) -> Result<bool> {
    match cursor.word("on or off")? {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(cursor.unknown("switch", &["on", "off"])),
    }
}

fn seconds(cursor: &mut Cursor<'_>) -> Result<Duration> {
    let word = cursor.word("a time")?;
    duration(word).ok_or_else(|| cursor.before("a time is in seconds, such as `0.2`"))
}
