//! TUN devices: where a kernel's IP packets enter and leave user space.

use crate::LabError;
use crate::train::Train;
use anabranch_sim::Raw;
use anabranch_wire::{Packet, VnetHeader};
use bytes::Bytes;
use nix::sys::uio::{readv, writev};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A device of the namespace in which it was opened. It ends with this value.
pub struct Tun {
    device: SyncDevice,
    /// Every packet has a [`VnetHeader`] before it.
    offload: bool,
    /// Segments with a mapping leave apart: see [`Self::keep_mappings`].
    keeps_mappings: bool,
    /// The buffer of the next packet. One that was read gets memory of its own, of its own size: it may wait for long.
    buffer: Vec<u8>,
    /// The segments to write next.
    train: Train,
    /// The buffer of a segment to write.
    packet: Vec<u8>,
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").finish_non_exhaustive()
    }
}

/// Longest IP packet.
const LONGEST: usize = 65_535;

impl Tun {
    /// Opens the device `name` in the calling thread's namespace, still down. With `offload` it passes packets of up to
    /// 64 KB that are still to be cut up, without checksums (`IFF_VNET_HDR`, `TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
    ///
    /// # Errors
    /// The system refuses: CAP_NET_ADMIN and access to `/dev/net/tun` are required.
    pub fn open(name: &str, mtu: u16, offload: bool) -> Result<Self, LabError> {
        let builder = DeviceBuilder::new().name(name).mtu(mtu).enable(false).with(|only_linux| {
            only_linux.offload(offload);
        });
        let opened = builder.build_sync().and_then(|device| {
            device.set_nonblocking(true)?;
            Ok(device)
        });
        match opened {
            Ok(device) => {
                let (buffer, train) = (vec![0; LONGEST], Train::default());
                Ok(Self { device, offload, keeps_mappings: false, buffer, train, packet: Vec::new() })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(LabError::Privilege { what: format!("/dev/net/tun cannot be opened: {error}") })
            }
            Err(error) => Err(LabError::System { what: format!("opening the TUN device {name}"), source: error }),
        }
    }

    /// Each segment keeps a mapping of its own: for a device behind which single packets may be lost. Linux resets a subflow if a
    /// retransmission has another mapping than the one that it lies in (`MPTcpExtDSSNotMatching`), as that of a part of a train would.
    #[must_use]
    pub fn keep_mappings(self) -> Self {
        Self { keeps_mappings: true, ..self }
    }

    /// The next packet of the kernel; `None` if there is none now.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read(&mut self) -> io::Result<Option<Raw>> {
        let mut header = [0; VnetHeader::LEN];
        let read = if self.offload {
            let parts = &mut [IoSliceMut::new(&mut header), IoSliceMut::new(&mut self.buffer)];
            readv(&self.device, parts).map(|len| len.saturating_sub(VnetHeader::LEN)).map_err(io::Error::from)
        } else {
            self.device.recv(&mut self.buffer)
        };
        match read {
            Ok(len) => {
                let bytes = Bytes::copy_from_slice(&self.buffer[..len]);
                Ok(Some(Raw { bytes, left: VnetHeader::from_bytes(header) }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel a packet, after those that [`Self::send`] still holds. A packet that it refuses permanently is
    /// lost, as on a wire.
    ///
    /// # Errors
    /// The device is gone; or it has no offload, and the packet needs it.
    pub fn write(&mut self, packet: &Raw) -> io::Result<()> {
        self.flush()?;
        if self.offload {
            let header = packet.left.to_bytes();
            return taken(
                writev(&self.device, &[IoSlice::new(&header), IoSlice::new(&packet.bytes)]).map_err(Into::into),
            );
        }
        if packet.left != VnetHeader::default() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a device without offload got an unfinished packet",
            ));
        }
        taken(self.device.send(&packet.bytes))
    }

    /// Gives the kernel a segment, perhaps only with [`Self::flush`]: with offload, consecutive segments go as one
    /// packet.
    ///
    /// # Errors
    /// The device is gone.
    pub fn send(&mut self, packet: Packet) -> io::Result<()> {
        if !self.offload {
            self.packet.clear();
            packet.emit_into(&mut self.packet);
            return taken(self.device.send(&self.packet));
        }
        let alone = self.keeps_mappings && packet.segment.options.dss().is_some_and(|dss| dss.mapping.is_some());
        if let Some(apart) = if alone { Some(packet) } else { self.train.couple(packet) } {
            self.flush()?;
            self.train = Train::of(apart);
        }
        Ok(())
    }

    /// Gives the kernel the held segments.
    ///
    /// # Errors
    /// The device is gone.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.train.is_empty() {
            return Ok(());
        }
        self.packet.clear();
        let header = self.train.emit_headers_into(&mut self.packet).to_bytes();
        let headers = [IoSlice::new(&header), IoSlice::new(&self.packet)];
        let parts: Vec<IoSlice<'_>> = headers.into_iter().chain(self.train.parts().map(IoSlice::new)).collect();
        let written = writev(&self.device, &parts).map_err(io::Error::from);
        self.train = Train::default();
        taken(written)
    }
}

/// Whether the device still exists.
fn taken(written: io::Result<usize>) -> io::Result<()> {
    match written {
        Ok(_) => Ok(()),
        // EINVAL: not an IP packet, which the device itself refuses. EIO: the device was set down from inside.
        Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::InvalidInput) => Ok(()),
        Err(error) => Err(error),
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
