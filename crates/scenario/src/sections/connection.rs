//! `[connection]`: the multipath connection.

use super::fields::Fields;
use super::network::Names;
use super::value;
use crate::keys::{BUFFER, Form, Key, MAX_MSS, MIN_MSS};
use crate::notation::{CONGESTION, FLAG, Notation, POSITIVE_TIME, SCHEDULER, TIME, size};
use crate::row::Row;
use crate::scenario::Scenario;
use crate::tree::{Node, Report, Value};
use anabranch_engine::{DssWidth, FirstPath};
use anabranch_units::Duration;

/// RFC 8305 §5: least and greatest time between two attempts.
const RACE_DELAYS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));
const RACE_DELAY: Notation<Duration> = Notation { read: race_delay, ..TIME };
const DSS: Notation<DssWidth> = Notation { form: Form::Integers(&[4, 8]), read: dss, write: written_dss };

#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(scenario: &mut Scenario) -> Vec<Row<'_>> {
    let s = &mut scenario.settings;
    vec![
        Row::new("scheduler", SCHEDULER, &mut scenario.scheduler, "packet scheduler; +pr adds opportunistic retransmission and penalisation, +or retransmission alone").or("minrtt").changeable(),
        Row::new("congestion", CONGESTION, &mut scenario.congestion, "congestion control").or("cubic"),
        Row::new("mptcp", FLAG, &mut s.mptcp, "speak Multipath TCP; false = plain TCP without its options, over one path"),
        Row::new("checksum", FLAG, &mut s.checksum, "require DSS checksums (RFC 8684 §3.3)"),
        Row::new("dss", DSS, &mut s.dss, "bytes of the data sequence numbers and data acknowledgments that are sent (RFC 8684 §3.3)"),
        Row::new("mss", size(MIN_MSS, MAX_MSS), &mut s.mss, "largest payload of a data segment, after all options"),
        Row::new("send_buffer", BUFFER, &mut s.send_buffer, "bytes written by the application and not yet acknowledged, at least mss; payload, not a kernel's memory"),
        Row::new("recv_buffer", BUFFER, &mut s.recv_buffer, "the connection's receive window, at least mss"),
        Row::by_hand("first_path", Form::FirstPath, "the path over which the client opens the connection; it joins over the others. first: the first [[path]]; NAME: the path of that name (rename it if it is first or race); race: a SYN with MP_CAPABLE over each path in turn, race_delay apart, backups last; the first answer decides, and a later SYN/ACK is reset (RFC 8305 §5, RobE_SIM of draft-amend-tcpm-mptcp-robe). The metric syns_sent is its cost").or("first"),
        Row::new("race_delay", RACE_DELAY, &mut s.race_delay, "first_path = \"race\": from one path's SYN to the next one's (RFC 8305 §5: Connection Attempt Delay), 10 ms to 2 s; 0s: all at once"),
        Row::new("rejoin_after", POSITIVE_TIME, &mut s.rejoin_after, "delay before the client joins a lost path again; doubles up to 16 s"),
        Row::new("orphan_timeout", POSITIVE_TIME, &mut s.orphan_timeout, "how long a connection without any subflow waits for one before it ends (Linux: net.mptcp.close_timeout)"),
        Row::new("early_rescue", FLAG, &mut s.early_rescue, "retransmit a silent path's data on another path after about two round trips; false: after its retransmission timeout. linux-default always waits for the timeout"),
    ]
}

/// Reads all of it into `scenario`.
pub(super) fn read(report: &mut Report, fields: &Fields<'_>, names: &Names, scenario: &mut Scenario) {
    fields.fill(report, None, rows(scenario));
    let first_path = fields.get(report, "first_path", |report, key, node| names.first_path(report, key, node));
    scenario.settings.first_path = first_path.unwrap_or_default();
    if let Some(node) = fields.written("first_path") {
        names.check_first_path(report, node);
    }
    check_buffers(report, fields, scenario);
}

/// The value of `first_path`. None for the first path where the word `first` is another path's name.
pub(crate) fn first_path(scenario: &Scenario) -> Option<&str> {
    let paths = &scenario.topology.paths;
    match scenario.settings.first_path {
        FirstPath::First => Some("first").filter(|word| paths.iter().skip(1).all(|path| path.name != *word)),
        FirstPath::On(path) => paths.get(path.index()).map(|path| path.name.as_str()),
        FirstPath::Race => Some("race"),
    }
}

/// Each buffer has room for at least one segment.
fn check_buffers(report: &mut Report, fields: &Fields<'_>, scenario: &Scenario) {
    let settings = &scenario.settings;
    for (name, bytes) in [("send_buffer", settings.send_buffer), ("recv_buffer", settings.recv_buffer)] {
        if let Some(node) = fields.written(name).filter(|_| bytes < settings.mss.into())
            && fields.are_sound(report, &["mss", name])
        {
            value::impossible(report, fields.key(name), node, "is smaller than one segment (`mss`)");
        }
    }
}

fn race_delay(report: &mut Report, key: &'static Key, node: &Node) -> Option<Duration> {
    let delay = value::duration(report, key, node)?;
    let (least, most) = RACE_DELAYS;
    if !delay.is_zero() && !(least..=most).contains(&delay) {
        value::impossible(report, key, node, "is neither zero nor 10 ms to 2 s");
    }
    Some(delay)
}

fn dss(report: &mut Report, key: &'static Key, node: &Node) -> Option<DssWidth> {
    value::integer(report, key, node)?;
    Some(if matches!(node.value, Value::Integer(4)) { DssWidth::Four } else { DssWidth::Eight })
}

fn written_dss(width: &DssWidth) -> String {
    match width {
        DssWidth::Four => "4".into(),
        DssWidth::Eight => "8".into(),
    }
}
