//! Programs' connections over several paths: SOCKS5 and forwarded ports here, the targets dialled there. docs/proxy.md has the
//! messages between both ends.

mod asking;
mod board;
mod budget;
mod credentials;
mod dial;
mod direct;
mod entry;
mod exit;
mod front;
mod guard;
mod hall;
mod interfaces;
mod joint;
mod listeners;
mod message;
mod pool;
mod resolver;
mod routes;
mod rules;
mod run;
mod setup;
mod sockets;
mod socks;
mod stage;
mod talking;
mod target;

pub use credentials::Credentials;
pub(crate) use direct::Direct;
pub(crate) use exit::Exit;
pub use exit::{ExitSettings, read_request};
pub(crate) use front::{Front, Lobby};
pub(crate) use guard::own_addresses;
pub use guard::{Guard, parse_block};
pub(crate) use hall::LINES;
pub use listeners::Listeners;
pub(crate) use message::PORT;
pub use message::Refusal;
pub(crate) use resolver::Limits;
pub use resolver::{Lookup, Resolver, system};
pub(crate) use routes::Routes;
pub use rules::{PathRule, Rules, Treatment};
pub use run::{Proxy, ProxySettings};
pub use setup::Common;
pub use socks::{Dialogue, End, Outcome, Reply};
pub use target::{Forward, Host, Target};
