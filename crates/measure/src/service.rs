//! Measurements as a service of a server.

use crate::desk::Desk;
use anabranch_carrier::Addresses;
use anabranch_link::{ClientService, Memory, Service};

/// Bytes that the runs of all clients may take: a part of what packaging/anabranch-serve.service allows.
const MEMORY: u64 = 1 << 30;

/// A server's end of measured runs, for all its clients.
#[derive(Debug)]
pub struct MeasurementService {
    memory: Memory,
}

impl Default for MeasurementService {
    fn default() -> Self {
        Self { memory: Memory::new(MEMORY) }
    }
}

impl Service for MeasurementService {
    fn begin(&mut self, addresses: Addresses) -> Option<Box<dyn ClientService>> {
        Some(Box::new(Desk::new(addresses, self.memory.clone())))
    }
}
