#![doc = include_str!("../README.md")]

pub mod engine;
pub mod mutation;
pub mod packet;
pub mod page;
pub mod play;
pub mod script;
pub mod suite;
