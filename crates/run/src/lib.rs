//! A scenario and its seeds in, results out: plans the runs, hands them to a driver, and draws statistics.
//!
//! This crate starts no thread and opens no file: the driver, the pool and the observer come from outside.

mod ask;
mod batch;
mod bound;
mod cross;
mod crowd;
mod curves;
mod diagnosis;
mod driver;
mod estimate;
mod job;
mod known;
mod known_rates;
pub mod layout;
mod live;
mod plan;
mod preflight;
mod record;
mod recorded;
mod results;
mod row_kind;
mod runner;
mod running;
mod runs;
mod setup;
mod summary;
mod swept;
mod twins;
mod values;
mod view;
mod virtual_time;
mod witness;

pub use ask::{Ask, AskError};
pub use bound::{Bound, bounds};
pub use curves::{Curve, Curves, Drawn};
pub use diagnosis::{Diagnosis, DiagnosisKind};
pub use driver::{Driver, Labelled, Observer, Pool, Refusal, Serial};
pub use estimate::Estimate;
pub use job::{CONNECTION, Choice, Identities, Job, RunError, RunOutcome};
pub use known::with_known_capacity;
pub use known_rates::{knows_rates, with_known_rates};
pub use live::{Emulation, Live, TcpInfo};
pub use plan::{AUTO_LIMIT, Options, Plan, Repeat, Variant, is_random};
pub use preflight::{Preflight, WayCheck, WayFigures};
pub use record::{CellRecords, CellValues, RunRecord};
pub use results::{Comparison, Incomplete, Results, SCHEMA, Summary};
pub use row_kind::RowKind;
pub use runner::{Failure, Runner, Shard};
pub use running::Running;
pub use runs::{RunRow, Runs, Store};
pub use swept::SweptKey;
pub use values::Values;
pub use view::ResultRow;
pub use virtual_time::VirtualTime;
pub use witness::witness;
