//! Interfaces that come and go.

use anabranch_link::{ClientLink, LinkError, Socket};
use anabranch_units::{Duration, Instant, PathId};
use nix::net::if_::if_nametoindex;
use std::net::SocketAddr;

/// How often the system is asked: a new interface is in use well within two seconds.
const LOOK: Duration = Duration::from_millis(200);
/// A path that was silent for so long is no first choice: each is challenged every 20 s.
pub(super) const SILENCE: Duration = Duration::from_secs(24);

/// The interfaces of a client's paths.
#[derive(Debug)]
pub(crate) struct Interfaces {
    server: SocketAddr,
    names: Vec<String>,
    /// The interfaces in use, by the system's number: one that is made again has another one.
    in_use: Vec<Option<u32>>,
    next: Instant,
}

impl Interfaces {
    /// Interfaces of which none is in use.
    pub fn new(server: SocketAddr, names: Vec<String>) -> Self {
        let in_use = vec![None; names.len()];
        Self { server, names, in_use, next: Instant::ZERO }
    }

    /// When [`Self::look`] is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The interface's number, if it leads to the server.
    fn number(&self, place: usize) -> Result<u32, LinkError> {
        let name = self.names[place].as_str();
        Socket::route(name, self.server)?;
        if_nametoindex(name).map_err(|error| LinkError::system(format!("the interface {name}"))(error.into()))
    }

    /// Gives the link the interfaces that there are, and takes back those that are gone. Returns what is wrong with the others.
    pub fn look(&mut self, now: Instant, link: &mut ClientLink) -> Vec<LinkError> {
        self.next = now + LOOK;
        let mut missing = Vec::new();
        for place in 0..self.names.len() {
            let id = PathId(place as u8);
            let found = self.number(place);
            let there = found.as_ref().ok().copied();
            if there != self.in_use[place] {
                link.remove_path(id);
                let added = there.is_some() && link.add_path(now, id, &self.names[place]).is_ok();
                self.in_use[place] = there.filter(|_| added);
            }
            missing.extend(found.err());
        }
        missing
    }

    /// The paths in use: first those from which something came lately, the quickest first.
    pub fn present(&self, now: Instant, link: &ClientLink) -> Vec<PathId> {
        let all = self.in_use.iter().enumerate().filter(|(_, number)| number.is_some());
        let mut present: Vec<PathId> = all.map(|(place, _)| PathId(place as u8)).collect();
        present.sort_by_key(|id| {
            let path = link.path(*id);
            let silent = path.and_then(|path| path.heard).is_none_or(|heard| now.since(heard) > SILENCE);
            (silent, path.and_then(|path| path.rtt).unwrap_or(Duration::MAX))
        });
        present
    }
}
