//! Connections: their subflows, and both vantage points.

mod connections;
mod curve;
mod fold;
mod half;
mod notes;
mod opening;
mod quantiles;
mod sending;
mod vantage;
mod waits;

pub(crate) use connections::{Connection, Connections};
pub(crate) use curve::Curve;
pub use fold::Tally;
pub(crate) use half::Half;
pub(crate) use notes::Note;
pub use notes::Signal;
pub use opening::Fate;
pub(crate) use opening::{Offer, Opening};
pub use quantiles::Times;
pub(crate) use vantage::{Flow, Vantage, half};
pub(crate) use waits::Waits;
