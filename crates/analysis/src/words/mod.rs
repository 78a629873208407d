//! The life of a connection, in sentences.

mod paths;
mod quantity;
mod transfer;

use crate::result::{Cause, Connection, Fallback, Near, Protocol};
use quantity::{seconds, times};

/// The sentences about a connection, in the order of a story: how it opened, its paths, its data, how it ended, what is not known.
pub(crate) fn story(of: &Connection) -> Vec<String> {
    let mut story = vec![opening(of)];
    story.extend(of.fallback.as_ref().map(|fallback| fell_back(of, fallback)));
    story.extend(paths::sentences(of));
    story.extend(transfer::sentences(of));
    story.extend(paths::ending(of));
    story.extend(unknown(of));
    story
}

fn opening(of: &Connection) -> String {
    let protocol = match of.protocol {
        Protocol::Mptcp => "Multipath TCP",
        Protocol::MptcpV0 => "Multipath TCP version 0 (RFC 6824; only the headers of TCP are analysed)",
        Protocol::Tcp => "Plain TCP (Multipath TCP is not offered)",
        Protocol::TcpAfterOffer => "Plain TCP (Multipath TCP is offered)",
        Protocol::FellBack => "Multipath TCP that fell back to plain TCP",
        Protocol::MptcpWithoutBeginning => "Multipath TCP (its opening was not captured)",
    };
    let near = match of.near {
        Near::Client => "captured beside the client",
        Near::Server => "captured beside the server",
        Near::Both => "captured beside both hosts",
    };
    let guess = if of.near_assumed { " (assumed: --host says otherwise)" } else { "" };
    format!("{protocol} between {} and {} for {}, {near}{guess}.", of.client, of.server, seconds(of.lasts_s))
}

fn fell_back(of: &Connection, fallback: &Fallback) -> String {
    let syns = of.subflows.first().map_or(0, |first| first.syns);
    let why = match fallback.cause {
        Cause::SynStripped => "MP_CAPABLE was removed from the SYN on the way to the server".into(),
        Cause::AnswerStripped => "MP_CAPABLE was removed from the SYN/ACK on the way to the client".into(),
        Cause::AnswerPlain => {
            "the SYN/ACK has no MP_CAPABLE: the server does not speak it, or a middlebox removed the option".into()
        }
        Cause::SynWithout => format!("SYNs with MP_CAPABLE had no answer, and the last of {syns} did without it"),
        Cause::OtherVersion => "the server answered with another version of MP_CAPABLE".into(),
        Cause::Checksum => "a host sent MP_FAIL, because a checksum did not match the data".into(),
        Cause::InfiniteMapping => "a host sent an infinite mapping".into(),
        Cause::NoOption => "the segments after the SYN/ACK had no MPTCP option".into(),
    };
    match fallback.at_s {
        Some(at) => format!("It fell back to TCP after {} (RFC 8684 {}): {why}.", seconds(at), fallback.clause),
        None => format!("It is TCP from the start (RFC 8684 {}): {why}.", fallback.clause),
    }
}

fn unknown(of: &Connection) -> Vec<String> {
    let mut story = Vec::new();
    if !of.whole {
        let what = if of.protocol == Protocol::MptcpWithoutBeginning {
            "Without the keys of its opening, subflows are not joined to connections, and data has no place in the data sequence"
        } else {
            "Data has no place in a sequence"
        };
        story.push(format!(
            "The capture does not have the connection's first SYN. {what}: only each subflow is described."
        ));
    }
    if of.missed_bytes > 0 {
        story.push(format!("The capture lacks {} that a host acknowledged.", quantity::bytes(of.missed_bytes)));
    }
    if of.unmapped_bytes > 0 {
        story.push(format!("{} came without a mapping to the data sequence.", quantity::bytes(of.unmapped_bytes)));
    }
    let broken: u64 = of.violations.iter().map(|(_, count)| count).sum();
    if broken > 0 {
        let names: Vec<String> =
            of.violations.iter().map(|(name, count)| format!("{name} {}", times(*count))).collect();
        story.push(format!("The near host had to ignore segments that break a rule: {}.", names.join(", ")));
    }
    story
}
