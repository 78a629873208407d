//! Scenario files: TOML in, a checked [`Scenario`] out, with diagnostics that point at the token.

mod scenario;

pub use scenario::{Cell, Cross, CrossKind, Host, Hosts, PlugIn, Scenario, TimelineEntry, Traffic};
