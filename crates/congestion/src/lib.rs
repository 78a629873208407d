#![doc = include_str!("../README.md")]

pub mod balia;
pub mod bbr;
pub mod coupled;
pub mod cubic;
pub mod delay;
pub mod desync;
pub mod epsilon;
pub mod ewtcp;
pub mod flows;
pub mod fully_coupled;
mod hystart;
pub mod lia;
pub mod linked;
pub mod mpveno;
pub mod mveno;
pub mod olia;
pub mod reno;
pub mod semicoupled;
pub mod single;
pub mod vegas;
pub mod veno;
pub mod window;
mod windowed_max;
pub mod wvegas;

mod registry;

pub use registry::{BuildError, all, build, find, single_path_form};
pub use single::{SinglePath, Uncoupled};
pub use window::WindowState;
