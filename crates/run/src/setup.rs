//! The set-up of every connection of a run.

use crate::job::{RunError, unsupported};
use crate::{known, known_rates};
use anabranch_engine::Settings;
use anabranch_engine::connection::Setup;
use anabranch_scenario::PlugIn;
use anabranch_units::ConnId;

/// Connections that need no scheduler have this one: over one path the engine bypasses it.
pub(crate) fn fifo() -> PlugIn {
    PlugIn { name: "fifo".into(), parameters: Vec::new() }
}

/// A connection without paths.
pub(crate) fn setup(
    id: ConnId,
    settings: &Settings,
    scheduler: &PlugIn,
    congestion: &PlugIn,
) -> Result<Setup, RunError> {
    let refused = |what: &dyn core::fmt::Display| unsupported(&what.to_string());
    let (registered, _) = known::registered(&congestion.name);
    let (scheduling, _) = known_rates::registered(&scheduler.name);
    Ok(Setup {
        id,
        settings: settings.clone(),
        scheduler: anabranch_schedulers::build(scheduling, &scheduler.parameters).map_err(|e| refused(&e))?,
        congestion: anabranch_congestion::build(registered, &congestion.parameters).map_err(|e| refused(&e))?,
        paths: Vec::new(),
        announce: Vec::new(),
        accept_announced: false,
    })
}
