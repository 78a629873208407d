//! A script's settings as a kernel's sysctls, routes and limits.

use anabranch_conformance::play::world::address;
use anabranch_conformance::script::{Address, Script, Settings};
use std::fmt::Write;

/// Addresses that each side has.
pub const ADDRESSES: u8 = 4;
/// The device.
pub const DEVICE: &str = "peer";

/// `sysctl` names and values.
pub fn sysctls(settings: &Settings) -> Vec<(&'static str, String)> {
    let yes = |on: bool| u8::from(on).to_string();
    let usual = Settings::default();
    let mut list = vec![
        ("net.ipv4.conf.all.rp_filter", yes(false)),
        ("net.ipv4.conf.default.rp_filter", yes(false)),
        ("net.ipv6.conf.all.disable_ipv6", yes(!settings.ipv6)),
        ("net.ipv6.conf.default.disable_ipv6", yes(!settings.ipv6)),
        ("net.ipv6.conf.default.accept_dad", yes(false)),
        ("net.ipv6.conf.default.router_solicitations", yes(false)),
        ("net.ipv4.tcp_timestamps", yes(settings.timestamps)),
        ("net.ipv4.tcp_sack", yes(settings.sack)),
        ("net.ipv4.tcp_ecn", yes(settings.ecn)),
        ("net.ipv4.tcp_window_scaling", yes(true)),
        ("net.ipv4.tcp_slow_start_after_idle", yes(settings.idle_restart)),
        ("net.ipv4.tcp_recovery", yes(settings.rack)),
        ("net.ipv4.tcp_early_retrans", if settings.rack { "3" } else { "0" }.into()),
        ("net.ipv4.tcp_syn_retries", settings.syn_retries.clamp(1, 127).to_string()),
        ("net.ipv4.tcp_synack_retries", settings.syn_retries.clamp(1, 127).to_string()),
        ("net.ipv4.tcp_retries2", settings.retries.to_string()),
        ("net.ipv4.tcp_rto_max_ms", settings.rto_max.as_millis().clamp(1000, 120_000).to_string()),
        // RFC 6298 §5.5: back-off from the first retransmission on.
        ("net.ipv4.tcp_syn_linear_timeouts", "0".into()),
        ("net.ipv4.tcp_no_metrics_save", yes(true)),
        ("net.mptcp.enabled", yes(true)),
        ("net.mptcp.checksum_enabled", yes(settings.checksum)),
    ];
    if settings.recv_buffer != usual.recv_buffer {
        // Of a new socket's buffer, half is advertised.
        let buffer = settings.recv_buffer * 2;
        list.push(("net.ipv4.tcp_rmem", format!("{} {buffer} {buffer}", buffer.min(4096))));
    }
    if settings.send_buffer != usual.send_buffer {
        let buffer = settings.send_buffer;
        list.push(("net.ipv4.tcp_wmem", format!("{} {buffer} {buffer}", buffer.min(4096))));
    }
    list
}

/// The device's MTU.
pub fn mtu(settings: &Settings) -> u16 {
    settings.mss + if settings.ipv6 { 60 } else { 40 }
}

/// Lines for `ip -batch`.
pub fn script(script: &Script) -> String {
    let settings = &script.settings;
    let (prefix, nodad) = if settings.ipv6 { (128, " nodad") } else { (32, "") };
    let mut lines = format!("link set lo up\nlink set {DEVICE} up\n");
    for index in 0..ADDRESSES {
        let local = address(settings.ipv6, Address::Local(index));
        let _ = writeln!(lines, "addr add {local}/{prefix} dev {DEVICE}{nodad}");
    }
    let _ = write!(lines, "route add default dev {DEVICE} src {}", address(settings.ipv6, Address::Local(0)));
    let usual = Settings::default();
    if settings.rto_min != usual.rto_min {
        let _ = write!(lines, " rto_min {}ms", settings.rto_min.as_millis().max(1));
    }
    if settings.initial_window != usual.initial_window {
        let _ = write!(lines, " initcwnd {}", settings.initial_window);
    }
    if settings.quick_ack {
        lines.push_str(" quickack 1");
    }
    let accepted = if settings.accept_announced { 8 } else { 0 };
    let _ = writeln!(lines, "\nmptcp limits set subflow 8 add_addr_accepted {accepted}");
    for join in &script.joins {
        let local = script.paths.iter().find(|line| line.path == join.path).map_or(join.path, |line| line.local);
        let flags = if join.backup { "subflow backup" } else { "subflow" };
        let local = address(settings.ipv6, Address::Local(local));
        let _ = writeln!(lines, "mptcp endpoint add {local} id {} {flags}", join.path);
    }
    lines
}
