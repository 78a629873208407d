//! One function per command: arguments in, the text for standard output out.

mod advise;
mod analyse;
mod archive;
mod check;
mod compare;
mod demo;
mod explain;
mod figure;
mod infer;
#[cfg(target_os = "linux")]
mod key;
#[cfg(target_os = "linux")]
mod links;
mod list;
mod man;
#[cfg(target_os = "linux")]
mod measure;
mod measurement;
mod merge;
mod model;
mod new;
mod parity;
mod playground;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod record;
mod report;
mod reproduce;
mod rerun;
mod run;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(target_os = "linux")]
mod status;
mod topology;
mod tour;
mod trace;

pub use advise::advise;
pub use analyse::analyse;
pub use archive::archive;
pub use check::check;
pub use compare::compare;
pub use demo::demo;
pub use explain::explain;
pub use figure::figure;
pub use infer::infer;
#[cfg(target_os = "linux")]
pub use key::key;
pub use list::list;
pub use man::{LICENCES, completions, man};
#[cfg(target_os = "linux")]
pub use measure::measure;
pub use merge::merge;
pub use model::model;
pub use new::new;
pub use parity::parity;
pub use playground::playground;
#[cfg(target_os = "linux")]
pub use proxy::proxy;
pub use report::report;
pub use reproduce::reproduce;
pub use rerun::rerun;
pub use run::run;
#[cfg(target_os = "linux")]
pub use serve::serve;
#[cfg(target_os = "linux")]
pub use shell::shell;
#[cfg(target_os = "linux")]
pub use status::status;
pub use topology::topology;
pub use tour::tour;
pub use trace::trace;
