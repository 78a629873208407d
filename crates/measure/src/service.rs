//! Measurements as a service of a server.

use crate::server::MeasurementServer;
use anabranch_carrier::Addresses;
use anabranch_link::{ClientService, Quota, Service};

/// Bytes that the runs of all clients may take: a part of what packaging/anabranch-serve.service allows.
const MEMORY: u64 = 1 << 30;

/// A server's end of measured runs, for all its clients.
#[derive(Debug)]
pub struct MeasurementService {
    memory: Quota,
}

impl Default for MeasurementService {
    fn default() -> Self {
        Self { memory: Quota::new(MEMORY) }
    }
}

impl Service for MeasurementService {
    fn begin(&mut self, addresses: Addresses) -> Option<Box<dyn ClientService>> {
        Some(Box::new(MeasurementServer::new(addresses, self.memory.clone())))
    }
}
