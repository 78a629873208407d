//! The proxy as a service of a server: the far end of its clients' proxies.

use crate::connection_table::ProxyStation;
use crate::egress::{Egress, EgressSettings};
use crate::local_addresses::LocalAddresses;
use crate::message::PORT;
use anabranch_carrier::Addresses;
use anabranch_link::{ClientService, ClientStatus, LinkError, Quota, Service};
use anabranch_units::{Duration, Instant, PathId};
use std::net::SocketAddr;

/// A server's end of proxies, for all its clients.
#[derive(Debug)]
pub struct ProxyService {
    settings: EgressSettings,
    /// The buffers of all clients.
    buffers: Quota,
}

impl ProxyService {
    /// A service with these settings.
    ///
    /// # Errors
    /// The system does not list the addresses of this host.
    pub fn new(settings: EgressSettings) -> Result<Self, LinkError> {
        LocalAddresses::look()
            .map_err(LinkError::system("listing the addresses of this host, which no client may dial"))?;
        Ok(Self { buffers: Quota::new(settings.memory), settings })
    }
}

impl Service for ProxyService {
    fn begin(&mut self, addresses: Addresses) -> Option<Box<dyn ClientService>> {
        // Without a file descriptor left there is no proxy in this session.
        let egress = Egress::new(addresses, &self.settings, &self.buffers).ok()?;
        Some(Box::new(ProxyStation(egress)))
    }

    fn keep(&self) -> Duration {
        self.settings.connections.orphan_timeout
    }
}

impl ClientService for ProxyStation<Egress> {
    fn takes(&self, port: u16) -> bool {
        port == PORT
    }

    fn status(&self, now: Instant, name: &str, address: &dyn Fn(PathId) -> Option<SocketAddr>) -> ClientStatus {
        self.0.status(now, name, &|id| Some(address(id)?.to_string()))
    }

    fn abort(&mut self, now: Instant) {
        self.0.abort(now);
    }
}
