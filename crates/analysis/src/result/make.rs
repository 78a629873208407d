//! From what was followed to values.

use super::subflow::subflow;
use super::verdict::{fallback, name, protocol};
use super::{Analysis, Connection, Event, Near, Protocol, stream};
use crate::connection::{self, Connections, Note, Offer, Vantage, half};
use crate::frames::CaptureInfo;
use anabranch_units::{Instant, Side};

/// The version of the values' form.
const FORMAT: u32 = 1;

/// The whole analysis. `host` is the near host that the user names.
pub(crate) fn analysis(captures: Vec<CaptureInfo>, all: Connections, host: Option<Side>, begin: Instant) -> Analysis {
    let sum = |of: fn(&Vantage) -> u64| all.all.iter().flat_map(|c| c.vantages.iter().flatten()).map(of).sum();
    let (packets, sightings) = (sum(|v| v.packets), sum(|v| v.sightings));
    let beyond_packets = all.beyond;
    let connections = all.all.iter().filter_map(|c| connection(c, host, begin)).collect();
    Analysis { format: FORMAT, captures, packets, sightings, beyond_packets, connections }
}

/// The vantage point from which a connection is described: that of the user, else beside the host that sent more.
fn main_of(vantages: &[Option<Vantage>; 2], host: Option<Side>) -> Option<&Vantage> {
    let [client, server] = vantages;
    let bytes = |v: &Vantage, side: Side| v.flows.iter().map(|flow| flow.halves[half(side)].bytes).sum::<u64>();
    match (client, server, host) {
        (Some(client), Some(_), Some(Side::Client)) => Some(client),
        (Some(_), Some(server), Some(Side::Server)) => Some(server),
        (Some(client), Some(server), None) if bytes(client, Side::Client) > bytes(server, Side::Server) => Some(client),
        (Some(_), Some(server), None) => Some(server),
        _ => client.as_ref().or(server.as_ref()),
    }
}

fn connection(of: &connection::Connection, host: Option<Side>, begin: Instant) -> Option<Connection> {
    let vantages = &of.vantages;
    let main = main_of(vantages, host)?;
    let first_flow = [0, 1].map(|side| vantages[side].as_ref()?.flows.first().filter(|flow| flow.first.is_some()));
    let protocol = match of.joined {
        Some(_) => Protocol::MptcpWithoutBeginning,
        None => protocol(main, first_flow),
    };
    let known_token = of.tokens.iter().any(Option::is_some);
    let subflows: Vec<_> = of
        .subflows
        .iter()
        .enumerate()
        .map(|(n, ends)| subflow(vantages, main, n, (ends.client, ends.server), known_token))
        .collect();
    let last = vantages.iter().flatten().map(|v| v.last).max()?;
    let streams =
        [Side::Server, Side::Client].into_iter().filter_map(|from| stream::stream(vantages, main.first, from, last));
    let unfollowed = main.unfollowed();
    let syn = first_flow
        .iter()
        .flatten()
        .any(|flow| flow.opening.syn.is_some_and(|syn| !matches!(syn.offers.0, Offer::Join(_))));
    let ends = of.subflows.first()?;
    Some(Connection {
        number: of.number + 1,
        protocol,
        client: ends.client,
        server: ends.server,
        tokens: of.tokens.map(|token| token.map(|token| format!("{token:08x}"))),
        begins_s: main.first.since(begin).as_secs_f64(),
        begins_unix_s: main.first.as_secs_f64(),
        lasts_s: last.since(main.first).as_secs_f64(),
        near: near(vantages),
        near_assumed: of.assumed,
        whole: syn,
        fallback: fallback(main, first_flow, protocol),
        streams: streams.collect(),
        subflows,
        events: main.notes.all.iter().map(|note| event(note, main.first)).collect(),
        more_events: main.notes.more,
        unmapped_bytes: unfollowed.unmapped_bytes,
        missed_bytes: unfollowed.missed_bytes,
        violations: main.fold.violations.iter().map(|(what, count)| (format!("{what:?}"), *count)).collect(),
        story: Vec::new(),
    })
}

fn near(vantages: &[Option<Vantage>; 2]) -> Near {
    match vantages {
        [Some(_), Some(_)] => Near::Both,
        [None, Some(_)] => Near::Server,
        _ => Near::Client,
    }
}

fn event(note: &Note, first: Instant) -> Event {
    let at_s = note.at.since(first).as_secs_f64();
    Event { at_s, subflow: note.subflow + 1, from: name(note.from), what: note.what }
}
