//! The engine and the Linux kernel carry each other's data: every byte, in both directions, over paths of every kind,
//! with every plug-in, under tiny windows, in one connection or thousands.

#[path = "../common/mod.rs"]
mod common;

mod air;
mod captures;
mod crowd;
mod direction;
mod ecn;
mod failover;
mod first_path;
mod frames;
mod impaired;
mod ip_versions;
mod leftovers;
mod many;
mod middleboxes;
mod mtu;
mod offload;
mod options;
mod outages;
mod plain;
mod plug_ins;
mod presence;
mod runs;
mod sizes;
mod tight_window;
mod timelines;
mod transfer;
mod windows;
