//! The conformance suite: a small language for exchanges of packets (`tests/conformance/README.md`), and players that
//! act them out against a host under test: the engine in virtual time, or a Linux kernel over a TUN device.

pub mod engine;
pub mod mutation;
pub mod packet;
pub mod page;
pub mod play;
pub mod script;
pub mod suite;
