#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod address_filter;
mod buffer_budget;
mod connection_pool;
mod connection_table;
mod credentials;
mod daemon;
mod denied_targets;
mod dial;
mod direct_ingress;
mod egress;
mod ingress;
mod interfaces;
mod listeners;
mod local_addresses;
mod message;
pub mod native;
mod negotiation;
mod pending_programs;
mod pending_request;
mod poller;
mod proxy;
mod published_ports;
mod relay;
mod request;
mod resolver;
mod routes;
mod rules;
mod service;
mod setup;
mod socks;
mod target;
mod tunnel_ingress;
mod tunnel_stage;

pub use address_filter::{AddressFilter, parse_block};
pub use credentials::Credentials;
pub use egress::EgressSettings;
pub use listeners::Listeners;
pub use proxy::{Proxy, ProxySettings};
pub use request::read_request;
pub use resolver::{Lookup, Resolver, system};
pub use rules::Rules;
pub use service::ProxyService;
pub use setup::ConnectionSettings;
pub use socks::{SocksHandshake, SocksOutput, SocksResult};
pub use target::{Forward, Host, PublishedPort, Target};
