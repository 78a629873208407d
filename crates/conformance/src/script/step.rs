//! Steps: `+0.01 1< . 1:1(0) ack 1 win 65535`

use super::field::{address, duration, path_of};
use super::lex::{Cursor, Result};
use super::{After, Call, Closed, Counter, Most, Need, Sort, State, Step, What, packet};

/// Most steps per `repeat`.
const MOST_REPEATS: u64 = 100_000;

/// Reads one line into one step, or as many as it repeats.
pub(super) fn read(cursor: &mut Cursor<'_>, source: &str, steps: &mut Vec<Step>) -> Result<()> {
    let after = time(cursor)?;
    let mut times = 1;
    if cursor.take("repeat") {
        times = cursor.number("a number of repeats", MOST_REPEATS)?;
    }
    let what = what(cursor)?;
    cursor.finish()?;
    let exact = after.most == Most::Exactly;
    if !exact && !matches!(what, What::Out(..)) {
        cursor.at = 1;
        return Err(cursor.before("only what the host sends may take a range of times"));
    }
    let step = Step { line: cursor.line, text: source.trim().to_owned(), after, what };
    steps.extend((0..times).map(|_| step.clone()));
    Ok(())
}

/// `+0`, `+0.2`, `+0.2~0.3`, `+0.2~`
fn time(cursor: &mut Cursor<'_>) -> Result<After> {
    let word = cursor.word("a time")?.trim_start_matches('+');
    let wrong = |cursor: &Cursor<'_>| cursor.before("a time is in seconds: `+0.2`, `+0.2~0.3`, `+0.2~`");
    let (least, most) = match word.split_once('~') {
        None => (word, None),
        Some((least, most)) => (least, Some(most)),
    };
    let least = duration(least).ok_or_else(|| wrong(cursor))?;
    let most = match most {
        None => Most::Exactly,
        Some("") => Most::Open,
        Some(most) => Most::Until(duration(most).filter(|most| *most >= least).ok_or_else(|| wrong(cursor))?),
    };
    Ok(After { least, most })
}

const WORDS: [&str; 26] = [
    "<",
    ">",
    "optional",
    "ignore",
    "quiet",
    "listen",
    "connect",
    "accept",
    "write",
    "read",
    "shutdown",
    "close",
    "abort",
    "announce",
    "withdraw",
    "backup",
    "nobackup",
    "reset",
    "established",
    "opening",
    "multipath",
    "fallback",
    "open",
    "closed",
    "count",
    "anew",
];

fn what(cursor: &mut Cursor<'_>) -> Result<What> {
    let need = match cursor.peek() {
        Some("optional") => Need::Optional,
        Some("ignore") => Need::Ignored,
        _ => Need::Required,
    };
    cursor.at += usize::from(need != Need::Required);
    let prefixed = matches!(cursor.peek_after(1), Some("<" | ">")) && !matches!(cursor.peek(), Some("<" | ">"));
    let path = if prefixed { path_of(cursor)? } else { 0 };
    if need == Need::Required && cursor.take("<") {
        return Ok(What::In(path, packet::read(cursor, true)?));
    }
    if cursor.take(">") {
        return Ok(What::Out(path, packet::read(cursor, false)?, need));
    }
    if need != Need::Required {
        return Err(cursor.error("only a packet that the host sends may be optional or ignored: `>`"));
    }
    let word = cursor.word("a packet, a call or a state")?;
    if let Some(state) = state(cursor, word)? {
        return Ok(What::State(state));
    }
    Ok(match word {
        "quiet" => {
            let time = cursor.word("a time")?;
            What::Quiet(duration(time).ok_or_else(|| cursor.before("a time is in seconds, such as `0.5`"))?)
        }
        "count" => {
            let counter = match cursor.word("engine or kernel")? {
                "engine" => Counter::Engine,
                "kernel" => Counter::Kernel,
                _ => return Err(cursor.unknown("owner of counters", &["engine", "kernel"])),
            };
            let name = cursor.word("a counter")?.to_owned();
            What::Count(counter, name, cursor.number("a count", u64::MAX)?)
        }
        "anew" => What::Anew(path_of(cursor)?),
        _ => What::Call(call(cursor, word)?),
    })
}

fn state(cursor: &mut Cursor<'_>, word: &str) -> Result<Option<State>> {
    Ok(Some(match word {
        "established" => State::Established,
        "opening" => State::Opening,
        "multipath" => State::Multipath,
        "fallback" => State::Fallback,
        "open" => State::Open,
        "closed" => State::Closed(match cursor.word("how it ended")? {
            "finished" => Closed::Finished,
            "reset" => Closed::Reset,
            "timeout" => Closed::TimedOut,
            "refused" => Closed::Refused,
            "aborted" => Closed::Aborted,
            _ => return Err(cursor.unknown("way to end", &["finished", "reset", "timeout", "refused", "aborted"])),
        }),
        _ => return Ok(None),
    }))
}

fn call(cursor: &mut Cursor<'_>, word: &str) -> Result<Call> {
    Ok(match word {
        "listen" => Call::Listen,
        "connect" => Call::Connect,
        "accept" => Call::Accept,
        "shutdown" => Call::Shutdown,
        "close" => Call::Close,
        "abort" => Call::Abort,
        "write" if cursor.is_quoted() => Call::WriteText(cursor.word("text")?.as_bytes().to_vec()),
        "write" => Call::Write(cursor.number("a number of bytes", 1 << 24)? as usize),
        "read" if cursor.is_quoted() => Call::ReadText(cursor.word("text")?.as_bytes().to_vec()),
        "read" if cursor.take("end") => Call::ReadEnd,
        "read" if cursor.take("nothing") => Call::ReadNothing,
        "read" => {
            let len = cursor.number("a number of bytes", 1 << 24)? as usize;
            let sort = match cursor.peek() {
                Some("changed") => Sort::Changed,
                Some("any") => Sort::Any,
                _ => Sort::Stream,
            };
            cursor.at += usize::from(sort != Sort::Stream);
            Call::Read(len, sort)
        }
        "announce" => {
            let id = cursor.number("an address ID", 255)? as u8;
            let address = address(cursor)?;
            let port = if cursor.take("port") { Some(cursor.number("a port", 65_535)? as u16) } else { None };
            Call::Announce(id, address, port)
        }
        "withdraw" => Call::Withdraw(cursor.number("an address ID", 255)? as u8),
        "backup" => Call::Backup(path_of(cursor)?, true),
        "nobackup" => Call::Backup(path_of(cursor)?, false),
        "reset" => Call::ResetPath(path_of(cursor)?),
        _ => return Err(cursor.unknown("step", &WORDS)),
    })
}
