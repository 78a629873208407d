//! A proxy over several interfaces at once: programs connect to it by SOCKS5 or at forwarded ports, and their connections run over
//! Multipath TCP: inside a carrier to a server, which dials the targets, or straight to the targets ([`native`]). docs/proxy.md has the
//! messages between both ends. Linux only.

#![cfg(target_os = "linux")]

mod anteroom;
mod asking;
mod board;
mod budget;
mod credentials;
mod dial;
mod direct;
mod entry;
mod exit;
mod front;
mod gate;
mod guard;
mod hall;
mod interfaces;
mod joint;
mod listeners;
mod message;
pub mod native;
mod own;
mod pool;
mod request;
mod resolver;
mod routes;
mod rules;
mod run;
mod service;
mod setup;
mod sockets;
mod socks;
mod stage;
mod talking;
mod target;
mod unallowed;

pub use credentials::Credentials;
pub use exit::ExitSettings;
pub use guard::{Guard, parse_block};
pub use listeners::Listeners;
pub use request::read_request;
pub use resolver::{Lookup, Resolver, system};
pub use rules::Rules;
pub use run::{Proxy, ProxySettings};
pub use service::ProxyService;
pub use setup::Common;
pub use socks::{Dialogue, End, Outcome, Reply};
pub use target::{Forward, Host, Service, Target};
