#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod event_log;
mod idle;
mod message;
mod path_sample;
mod real_links;
mod record;
mod record_trace;
mod request;
mod run_stats;
mod server;
mod service;
mod session;
mod setup;
mod station;
mod survey;

pub use idle::IdleRtt;
pub use real_links::RealLinks;
pub use record::{PathRecord, RecordedCapacity, is_recordable};
pub use server::read_messages;
pub use service::MeasurementService;
pub use session::{MeasurementSession, path_names};
pub use setup::{MSS, overhead};
pub use survey::PathSurvey;
