//! The drivers that come from outside.

use anabranch_run::Driver;
use anabranch_units::Duration;
use std::path::Path;

/// The drivers that run scenarios.
#[derive(Clone, Copy)]
pub struct Drivers<'a> {
    /// In virtual time.
    pub virtual_time: &'a dyn Driver,
    /// In real time, with kernels as hosts.
    pub real_time: &'a dyn Driver,
    /// The same, with each network measured before its first run, as far as that takes no longer than the limit.
    pub preflight: fn(Duration) -> Box<dyn Driver>,
    /// The directory in which commands leave runs of single paths for later ones; see [`cache_folder`](crate::cache::cache_folder).
    pub cache: Option<&'a Path>,
}
