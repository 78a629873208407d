//! Many sockets behind one descriptor (epoll), each known by a number.

use anabranch_link::LinkError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};

/// Sockets that are looked at with one call.
const BATCH: usize = 256;

/// A change of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// There may be something to read, or the end.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
    /// Both directions are over, or it failed.
    pub over: bool,
}

/// Sockets by number.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: Epoll,
}

impl Poller {
    /// None.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new() -> Result<Self, LinkError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        Ok(Self { epoll: epoll.map_err(|error| LinkError::system("epoll")(error.into()))? })
    }

    /// Reports every change of `socket` as that of `token`, once per change. It is forgotten when it is closed.
    ///
    /// # Errors
    /// The system does not take it.
    pub fn add(&self, socket: impl AsFd, token: u64) -> std::io::Result<()> {
        let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        Ok(self.epoll.add(socket, EpollEvent::new(both, token))?)
    }

    /// Calls `changed` for sockets that changed. False if there was none.
    pub fn poll(&self, mut changed: impl FnMut(u64, Readiness)) -> bool {
        let mut events = [EpollEvent::empty(); BATCH];
        // An interruption is no event.
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            let flags = event.events();
            let over = flags.intersects(EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR);
            let readable = over || flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP);
            let writable = over || flags.contains(EpollFlags::EPOLLOUT);
            changed(event.data(), Readiness { readable, writable, over });
        }
        count > 0
    }

    /// A descriptor that is readable while a socket has changed and was not polled.
    pub fn input(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}
