//! `[connection]`, `[tcp]` and `[hosts]`.

use super::fields::Fields;
use super::network::Names;
use super::value;
use crate::diagnostic::Code;
use crate::keys::Key;
use crate::quantity::Threshold;
use crate::scenario::{Host, Hosts};
use crate::tree::{Node, Report};
use anabranch_engine::{
    AckCounting, BufferAccounting, DssWidth, HostModel, InitialThreshold, LimitedDecay, ReceiveWindow, RecoveryKind,
    RtoForm, Settings, TcpSettings,
};
use anabranch_units::Duration;

/// RFC 8305 §5: least and greatest time between two attempts.
const RACE_DELAYS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));

/// All settings of the connection except its scheduler and congestion control. `nagle` is the default of that key.
pub(crate) fn settings(
    report: &mut Report,
    names: &Names,
    connection: &Fields<'_>,
    tcp: &Fields<'_>,
    nagle: bool,
) -> Option<Settings> {
    let tcp = self::tcp(report, tcp, nagle);
    let mptcp = connection.get(report, "mptcp", value::flag);
    let checksum = connection.get(report, "checksum", value::flag);
    let dss = connection.get(report, "dss", value::integer);
    let mss = connection.get(report, "mss", value::size);
    let [send_buffer, recv_buffer] =
        ["send_buffer", "recv_buffer"].map(|name| buffer(report, connection, name, mss.unwrap_or(0)));
    let first_path = connection.get(report, "first_path", |report, key, node| names.first_path(report, key, node));
    if let Some(node) = connection.written("first_path") {
        names.check_first_path(report, node);
    }
    let race_delay = connection.get(report, "race_delay", race_delay);
    let rejoin_after = connection.get(report, "rejoin_after", value::duration);
    let orphan_timeout = connection.get(report, "orphan_timeout", value::duration);
    let early_rescue = connection.get(report, "early_rescue", value::flag);
    Some(Settings {
        tcp: tcp?,
        mptcp: mptcp?,
        mptcp_required: false,
        checksum: checksum?,
        dss: if dss? == 4 { DssWidth::Four } else { DssWidth::Eight },
        mss: u32::try_from(mss?).ok()?,
        send_buffer: send_buffer?,
        recv_buffer: recv_buffer?,
        // [`hosts`] sets both.
        receiver_model: HostModel::default(),
        sender_model: HostModel::default(),
        first_path: first_path?,
        race_delay: race_delay?,
        rejoin_after: rejoin_after?,
        orphan_timeout: orphan_timeout?,
        early_rescue: early_rescue?,
    })
}

fn race_delay(report: &mut Report, key: &'static Key, node: &Node) -> Option<Duration> {
    let delay = value::duration(report, key, node)?;
    let (least, most) = RACE_DELAYS;
    if !delay.is_zero() && !(least..=most).contains(&delay) {
        value::impossible(report, key, node, "is neither zero nor 10 ms to 2 s");
    }
    Some(delay)
}

/// A buffer for at least one segment.
fn buffer(report: &mut Report, connection: &Fields<'_>, name: &str, mss: u64) -> Option<u64> {
    connection.get(report, name, |report, key, node| {
        let bytes = value::size(report, key, node)?;
        if bytes < mss {
            value::impossible(report, key, node, "is smaller than one segment (`mss`)");
        }
        Some(bytes)
    })
}

fn tcp(report: &mut Report, fields: &Fields<'_>, nagle: bool) -> Option<TcpSettings> {
    let recovery = fields.get(report, "recovery", value::word);
    let [ack_counting, limited_decay, receive_window, buffer_accounting] =
        ["ack_counting", "limited_decay", "receive_window", "buffer_accounting"]
            .map(|name| fields.get(report, name, value::word));
    let tail_loss_probe = fields.get(report, "tail_loss_probe", value::flag);
    let initial_ssthresh = fields.get(report, "initial_ssthresh", initial_ssthresh);
    let rto_form = fields.get(report, "rto_form", value::word);
    let [rto_min, rto_max, rto_initial, delayed_ack, time_wait] =
        ["rto_min", "rto_max", "rto_initial", "delayed_ack", "time_wait"]
            .map(|name| fields.get(report, name, value::duration));
    let keep_alive = fields.get(report, "keep_alive", value::duration);
    let [idle_restart, autotune, pacing, timestamps, sack, ecn] =
        ["idle_restart", "autotune", "pacing", "timestamps", "sack", "ecn"]
            .map(|name| fields.get(report, name, value::flag));
    let nagle = fields.get(report, "nagle", value::flag).unwrap_or(nagle);
    let [initial_window, abc_limit, quick_acks, syn_retries, retries] =
        ["initial_window", "abc_limit", "quick_acks", "syn_retries", "retries"]
            .map(|name| fields.get(report, name, value::integer).and_then(|n| u32::try_from(n).ok()));
    check_rto(report, fields, rto_min, rto_max);
    Some(TcpSettings {
        recovery: recovery_kind(recovery?),
        tail_loss_probe,
        rto_min: rto_min?,
        rto_max: rto_max?,
        rto_initial: rto_initial?,
        rto_form: if rto_form? == "rfc6298" { RtoForm::Rfc6298 } else { RtoForm::Linux },
        initial_window: initial_window?,
        abc_limit: abc_limit.unwrap_or(u32::MAX),
        ack_counting: if ack_counting? == "packets" { AckCounting::Packets } else { AckCounting::AcksInAvoidance },
        initial_ssthresh,
        idle_restart: idle_restart?,
        limited_decay: decay(limited_decay?),
        receive_window: if receive_window? == "subflow" { ReceiveWindow::Subflow } else { ReceiveWindow::Connection },
        buffer_accounting: match buffer_accounting? {
            "truesize" => BufferAccounting::Truesize,
            _ => BufferAccounting::Payload,
        },
        autotune: autotune?,
        delayed_ack: delayed_ack?,
        quick_acks: quick_acks?,
        pacing: pacing?,
        nagle,
        timestamps: timestamps?,
        sack: sack?,
        ecn: ecn?,
        syn_retries: syn_retries?,
        retries: retries?,
        keep_alive,
        time_wait: time_wait?,
    })
}

fn recovery_kind(word: &str) -> RecoveryKind {
    match word {
        "sack" => RecoveryKind::Sack,
        "fack" => RecoveryKind::Fack,
        _ => RecoveryKind::Rack,
    }
}

fn decay(word: &str) -> LimitedDecay {
    match word {
        "rfc2861" => LimitedDecay::Rfc2861,
        "linux" => LimitedDecay::Linux,
        _ => LimitedDecay::None,
    }
}

fn check_rto(report: &mut Report, fields: &Fields<'_>, min: Option<Duration>, max: Option<Duration>) {
    if let (Some(min), Some(max), Some(node)) = (min, max, fields.written("rto_min").or(fields.written("rto_max")))
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

/// The host at each end, and the rules by which engines count windows as senders and as receivers.
pub(crate) fn hosts(report: &mut Report, fields: &Fields<'_>) -> Option<(Hosts, [HostModel; 2])> {
    let [sender, receiver] = ["sender", "receiver"].map(|name| fields.get(report, name, value::word));
    let ip = fields.get(report, "ip", value::integer);
    let host = |word: &str| if word == "linux" { Host::Linux } else { Host::Engine };
    let models = ["sender_model", "receiver_model"].map(|name| fields.get(report, name, value::word));
    let model = |word: &str| if word == "linux" { HostModel::Linux } else { HostModel::Rfc };
    let [sender_model, receiver_model] = models;
    let models = [model(sender_model?), model(receiver_model?)];
    let hosts = Hosts { sender: host(sender?), receiver: host(receiver?), ip: u8::try_from(ip?).ok()? };
    Some((hosts, models))
}
