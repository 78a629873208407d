//! Congestion controls, one file each, and their registry.

pub mod coupled;
pub mod cubic;
pub mod flows;
mod hystart;
pub mod lia;
pub mod linked;
pub mod olia;
pub mod reno;
pub mod single;
pub mod window;

mod registry;

pub use registry::{BuildError, all, build, find, single_path_form};
pub use single::{SinglePath, Uncoupled};
pub use window::WindowState;
