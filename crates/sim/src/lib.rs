#![doc = include_str!("../README.md")]

mod agenda;
mod ahead;
mod applications;
mod flow;
mod host;
mod outside;
mod parcel;
mod stillness;
mod stuck;
mod too_big;
mod world;

pub use flow::{End, FlowSetup, PORT, address, client_port, paths_between};
pub use host::{Host, Opening, Party, PathChoice, Switch};
pub use outside::{Content, Outbound, Raw};
pub use stuck::{Halt, Stuck};
pub use world::{Checks, SourceSetup, World, WorldChange, WorldSetup};
