//! The keeper: a process of this program that has the privileges which the proxy gives up. It takes orders once, and ends with the proxy.

use super::managed_network::ManagedNetwork;
use super::protocol::{KeeperConfig, KeeperMessage};
use anabranch_link::LinkError;
use nix::errno::Errno;
use nix::libc::{NFNLGRP_NFTABLES, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_LINK};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket};
use nix::unistd::read;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Stdin, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// The program name that makes this process a keeper.
pub(super) const NAME: &str = "anabranch-native-keeper";
/// Changes come in bursts.
const BURST: Duration = Duration::from_millis(20);
/// Milliseconds after which it is tried again to follow an interface.
const LATER: u16 = 500;

/// Runs as a keeper if this process was started as one; returns its exit code. To be called first of all.
pub fn keep(mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    if arguments.next().as_deref() != Some(OsStr::new(NAME)) {
        return None;
    }
    Some(u8::from(serve().is_err()))
}

/// The proxy may be gone, which the end of the input shows.
fn say(report: &KeeperMessage) {
    let line = serde_json::to_string(report).unwrap_or_default() + "\n";
    let mut output = std::io::stdout();
    let _ = output.write_all(line.as_bytes()).and_then(|()| output.flush());
}

fn serve() -> Result<(), LinkError> {
    // The signals are the proxy's. The keeper ends when the proxy has ended; programs that it starts block them, too.
    let failed = |what: &'static str| move |error: Errno| LinkError::system(what)(error.into());
    SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("blocking signals"))?;
    // Under another name than the proxy's, so that `killall` of the proxy does not end the keeper.
    let _ = prctl::set_name(c"native-keeper");
    let input = std::io::stdin();
    let mut line = String::new();
    BufReader::new(input.lock()).read_line(&mut line).map_err(LinkError::system("reading orders"))?;
    let Ok(config) = serde_json::from_str::<KeeperConfig>(&line) else { return Ok(()) };
    let route = (SockProtocol::NetlinkRoute, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE);
    let rules = (SockProtocol::NetlinkNetFilter, 1 << (NFNLGRP_NFTABLES - 1));
    let all =
        [route, rules].into_iter().map(|(protocol, groups)| news(protocol, groups)).collect::<nix::Result<Vec<_>>>();
    let kept = all.map_err(failed("netlink")).and_then(|news| {
        let mut network = ManagedNetwork::begin(config)?;
        say(&KeeperMessage::Ready(network.ready()));
        follow(&mut network, &input, &news)
    });
    kept.inspect_err(|error| say(&KeeperMessage::Failed { what: error.to_string(), help: error.help() }))
}

/// A socket that becomes readable when something of these groups changes.
fn news(protocol: SockProtocol, groups: i32) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let news = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    bind(news.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
    Ok(news)
}

/// Follows the interfaces until the proxy has ended.
///
/// # Errors
/// The rules of nftables are gone, or the system fails.
fn follow(network: &mut ManagedNetwork, input: &Stdin, news: &[OwnedFd]) -> Result<(), LinkError> {
    let mut patience = PollTimeout::NONE;
    loop {
        let inputs = [input.as_fd()].into_iter().chain(news.iter().map(OwnedFd::as_fd));
        let mut polled: Vec<PollFd<'_>> = inputs.map(|input| PollFd::new(input, PollFlags::POLLIN)).collect();
        match poll(&mut polled, patience) {
            Err(Errno::EINTR) => continue,
            other => other.map_err(|error| LinkError::system("waiting")(error.into()))?,
        };
        let changed = |polled: &PollFd<'_>| polled.any().unwrap_or(true);
        // Nothing else is said to a keeper: the input ends.
        if changed(&polled[0]) {
            return Ok(());
        }
        if polled[1..].iter().any(changed) {
            thread::sleep(BURST);
            // The contents do not matter; what was lost (ENOBUFS) does not either.
            for news in news {
                while !matches!(read(news, &mut [0; 8_192]), Err(Errno::EAGAIN)) {}
            }
        }
        network.check()?;
        patience = match network.look() {
            Ok(changed) => {
                if changed {
                    say(&KeeperMessage::Interfaces(network.states()));
                }
                PollTimeout::NONE
            }
            // An interface may have gone between two steps.
            Err(_) => {
                say(&KeeperMessage::Interfaces(network.states()));
                PollTimeout::from(LATER)
            }
        };
    }
}
