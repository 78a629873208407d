//! A TUN device per path.

use anabranch_lab::Tun;
use anabranch_link::{Link, LinkError, LinkEvent};
use anabranch_units::Instant;
use anabranch_wire::Packet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd};

/// Packets read from one device before the next one is served.
const BATCH: usize = 64;

struct Path {
    address: IpAddr,
    device: Tun,
}

/// The devices of all paths. The engine `()` is the only one.
pub(crate) struct NativeLink {
    paths: Vec<Path>,
    /// Packets that no device took.
    unsent: u64,
}

impl fmt::Debug for NativeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeLink").field("paths", &self.paths.len()).finish_non_exhaustive()
    }
}

impl NativeLink {
    /// Each device with the engine's address on it.
    pub fn new(devices: impl IntoIterator<Item = (Ipv4Addr, Tun)>) -> Self {
        let path = |(address, device): (Ipv4Addr, Tun)| Path { address: address.into(), device };
        Self { paths: devices.into_iter().map(path).collect(), unsent: 0 }
    }

    /// Packets that no device took: it is gone, or there is none with that address.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }
}

impl Link<()> for NativeLink {
    fn receive(&mut self, _: Instant, take: &mut dyn FnMut((), LinkEvent<'_>)) -> Result<bool, LinkError> {
        let mut any = false;
        for path in &mut self.paths {
            for _ in 0..BATCH {
                let read = path.device.read().map_err(LinkError::system("reading from a TUN device"))?;
                let Some(raw) = read else { break };
                take((), LinkEvent::Raw(&raw));
                any = true;
            }
        }
        Ok(any)
    }

    fn send(&mut self, _: Instant, (): (), packet: &Packet) {
        let path = self.paths.iter_mut().find(|path| path.address == packet.src);
        let sent = path.is_some_and(|path| path.device.send(packet.clone()).is_ok());
        self.unsent += u64::from(!sent);
    }

    fn flush(&mut self, _: Instant) {
        for path in &mut self.paths {
            self.unsent += u64::from(path.device.flush().is_err());
        }
    }

    fn next_timeout(&self) -> Instant {
        Instant::MAX
    }

    fn inputs(&self) -> Vec<BorrowedFd<'_>> {
        self.paths.iter().map(|path| path.device.as_fd()).collect()
    }
}
