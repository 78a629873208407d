#![doc = include_str!("../README.md")]

#[cfg(target_arch = "wasm32")]
#[allow(
    unsafe_code,
    reason = "the attribute that keeps a function's name is unsafe, and so is the page's side of the border"
)]
mod abi;
mod acks;
mod catalogue;
mod decisions;
mod live;
mod notes;
mod own;
mod request;
mod study;

pub use catalogue::catalogue;
pub use live::{Live, Slice};
pub use own::{Ask, HEAD, OWN, WIDTH, fields};
pub use request::{Described, Mistake, Request};
pub use study::{Study, study};
