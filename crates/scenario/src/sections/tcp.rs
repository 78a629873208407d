//! `[tcp]`: TCP on each subflow.

use super::fields::Fields;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key};
use crate::notation::{FLAG, Notation, POSITIVE_TIME, THRESHOLD, TIME, integer, word};
use crate::row::Row;
use crate::scenario::Scenario;
use crate::tree::{Node, Report, quoted};
use crate::{era, written};
use anabranch_engine::InitialThreshold;
use anabranch_network::Threshold;

const ERA: Notation<&'static str> =
    Notation { form: Form::Words(era::NAMES), read: value::word, write: |name| quoted(name) };
const SLOW_START_THRESHOLD: Notation<InitialThreshold> =
    Notation { form: THRESHOLD.form, read: initial_ssthresh, write: written_ssthresh };
const ABC_LIMIT: Notation<u32> = integer(1, 1_000_000);

#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(scenario: &mut Scenario) -> Vec<Row<'_>> {
    let s = &mut scenario.settings.tcp;
    vec![
        Row::optional("era", ERA, &mut scenario.era, "stack of other years: replaces several of the defaults below, which single keys override; `check` prints them, docs/era.md has their sources and omissions. linux-3.x counts memory: set the kernel's buffers, not half of them").silent("none: today's TCP"),
        Row::new("recovery", word(), &mut s.recovery, "loss recovery: rack: RACK-TLP with PRR (RFC 8985, RFC 6937); sack: RFC 6675, as in older stacks; fack: as sack, but three packets below the highest SACKed one are lost until reordering is seen (Mathis and Mahdavi 1996; Linux's default until 4.15)"),
        Row::optional("tail_loss_probe", FLAG, &mut s.tail_loss_probe, "probe for a lost tail: RFC 8985 §7 with rack; else draft-dukkipati-tcpm-tcp-loss-probe-01, as Linux 3.10 to 4.3 beside fack").silent("true with recovery = \"rack\", else false"),
        Row::new("rto_min", POSITIVE_TIME, &mut s.rto_min, "least retransmission timeout, or least variance term of it; see rto_form"),
        Row::new("rto_max", POSITIVE_TIME, &mut s.rto_max, "greatest retransmission timeout after back-off"),
        Row::new("rto_initial", POSITIVE_TIME, &mut s.rto_initial, "timeout before the first round-trip sample (RFC 6298 §2.1)"),
        Row::new("rto_form", word(), &mut s.rto_form, "linux: srtt + max(rto_min, 4·deviation), the deviation falling once per round trip; rfc6298: max(rto_min, srtt + 4·rttvar)"),
        Row::new("initial_window", integer(1, 10_000), &mut s.initial_window, "initial congestion window in packets (RFC 6928)"),
        Row::unless("abc_limit", ABC_LIMIT, &mut s.abc_limit, u32::MAX, "most packets per acknowledgment that count when a window grows: L of RFC 3465 §2.2; 1 counts acknowledgments, as in RFC 5681").silent("no limit, as Linux counts since 4.0"),
        Row::new("ack_counting", word(), &mut s.ack_counting, "unit of growth in congestion avoidance: packets, up to abc_limit per acknowledgment; acks-in-avoidance: acknowledgments there, packets in slow start (Linux 3.13 to 3.19; cubic counts packets there too, as it made up for delayed acknowledgments)"),
        Row::new("cwnd_slack", integer(0, 1_000_000), &mut s.cwnd_slack, "packets of the congestion window that may be free while it counts as used, so that it grows; in slow start half of it is enough (Linux until 3.15: 3)"),
        Row::new("slow_start_at_threshold", FLAG, &mut s.slow_start_at_threshold, "slow start also while the window equals its threshold, which it then passes by one packet: RFC 5681 §3.1 permits either (Linux until 4.2: true)"),
        Row::optional("initial_ssthresh", SLOW_START_THRESHOLD, &mut s.initial_ssthresh, "slow-start threshold at the beginning, in packets or bytes: 65535B in ns-3 until 2014 (RFC 5681 §3.1: arbitrarily high)").silent("none: slow start continues until a loss"),
        Row::new("mtu_probing", FLAG, &mut s.mtu_probing, "repeated timeouts make segments smaller: the path may drop larger ones silently; then larger ones are tried, and again every 600 s (RFC 4821 §7; Linux's tcp_mtu_probing = 1)"),
        Row::new("idle_restart", FLAG, &mut s.idle_restart, "shrink the congestion window after idling longer than a retransmission timeout (RFC 2861)"),
        Row::new("limited_decay", word(), &mut s.limited_decay, "decay of a congestion window that is not filled because the application writes too little (it never waits for room in the send buffer): none: no decay; rfc2861: each retransmission timeout without a full window removes half of the unused part, down to the initial window (§3.2); linux: the same, but each acknowledgment that may raise a window restarts that time, so that decay is rare"),
        Row::new("receive_window", word(), &mut s.receive_window, "scope of the receive window: connection: one window, shared by all subflows (RFC 8684 §3.3.4); subflow: each subflow has a buffer of recv_buffer bytes for the data that came on it until the application reads it, as in simulators without a shared window; when a path dies, the others' windows may stay closed (Raiciu et al., NSDI 2012, §4.2)"),
        Row::new("buffer_accounting", word(), &mut s.buffer_accounting, "unit of send_buffer and recv_buffer: payload: bytes of payload; truesize: memory, as in Linux 3.x: the window is half of recv_buffer (tcp_adv_win_scale = 1) minus half of the memory of held segments, 2304 bytes for up to 1448; send_buffer holds as many such segments as fit"),
        Row::new("autotune", FLAG, &mut s.autotune, "buffers grow: the receive window from 64 KB to twice what the application reads in the longest round trip of all subflows and 16 segments more (Linux tcp_rcv_space_adjust, at connection level), the send buffer from 16 KiB to twice the congestion windows of all subflows (tcp_sndbuf_expand), up to recv_buffer and send_buffer"),
        Row::new("delayed_ack", TIME, &mut s.delayed_ack, "longest delay of an acknowledgment; 0s acknowledges every segment"),
        Row::new("quick_acks", integer(0, 1_000_000), &mut s.quick_acks, "segments acknowledged at once after the start; Linux continues while its window grows"),
        Row::new("pacing", FLAG, &mut s.pacing, "pace at 2·cwnd/srtt in slow start and 1.2·cwnd/srtt after it"),
        Row::new("nagle", FLAG, &mut s.nagle, "hold back small segments while data is outstanding (RFC 9293 §3.7.4)").silent("true for bulk; else false, because applications sensitive to delay set TCP_NODELAY"),
        Row::new("timestamps", FLAG, &mut s.timestamps, "offer timestamps (RFC 7323)"),
        Row::new("sack", FLAG, &mut s.sack, "offer selective acknowledgments (RFC 2018)"),
        Row::new("ecn", FLAG, &mut s.ecn, "offer explicit congestion notification (RFC 3168) on every subflow; queues with ecn = true then mark packets in place of dropping them, and the sender reduces its window without a loss. docs/ecn.md"),
        Row::new("syn_retries", integer(0, 255), &mut s.syn_retries, "retransmissions of a SYN before giving up"),
        Row::new("retries", integer(1, 255), &mut s.retries, "consecutive timeouts of one segment before the subflow is given up. A client then joins over its path again (rejoin_after). A server, which cannot join, gives a subflow up only if no other one can carry data; until then it continues to try"),
        Row::optional("keep_alive", POSITIVE_TIME, &mut s.keep_alive, "probe an idle peer after this long (RFC 9293 §3.8.4)").silent("never"),
        Row::new("time_wait", TIME, &mut s.time_wait, "how long TIME-WAIT lasts"),
    ]
}

/// Reads all of it into `scenario`; the keys of an era precede the defaults.
pub(super) fn read(report: &mut Report, fields: &Fields<'_>, scenario: &mut Scenario) {
    let era = fields.get(report, "era", value::word).and_then(era::find);
    let fields = fields.with_defaults(era.map_or(&[], |era| era.keys));
    fields.fill(report, None, rows(scenario));
    let (min, max) = (scenario.settings.tcp.rto_min, scenario.settings.tcp.rto_max);
    if let Some(node) = fields.written("rto_min").or(fields.written("rto_max"))
        && fields.are_sound(report, &["rto_min", "rto_max"])
        && min > max
    {
        report
            .error(Code::Conflict, node.at, "`rto_min` is greater than `rto_max`")
            .label(format!("rto_min is {min}, rto_max {max}"))
            .help("make `rto_max` at least as long as `rto_min`");
    }
}

/// A whole number of packets or bytes, above zero.
fn initial_ssthresh(report: &mut Report, key: &'static Key, node: &Node) -> Option<InitialThreshold> {
    let Threshold { amount, in_bytes } = value::threshold(report, key, node)?;
    if amount < 1.0 || amount > f64::from(u32::MAX) || amount as u64 as f64 != amount {
        value::impossible(report, key, node, "is not a whole number of packets or bytes above zero");
        return None;
    }
    Some(if in_bytes { InitialThreshold::Bytes(amount as u64) } else { InitialThreshold::Packets(amount as u32) })
}

fn written_ssthresh(threshold: &InitialThreshold) -> String {
    match *threshold {
        InitialThreshold::Packets(packets) => packets.to_string(),
        InitialThreshold::Bytes(bytes) => written::bytes(bytes),
    }
}
