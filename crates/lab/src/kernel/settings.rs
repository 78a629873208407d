//! What of a kernel is set for a run.

use anabranch_engine::Settings;

/// Settings of one host's kernel. All are of its namespace alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// `sysctl` names and values, in the order in which they are set.
    pub sysctls: Vec<(String, String)>,
    /// Congestion control of its connections.
    pub congestion: String,
    /// Its devices hand over and take packets of up to 64 KB. The network carries each as one, so that this is only for
    /// paths that limit nothing.
    pub offload: bool,
}

/// Windows that a kernel's receive buffer of twice the size offers: half of a buffer is kept for its bookkeeping.
const BUFFER_PER_WINDOW: u64 = 2;

impl KernelSettings {
    /// Those that say for a kernel what `settings` say for the engine.
    pub fn new(settings: &Settings, congestion: &str) -> Self {
        let yes = |on: bool| if on { "1" } else { "0" }.to_owned();
        // Buffers tune themselves between the first value and the last, as they do for every user.
        let buffer = |bytes: u64, first: u64| {
            let most = bytes.saturating_mul(BUFFER_PER_WINDOW).min(i32::MAX as u64);
            format!("4096 {} {most}", first.min(most))
        };
        let tcp = &settings.tcp;
        let sysctls = [
            ("net.ipv4.tcp_rmem", buffer(settings.recv_buffer, 131_072)),
            ("net.ipv4.tcp_wmem", buffer(settings.send_buffer, 16_384)),
            ("net.ipv4.tcp_slow_start_after_idle", yes(tcp.idle_restart)),
            ("net.ipv4.tcp_timestamps", yes(tcp.timestamps)),
            ("net.ipv4.tcp_sack", yes(tcp.sack)),
            // What one connection learned must not change the next.
            ("net.ipv4.tcp_no_metrics_save", "1".into()),
            ("net.mptcp.enabled", yes(settings.mptcp)),
            ("net.mptcp.checksum_enabled", yes(settings.checksum)),
        ];
        Self {
            sysctls: sysctls.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            congestion: congestion.into(),
            offload: false,
        }
    }
}
