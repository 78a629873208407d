//! Congestion controls, one file each, and their registry.

pub mod flows;
pub mod reno;
pub mod single;
pub mod window;

mod registry;

pub use registry::{BuildError, all, build, find, single_path_form};
pub use single::{SinglePath, Uncoupled};
pub use window::WindowState;
