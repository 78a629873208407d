#![doc = include_str!("../README.md")]

pub mod advise;
pub mod frontier;
pub mod parity;
mod prediction;
pub mod purposes;

pub use prediction::Prediction;
