//! The kernel settings that apply a scenario to a host.

use anabranch_engine::{
    BufferAccounting, FirstPath, LimitedDecay, ReceiveWindow, RecoveryKind, RtoForm, Settings, TcpSettings,
    packet_memory,
};
use anabranch_schedulers::linux_default::subflow_memory;
use anabranch_units::Duration;
use std::fmt::Write;

/// Settings of one host's kernel, all of its namespace alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// `sysctl` names and values, in the order in which they are set.
    pub sysctls: Vec<(String, String)>,
    /// Congestion control of its connections.
    pub congestion: String,
    /// Connections speak Multipath TCP.
    pub mptcp: bool,
    /// Attributes of every route, as `ip route` writes them.
    pub route: String,
    /// Bytes of a data segment: payload, TCP header and options.
    pub segment: u32,
    /// The connection's send buffer in bytes.
    pub send_buffer: u64,
    /// Settings of the scenario that a kernel does not have, each with the reason.
    pub not_applied: Vec<String>,
    /// Bytes of the largest packet of each path's device, by index, where that is less than the segments need.
    pub mtus: Vec<Option<u32>>,
    /// The devices pass packets of up to 64 KB. Useful where paths have no limits; elsewhere the packets are cut up.
    pub offload: bool,
}

/// TCP header without options.
const TCP_HEADER: u32 = 20;
/// Timestamps with their padding.
const TIMESTAMPS: u32 = 12;
/// Data ACK of 4 bytes, mapping of 14, and the checksum or padding: the DSS of a kernel that only sends data.
const DSS: u32 = 24;
/// Least MTU of IPv6 (RFC 8200 §5).
const LEAST_MTU_V6: u32 = 1280;

impl KernelSettings {
    /// The kernel's equivalent of the engine's `settings`.
    pub fn new(settings: &Settings, congestion: &str) -> Self {
        let tcp = &settings.tcp;
        let options = if tcp.timestamps { TIMESTAMPS } else { 0 } + if settings.mptcp { DSS } else { 0 };
        Self {
            sysctls: sysctls(settings),
            congestion: congestion.into(),
            mptcp: settings.mptcp,
            route: route(tcp),
            segment: settings.mss + TCP_HEADER + options,
            send_buffer: settings.send_buffer,
            not_applied: not_applied(settings),
            mtus: Vec::new(),
            offload: false,
        }
    }

    /// Adds the settings that depend on the IP version and on the number of subflows.
    pub(crate) fn fitted(mut self, v6: bool, subflows: usize) -> Self {
        let most = if self.mptcp { subflow_memory(self.send_buffer, subflows) } else { self.send_buffer };
        let most = most.clamp(LEAST_BUFFER, i32::MAX as u64);
        let first = FIRST_SEND_BUFFER.min(most);
        // First in the list, so that a later entry can override it.
        self.sysctls.insert(0, ("net.ipv4.tcp_wmem".into(), format!("{LEAST_BUFFER} {first} {most}")));
        if v6 && self.segment + 40 < LEAST_MTU_V6 {
            self.not_applied
                .push(format!("connection.mss: IPv6 packets of up to {LEAST_MTU_V6} bytes are always allowed"));
        }
        self
    }

    /// Largest packet of the device of a path: a data segment of the scenario's size fits exactly, unless the path carries less.
    pub fn mtu(&self, v6: bool, path: usize) -> u16 {
        let full = if v6 { (self.segment + 40).max(LEAST_MTU_V6) } else { self.segment + 20 };
        let most = self.mtus.get(path).copied().flatten().unwrap_or(u32::MAX);
        u16::try_from(full.min(most)).unwrap_or(u16::MAX)
    }

    /// The same of each path, in a line; one value where all have the same.
    pub fn mtu_list(&self, v6: &[bool]) -> String {
        let all: Vec<String> = v6.iter().enumerate().map(|(path, v6)| self.mtu(*v6, path).to_string()).collect();
        match all.split_first() {
            Some((first, rest)) if rest.iter().all(|mtu| mtu == first) => first.clone(),
            _ => all.join(" "),
        }
    }

    /// All settings, by name, for the results.
    pub fn list(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let others = [("congestion", &self.congestion), ("route", &self.route)];
        let others = others.into_iter().filter(|(_, value)| !value.is_empty());
        let others = others.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        self.sysctls.iter().cloned().chain(others)
    }
}

/// The smallest buffer that a kernel accepts.
const LEAST_BUFFER: u64 = 4096;
/// The initial send buffer before autotuning, which is Linux's default.
const FIRST_SEND_BUFFER: u64 = 16_384;

fn sysctls(settings: &Settings) -> Vec<(String, String)> {
    let yes = |on: bool| if on { "1" } else { "0" }.to_owned();
    let tcp = &settings.tcp;
    let buffer = receive_buffer(settings.recv_buffer, settings.mss);
    let mut list = vec![
        // The whole window from the start, as in the scenario, without autotuning.
        ("net.ipv4.tcp_rmem", format!("{} {buffer} {buffer}", LEAST_BUFFER.min(buffer))),
        ("net.ipv4.tcp_window_scaling", yes(true)),
        ("net.ipv4.tcp_slow_start_after_idle", yes(tcp.idle_restart)),
        ("net.ipv4.tcp_mtu_probing", yes(tcp.mtu_probing)),
        // 2: without a random offset per pair of addresses, so that forward delays of paths can be compared.
        ("net.ipv4.tcp_timestamps", if tcp.timestamps { "2" } else { "0" }.to_owned()),
        ("net.ipv4.tcp_sack", yes(tcp.sack)),
        ("net.ipv4.tcp_syn_retries", tcp.syn_retries.clamp(1, 127).to_string()),
        ("net.ipv4.tcp_retries2", tcp.retries.to_string()),
        // Metrics of one connection must not change the next.
        ("net.ipv4.tcp_no_metrics_save", yes(true)),
    ];
    if tcp.rto_max != TcpSettings::default().rto_max {
        list.push(("net.ipv4.tcp_rto_max_ms", tcp.rto_max.as_millis().clamp(1000, 120_000).to_string()));
    }
    if tcp.ecn {
        // A namespace's own value only answers offers.
        list.push(("net.ipv4.tcp_ecn", yes(true)));
    }
    if settings.mptcp {
        list.push(("net.mptcp.enabled", yes(true)));
        list.push(("net.mptcp.checksum_enabled", yes(settings.checksum)));
    }
    list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The receive buffer whose free space a kernel advertises as `window`. The window is the buffer's share that payload
/// has in the memory of received packets, in 256ths: 0.62 at 1400 bytes.
fn receive_buffer(window: u64, mss: u32) -> u64 {
    let payload = u64::from(mss);
    let ratio = (256 * payload / packet_memory(payload)).max(1);
    (window * 256).div_ceil(ratio).clamp(LEAST_BUFFER, i32::MAX as u64)
}

/// Attributes of routes; empty where the kernel's defaults apply.
fn route(tcp: &TcpSettings) -> String {
    let usual = TcpSettings::default();
    let mut route = String::new();
    if tcp.rto_min != usual.rto_min {
        let _ = write!(route, " rto_min {}ms", tcp.rto_min.as_millis().max(1));
    }
    if tcp.initial_window != usual.initial_window {
        let _ = write!(route, " initcwnd {}", tcp.initial_window);
    }
    if tcp.delayed_ack.is_zero() {
        route.push_str(" quickack 1");
    }
    route
}

/// Every setting of TCP by name: a new one does not compile until [`sysctls`], [`route`] or the sockets apply it, or
/// [`not_applied`] reports it.
#[rustfmt::skip] // The first row is applied, the others are reported.
const _: fn(TcpSettings) = |TcpSettings {
    initial_window: _, idle_restart: _, mtu_probing: _, nagle: _, timestamps: _, sack: _, ecn: _, retries: _,
    recovery: _, tail_loss_probe: _, rto_min: _, rto_max: _, rto_initial: _, rto_form: _, abc_limit: _, ack_counting: _,
    cwnd_slack: _, slow_start_at_threshold: _, initial_ssthresh: _, limited_decay: _, receive_window: _, buffer_accounting: _, autotune: _, delayed_ack: _,
    quick_acks: _, pacing: _, syn_retries: _, keep_alive: _, time_wait: _,
}| {};

/// Settings that differ from every kernel's behaviour.
fn not_applied(settings: &Settings) -> Vec<String> {
    let (tcp, usual) = (&settings.tcp, Settings::default());
    let other_ack = tcp.delayed_ack != usual.tcp.delayed_ack && !tcp.delayed_ack.is_zero();
    let whole = |time: Duration| time == Duration::from_millis(time.as_millis());
    let capped = tcp.rto_max < Duration::from_secs(1) || tcp.rto_max > Duration::from_secs(120);
    let wrong = [
        (tcp.recovery != RecoveryKind::Rack, "tcp.recovery: a kernel recovers with RACK-TLP and PRR"),
        (tcp.rto_form == RtoForm::Rfc6298, "tcp.rto_form: a kernel's is srtt + max(rto_min, 4·rttvar)"),
        (tcp.rto_initial != usual.tcp.rto_initial, "tcp.rto_initial: a kernel's is 1s"),
        (tcp.abc_limit != usual.tcp.abc_limit, "tcp.abc_limit: a kernel counts every acknowledged packet"),
        (
            tcp.ack_counting != usual.tcp.ack_counting,
            "tcp.ack_counting: a kernel counts packets in congestion avoidance, too",
        ),
        (tcp.cwnd_slack != usual.tcp.cwnd_slack, "tcp.cwnd_slack: a kernel's window counts as used when it is full"),
        (tcp.slow_start_at_threshold, "tcp.slow_start_at_threshold: a kernel's slow start ends at its threshold"),
        (tcp.tail_loss_probe.is_some(), "tcp.tail_loss_probe: a kernel probes with RACK-TLP"),
        (tcp.initial_ssthresh.is_some(), "tcp.initial_ssthresh: a kernel's is infinite"),
        (
            tcp.limited_decay == LimitedDecay::Rfc2861,
            "tcp.limited_decay: a kernel's is linux, if tcp.idle_restart is true",
        ),
        (tcp.receive_window == ReceiveWindow::Subflow, "tcp.receive_window: a kernel's is the connection's"),
        (
            tcp.buffer_accounting == BufferAccounting::Truesize,
            "tcp.buffer_accounting: a kernel counts as its version does; its buffers are made to offer recv_buffer",
        ),
        (tcp.autotune, "tcp.autotune: a kernel's buffers begin at their full size"),
        (capped, "tcp.rto_max: a kernel takes 1s to 120s"),
        (!whole(tcp.rto_min), "tcp.rto_min: a kernel takes whole milliseconds"),
        (other_ack, "tcp.delayed_ack: a kernel decides it between 40ms and 200ms; a kernel's sockets permit only 0s"),
        (
            tcp.quick_acks != usual.tcp.quick_acks,
            "tcp.quick_acks: a kernel acknowledges at once while its window grows, 16 segments at least",
        ),
        (tcp.pacing, "tcp.pacing: a kernel paces where its congestion control does"),
        (tcp.keep_alive.is_some(), "tcp.keep_alive: not set on a kernel's sockets"),
        (tcp.time_wait != usual.tcp.time_wait, "tcp.time_wait: a kernel's is 60s"),
        (!(1..=127).contains(&tcp.syn_retries), "tcp.syn_retries: a kernel takes 1 to 127"),
        (settings.first_path == FirstPath::Race, "connection.first_path: a kernel does not race its paths"),
        (
            settings.rejoin_after != usual.rejoin_after,
            "connection.rejoin_after: a kernel does not join a lost path again",
        ),
        (settings.orphan_timeout != usual.orphan_timeout, "connection.orphan_timeout: a kernel waits 60s"),
    ];
    wrong.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: impl FnOnce(&mut Settings)) -> KernelSettings {
        let mut settings = Settings::default();
        change(&mut settings);
        KernelSettings::new(&settings, "cubic")
    }

    #[test]
    fn defaults_are_the_kernels_own() {
        let settings = changed(|_| {});
        assert_eq!((settings.route.as_str(), settings.not_applied.len()), ("", 0));
    }

    #[test]
    fn a_data_segment_of_the_scenarios_size_fits_exactly() {
        assert_eq!(changed(|s| s.mss = 1424).mtu(false, 0), 1500);
        assert_eq!(changed(|s| (s.mss, s.mptcp) = (1448, false)).mtu(false, 0), 1500);
        assert_eq!(changed(|s| (s.mss, s.mptcp, s.tcp.timestamps) = (1440, false, false)).mtu(true, 0), 1500);
        let small = changed(|s| s.mss = 500);
        assert_eq!((small.mtu(false, 0), small.mtu(true, 0)), (576, 1280));
        assert!(small.fitted(true, 2).not_applied[0].contains("mss"));
    }

    #[test]
    fn mtus_are_one_value_only_where_all_paths_have_the_same() {
        let list = |mtus: &[Option<u32>]| {
            let settings = KernelSettings { mtus: mtus.to_vec(), ..changed(|s| s.mss = 1424) };
            settings.mtu_list(&[false; 3])
        };
        assert_eq!(list(&[]), "1500");
        assert_eq!(list(&[Some(1280); 3]), "1280");
        assert_eq!(list(&[None, None, Some(1280)]), "1500 1500 1280");
    }

    #[test]
    fn what_was_set_before_the_subflows_were_known_still_holds() {
        let mut settings = changed(|s| s.send_buffer = 1 << 20);
        settings.sysctls.push(("net.ipv4.tcp_wmem".into(), "1 2 3".into()));
        let settings = settings.fitted(false, 2);
        let values: Vec<&str> = settings
            .sysctls
            .iter()
            .filter(|(name, _)| name == "net.ipv4.tcp_wmem")
            .map(|(_, value)| &**value)
            .collect();
        // Two subflows, 4096 bytes of the connection and a last piece of 32 728 add up to 1 MiB.
        assert_eq!(values, ["4096 16384 505876", "1 2 3"]);
        let plain = changed(|s| (s.send_buffer, s.mptcp) = (1 << 20, false)).fitted(false, 1);
        assert_eq!(plain.sysctls[0].1, "4096 16384 1048576");
    }

    #[test]
    fn a_buffer_is_as_much_larger_than_its_window_as_packets_are_than_their_payload() {
        // 256 · 1448 / 2304 = 160: window = 5/8 of the buffer.
        assert_eq!(receive_buffer(1_310_720, 1448), 2 << 20);
        assert_eq!(receive_buffer(1, 1448), 4096);
        assert_eq!(receive_buffer(1 << 30, 64), i32::MAX as u64);
    }

    #[test]
    fn what_routes_can_say_they_say() {
        let settings = changed(|s| {
            s.tcp.rto_min = Duration::from_millis(50);
            s.tcp.initial_window = 3;
            s.tcp.delayed_ack = Duration::ZERO;
        });
        assert_eq!(settings.route, " rto_min 50ms initcwnd 3 quickack 1");
        assert!(settings.not_applied.is_empty());
    }

    #[test]
    fn what_a_kernel_cannot_do_is_told() {
        let settings = changed(|s| {
            s.tcp.recovery = RecoveryKind::Sack;
            s.tcp.rto_form = RtoForm::Rfc6298;
            s.tcp.abc_limit = 1;
            s.tcp.delayed_ack = Duration::from_millis(10);
            s.first_path = FirstPath::Race;
        });
        let keys: Vec<&str> = settings.not_applied.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
        assert_eq!(keys, ["tcp.recovery", "tcp.rto_form", "tcp.abc_limit", "tcp.delayed_ack", "connection.first_path"]);
    }
}
