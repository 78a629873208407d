//! TUN devices: where a kernel's IP packets enter and leave user space.

use crate::LabError;
use bytes::{Bytes, BytesMut};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A device of the namespace in which it was opened. It is gone with this value.
pub struct Tun {
    device: SyncDevice,
    /// Where the next packet is read into.
    buffer: BytesMut,
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").finish_non_exhaustive()
    }
}

/// Longest IP packet.
const LONGEST: usize = 65_535;
/// Size of the memory that packets are cut from.
const CHUNK: usize = 1 << 20;

impl Tun {
    /// Opens the device `name` in the calling thread's namespace, still down.
    ///
    /// # Errors
    /// The system refuses: this takes CAP_NET_ADMIN and access to `/dev/net/tun`.
    pub fn open(name: &str, mtu: u16) -> Result<Self, LabError> {
        let opened = DeviceBuilder::new().name(name).mtu(mtu).enable(false).build_sync().and_then(|device| {
            device.set_nonblocking(true)?;
            Ok(device)
        });
        match opened {
            Ok(device) => Ok(Self { device, buffer: BytesMut::new() }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(LabError::Privilege { what: format!("/dev/net/tun cannot be opened: {error}") })
            }
            Err(error) => Err(LabError::System { what: format!("opening the TUN device {name}"), source: error }),
        }
    }

    /// The next packet that the kernel sends; `None` if there is none now.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read(&mut self) -> io::Result<Option<Bytes>> {
        if self.buffer.len() < LONGEST {
            self.buffer = BytesMut::zeroed(CHUNK);
        }
        match self.device.recv(&mut self.buffer) {
            Ok(len) => Ok(Some(self.buffer.split_to(len).freeze())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel a packet. One that it does not take for good is lost, as on a wire.
    ///
    /// # Errors
    /// The device is gone.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        match self.device.send(packet) {
            Ok(_) => Ok(()),
            // EINVAL: not an IP packet, which the device itself refuses. EIO: someone inside took the device down.
            Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => Ok(()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::InvalidInput) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
