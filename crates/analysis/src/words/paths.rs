//! How subflows came and went.

use super::quantity::{count, list, seconds, times};
use crate::connection::{Fate, Signal};
use crate::result::{Connection, Event, JoinFailure, Subflow};

/// Announcements, joins, priorities.
pub(super) fn sentences(of: &Connection) -> Vec<String> {
    let mut story: Vec<String> = of.events.iter().filter_map(announcement).collect();
    story.extend(of.subflows.iter().filter(|subflow| subflow.join).map(join));
    story
}

fn announcement(event: &Event) -> Option<String> {
    let Event { at_s, subflow, from, what } = event;
    let at = seconds(*at_s);
    Some(match what {
        Signal::AddAddr { id, address, port: Some(port) } => {
            format!("After {at} the {from} announces {address} port {port} as address {id}.")
        }
        Signal::AddAddr { id, address, port: None } => {
            format!("After {at} the {from} announces {address} as address {id}.")
        }
        Signal::RemoveAddr { id } => format!("After {at} the {from} withdraws address {id}."),
        Signal::Priority { backup: true } => format!("After {at} the {from} makes subflow {subflow} a backup."),
        Signal::Priority { backup: false } => format!("After {at} the {from} makes subflow {subflow} a regular one."),
        _ => return None,
    })
}

fn join(of: &Subflow) -> String {
    let Subflow { number, client, server, .. } = of;
    let backup = if of.backup { ", as a backup" } else { "" };
    let begin = format!("Subflow {number} ({client} to {server}{backup})");
    let at = seconds(of.begins_s);
    let Some(failure) = &of.failure else {
        let round = of.handshake_rtt_s.map(|rtt| format!(", with a first round trip of {}", seconds(rtt)));
        return format!("{begin} joins after {at}{}.", round.unwrap_or_default());
    };
    let why = match failure {
        JoinFailure::NoAnswer => {
            format!("no answer came to {} within {}", count(of.syns, "SYN"), seconds(of.ends_s - of.begins_s))
        }
        JoinFailure::Reset { by, code, unknown_token } => {
            let token = if *unknown_token { "; no key in the capture has its token" } else { "" };
            format!("the {by} resets it{}{token}", code.map_or(String::new(), |code| format!(" with {}", reason(code))))
        }
        JoinFailure::SynStripped => {
            "MP_JOIN was removed from the SYN on its way to the server, which takes it for a new connection \
             (RFC 8684 §3.2)"
                .into()
        }
        JoinFailure::AnswerStripped => {
            "MP_JOIN was removed from the SYN/ACK on its way to the client, which resets the subflow (RFC 8684 §3.7)"
                .into()
        }
        JoinFailure::AnswerPlain => {
            "its SYN/ACK has no MP_JOIN: a middlebox removed the option from the SYN or from the SYN/ACK, and the client \
             resets the subflow (RFC 8684 §3.7)"
                .into()
        }
        JoinFailure::ThirdPlain => "its third ACK has no MP_JOIN, so the server cannot authenticate it (RFC 8684 §3.2)".into(),
        JoinFailure::Hmac => "an HMAC does not match the keys (RFC 8684 §3.2)".into(),
        JoinFailure::Incomplete => "its handshake stops before the fourth segment (RFC 8684 §3.2)".into(),
    };
    format!("{begin} is tried after {at} and fails: {why}.")
}

/// The meaning of a reason code (RFC 8684 §3.6).
fn reason(code: u8) -> String {
    let meaning = match code {
        0 => "unspecified error",
        1 => "MPTCP-specific error",
        2 => "lack of resources",
        3 => "administratively prohibited",
        4 => "too much outstanding data",
        5 => "unacceptable performance",
        6 => "middlebox interference",
        _ => "not defined",
    };
    format!("reason {code}, {meaning} (RFC 8684 §3.6)")
}

/// Resets, failures and the end.
pub(super) fn ending(of: &Connection) -> Vec<String> {
    let mut story: Vec<String> = of.events.iter().filter_map(|event| abrupt(of, event)).collect();
    let open: Vec<String> = of.subflows.iter().filter(|s| s.fate == Fate::Open).map(|s| s.number.to_string()).collect();
    let fins = of.events.iter().filter(|event| event.what == Signal::DataFin).count();
    if fins == 2 {
        story.push("Both hosts end their data with DATA_FIN.".into());
    } else if story.is_empty() && !open.is_empty() && of.whole {
        let (which, verb) = if open.len() == 1 { ("subflow", "is") } else { ("subflows", "are") };
        story.push(format!("When the capture ends, {which} {} {verb} still open.", list(&open)));
    }
    story
}

fn abrupt(of: &Connection, event: &Event) -> Option<String> {
    let Event { at_s, subflow, from, what } = event;
    let at = seconds(*at_s);
    let failed = |number: &usize| of.subflows.get(number - 1).is_some_and(|s| s.failure.is_some());
    Some(match what {
        Signal::Reset { code, transient } if !failed(subflow) => {
            let code = code.map_or("without a reason".into(), |code| format!("with {}", reason(code)));
            let transient = if *transient { "; it may be tried again" } else { "" };
            format!("After {at} the {from} resets subflow {subflow} {code}{transient}.")
        }
        Signal::FastClose => format!("After {at} the {from} aborts the connection with MP_FASTCLOSE (RFC 8684 §3.5)."),
        _ => return None,
    })
}

/// Outages and how long the switch took.
pub(super) fn outages(of: &Connection) -> Vec<String> {
    let ways = of.subflows.iter().flat_map(|subflow| subflow.ways.iter().map(move |way| (subflow.number, way)));
    ways.filter_map(|(number, way)| {
        let longest = way.outages.iter().max_by(|a, b| length(of, a).total_cmp(&length(of, b)))?;
        let n = way.outages.len() as u64;
        let which = if n == 1 { String::new() } else { format!(" {}; the longest time", times(n)) };
        let rest = match longest.until_s {
            Some(until) => format!("for {}", seconds(until - longest.from_s)),
            None => "until the capture ends".into(),
        };
        let switch = match longest.rescued_s {
            Some(at) => {
                format!("its data leaves again on another subflow {} later", seconds((at - longest.from_s).max(0.0)))
            }
            None => "its data is not sent on another subflow in that time".into(),
        };
        Some(format!(
            "Subflow {number} is silent with data of the {} outstanding{which} from {} on, {rest}; {switch}.",
            way.from,
            seconds(longest.from_s)
        ))
    })
    .collect()
}

fn length(of: &Connection, outage: &crate::result::Outage) -> f64 {
    outage.until_s.unwrap_or(of.lasts_s) - outage.from_s
}
