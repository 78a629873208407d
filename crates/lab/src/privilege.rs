//! The privileges that hosts outside need: to make network namespaces, and TUN devices in them.

use crate::{LabError, Namespace, Tun};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use std::{fs, io};

/// As a bit of [`effective_capabilities`]; capabilities(7).
pub const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const NEEDED: u64 = CAP_NET_ADMIN | CAP_SYS_ADMIN;

/// Makes sure that namespaces and devices can be made: as root, or else as the root of a user namespace, which this
/// process enters. To be called before any thread starts.
///
/// # Errors
/// The system permits neither.
pub fn acquire() -> Result<(), LabError> {
    if effective_capabilities() & NEEDED != NEEDED {
        enter_user_namespace()?;
    }
    let probe = Namespace::new()?;
    probe.enter(|| Tun::open("probe", 1500, false))?.map(drop)
}

/// The capabilities of the calling thread, as `CapEff` of proc(5); none if they cannot be read.
pub fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    value.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Makes the user root of a new user namespace. Files still belong to the user.
fn enter_user_namespace() -> Result<(), LabError> {
    let (user, group) = (getuid(), getgid());
    let denied = |source: io::Error| LabError::Privilege { what: format!("no user namespace can be made: {source}") };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| denied(errno.into()))?;
    // user_namespaces(7): the group map may be written only after this.
    fs::write("/proc/self/setgroups", "deny").map_err(denied)?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1")).map_err(denied)?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).map_err(denied)
}

/// Advice on missing privileges, for this system's settings.
pub(crate) fn advice() -> String {
    let is = |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    let locks = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ];
    let mut steps: Vec<String> = locks
        .iter()
        .filter(|(file, value, _)| is(file, value))
        .map(|(.., setting)| format!("`sysctl {setting}`"))
        .collect();
    match fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => steps.push("`modprobe tun`".into()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => steps.push("`chmod 0666 /dev/net/tun`".into()),
        _ => {}
    }
    let unlocked = if steps.is_empty() { String::new() } else { format!(" (needs {} by root)", steps.join(", ")) };
    format!(
        "run it as root, or as a user who may make user namespaces and open /dev/net/tun{unlocked}; with \
         `--sender engine --receiver engine` no privilege is needed"
    )
}
