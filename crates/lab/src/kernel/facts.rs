//! The version and features of the running kernel.

use std::fs;

/// Release of the kernel, such as `6.18.1`.
pub fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The congestion controls that its sockets may use; none if the list cannot be read.
pub fn congestion_controls() -> Vec<String> {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

/// Whether it has Multipath TCP.
pub fn has_mptcp() -> bool {
    fs::exists("/proc/sys/net/mptcp/enabled").unwrap_or(false)
}

/// The Multipath TCP sysctls of the calling thread's namespace: names and values.
pub fn mptcp_sysctls() -> Vec<(String, String)> {
    let files = fs::read_dir("/proc/sys/net/mptcp").into_iter().flatten().flatten();
    let mut list: Vec<(String, String)> = files
        .filter_map(|file| {
            let value = fs::read_to_string(file.path()).ok()?;
            Some((format!("net.mptcp.{}", file.file_name().to_str()?), value.trim().to_owned()))
        })
        .collect();
    list.sort();
    list
}
