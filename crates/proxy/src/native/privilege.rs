//! Root to set the network up, and no privilege afterwards.

use anabranch_lab::privilege::{CAP_NET_ADMIN, effective_capabilities};
use anabranch_link::LinkError;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};

/// `nobody`, where the program was not called by sudo.
const NOBODY: u32 = 65_534;

/// Makes sure that the network can be set up.
pub(super) fn check() -> Result<(), LinkError> {
    if geteuid().is_root() && effective_capabilities() & CAP_NET_ADMIN != 0 {
        return Ok(());
    }
    let what = "--native makes devices, routes and nftables rules: it needs root (CAP_NET_ADMIN)".to_owned();
    let help = "run it by sudo: the command gives the privileges up before it serves anyone. Between `anabranch proxy SERVER` and \
                `anabranch serve --proxy` no privilege is needed";
    Err(LinkError::Network { what, help: Some(help.to_owned()) })
}

/// The user that the command becomes: the one that called it by sudo, else [`NOBODY`].
fn user() -> (Uid, Gid) {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != 0);
    let (user, group) = id("SUDO_UID").zip(id("SUDO_GID")).unwrap_or((NOBODY, NOBODY));
    (Uid::from_raw(user), Gid::from_raw(group))
}

fn failed(what: impl Into<String>) -> impl FnOnce(Errno) -> LinkError {
    let failed = LinkError::system(what);
    move |error| failed(error.into())
}

/// Gives up root and every capability, for good, and those of programs that would be started.
pub(super) fn leave() -> Result<(), LinkError> {
    let (user, group) = user();
    let left = setgroups(&[])
        .and_then(|()| setresgid(group, group, group))
        .and_then(|()| setresuid(user, user, user))
        .and_then(|()| prctl::set_no_new_privs());
    left.map_err(failed(format!("becoming user {user}")))?;
    if effective_capabilities() != 0 || geteuid().is_root() {
        return Err(LinkError::Network { what: "the system lets no privilege be given up".to_owned(), help: None });
    }
    Ok(())
}
