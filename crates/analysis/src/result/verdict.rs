//! Which protocol a connection speaks, why it fell back, and why joins failed.

use crate::connection::{Fate, Flow, Offer, Signal, Vantage};
use anabranch_trace::Violation;
use anabranch_units::Side;
use serde::Serialize;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Multipath TCP, version 1 (RFC 8684).
    Mptcp,
    /// Multipath TCP, version 0 (RFC 6824): its subflows are shown as TCP connections.
    MptcpV0,
    /// TCP: Multipath TCP was never offered.
    Tcp,
    /// TCP from the start, though the client offered Multipath TCP.
    TcpAfterOffer,
    /// Multipath TCP at first, TCP later.
    FellBack,
    /// Multipath TCP, without the handshake that would show its keys.
    MptcpWithoutBeginning,
}

/// Why a connection is not Multipath TCP any more, or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The SYN lost MP_CAPABLE between the hosts.
    SynStripped,
    /// The SYN/ACK lost MP_CAPABLE between the hosts.
    AnswerStripped,
    /// The SYN/ACK has no MP_CAPABLE where it was captured: the server does not speak it, or a middlebox removed it.
    AnswerPlain,
    /// The client's later SYN did without MP_CAPABLE.
    SynWithout,
    /// The server answered with another version.
    OtherVersion,
    /// A host sent MP_FAIL: a checksum did not match.
    Checksum,
    /// A host sent an infinite mapping.
    InfiniteMapping,
    /// The third ACK or the first data had no MPTCP option.
    NoOption,
}

/// A fallback to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fallback {
    /// Seconds since the connection's first packet; none if it never spoke Multipath TCP.
    pub at_s: Option<f64>,
    /// Why.
    pub cause: Cause,
    /// The clause of RFC 8684 that demands it.
    pub clause: &'static str,
}

/// Why a join failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinFailure {
    /// No answer came.
    NoAnswer,
    /// A host reset it.
    Reset {
        /// `client` or `server`.
        by: &'static str,
        /// The code of MP_TCPRST (RFC 8684 §3.6), if it has one.
        code: Option<u8>,
        /// No key that was captured has the token of the join.
        unknown_token: bool,
    },
    /// MP_JOIN was in the SYN as sent, and not as received.
    SynStripped,
    /// MP_JOIN was in the SYN/ACK as sent, and not as received.
    AnswerStripped,
    /// The SYN/ACK has no MP_JOIN where it was captured.
    AnswerPlain,
    /// The third ACK has no MP_JOIN where it was captured.
    ThirdPlain,
    /// The HMAC of a host is not that of the keys.
    Hmac,
    /// The handshake stops.
    Incomplete,
}

/// `client` or `server`.
pub(crate) const fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// The first subflow as seen beside each host.
pub(crate) type Both<'a> = [Option<&'a Flow>; 2];

fn offers(both: Both<'_>, of: impl Fn(&Flow) -> Option<Offer>) -> [Option<Offer>; 2] {
    both.map(|flow| flow.and_then(&of))
}

/// The SYN's offers as sent and as received.
fn syn(both: Both<'_>) -> [Option<Offer>; 2] {
    offers(both, |flow| Some(flow.opening.syn?.offers.0))
}

fn answer(both: Both<'_>) -> [Option<Offer>; 2] {
    offers(both, |flow| Some(flow.opening.answer?.offers.1))
}

fn version(offers: [Option<Offer>; 2]) -> Option<u8> {
    offers
        .into_iter()
        .flatten()
        .find_map(|offer| if let Offer::Capable(version) = offer { Some(version) } else { None })
}

/// The protocol of a connection whose first subflow is `both`, seen from `main`.
pub(crate) fn protocol(main: &Vantage, both: Both<'_>) -> Protocol {
    let dss = main.flows.iter().any(|flow| flow.halves.iter().any(|half| half.dss));
    match (version(syn(both)), version(answer(both))) {
        _ if main.fold.fallback.is_some() => Protocol::FellBack,
        (Some(0), _) | (None, Some(0)) => Protocol::MptcpV0,
        _ if main.fold.connected == Some(true) => Protocol::Mptcp,
        (Some(_), _) => Protocol::TcpAfterOffer,
        _ if syn(both).into_iter().flatten().any(Offer::is_join) || dss => Protocol::MptcpWithoutBeginning,
        _ => Protocol::Tcp,
    }
}

/// The fallback of a connection of this protocol.
pub(crate) fn fallback(main: &Vantage, both: Both<'_>, protocol: Protocol) -> Option<Fallback> {
    let said = |what: Signal| main.notes.all.iter().any(|note| note.what == what);
    let capable = |offer: Option<Offer>| offer.map(|offer| matches!(offer, Offer::Capable(_)));
    let at_s = main.fold.fallback.map(|at| at.since(main.first).as_secs_f64());
    // RFC 8684 §3.1 decides by the handshake, §3.7 by what comes after.
    let (cause, clause) = match protocol {
        Protocol::FellBack if said(Signal::Fail) => (Cause::Checksum, "§3.7"),
        Protocol::FellBack if said(Signal::InfiniteMapping) => (Cause::InfiniteMapping, "§3.7"),
        Protocol::FellBack => (Cause::NoOption, "§3.7"),
        Protocol::TcpAfterOffer => {
            let later = both.into_iter().flatten().filter_map(|flow| flow.opening.syn);
            let without = later.into_iter().any(|syn| syn.count > 1 && syn.offers.1 == Offer::Plain);
            let [syn_left, syn_came] = syn(both).map(capable);
            let [answer_came, answer_left] = answer(both).map(capable);
            match (answer_came, answer_left) {
                (None, None) => return None,
                _ if without => (Cause::SynWithout, "§3.1"),
                _ if syn_left == Some(true) && syn_came == Some(false) => (Cause::SynStripped, "§3.1"),
                (Some(false), Some(true)) => (Cause::AnswerStripped, "§3.1"),
                (Some(true), _) | (None, Some(true)) if version(answer(both)) != Some(1) => {
                    (Cause::OtherVersion, "§3.1")
                }
                (Some(true), _) | (None, Some(true)) => (Cause::NoOption, "§3.1"),
                _ => (Cause::AnswerPlain, "§3.1"),
            }
        }
        _ => return None,
    };
    Some(Fallback { at_s, cause, clause })
}

/// Why the join `both` failed, whose fate beside the main host is `fate`.
pub(crate) fn join_failure(main: &Vantage, both: Both<'_>, fate: Fate, known_token: bool) -> Option<JoinFailure> {
    let join = |offers: [Option<Offer>; 2]| offers.map(|offer| offer.map(Offer::is_join));
    let ([syn_left, syn_came], [answer_came, answer_left]) = (join(syn(both)), join(answer(both)));
    let hmac = main.fold.violations.iter().any(|(what, _)| *what == Violation::Hmac);
    let reset = both.into_iter().flatten().find_map(|flow| flow.opening.reset);
    let by_reset = reset.map(|reset| JoinFailure::Reset {
        by: name(reset.by),
        code: reset.reason.map(|reason| reason.code),
        unknown_token: !known_token,
    });
    Some(match fate {
        Fate::Open | Fate::Closed | Fate::Reset | Fate::Unknown => return None,
        _ if syn_left == Some(true) && syn_came == Some(false) => JoinFailure::SynStripped,
        _ if answer_left == Some(true) && answer_came == Some(false) => JoinFailure::AnswerStripped,
        Fate::NoAnswer => JoinFailure::NoAnswer,
        Fate::Stripped if answer_came.or(answer_left) == Some(false) => JoinFailure::AnswerPlain,
        Fate::Stripped => JoinFailure::ThirdPlain,
        _ if hmac => JoinFailure::Hmac,
        Fate::Refused => by_reset.unwrap_or(JoinFailure::Incomplete),
        Fate::Incomplete => JoinFailure::Incomplete,
    })
}
