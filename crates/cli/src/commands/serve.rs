//! `anabranch serve`

use super::links::{
    CODE, absent, connection_settings, failed, interfaces, native_status_socket, read_key, say, scheduler,
};
use crate::args::{ServeArguments, default_socket};
use crate::outcome::Outcome;
use anabranch_lab::interrupt;
use anabranch_link::files::Client;
use anabranch_link::{LinkError, Server, StatusSocket, raise_file_limit, secrets};
use anabranch_measure::MeasurementService;
use anabranch_proxy::native::{NativeServer, NativeServerSettings};
use anabranch_proxy::{AddressFilter, EgressSettings, ProxyService, PublishedPort, Resolver, parse_block, system};
use anabranch_workbench::failure::Failure;
use std::net::SocketAddr;
use std::path::Path;

/// The services, where none is named.
const SERVICES: &str = "name at least one: --measure lets clients measure schedulers; --proxy is the far end of `anabranch proxy`; \
                        --native speaks Multipath TCP with any client, and needs --via and --forward";

/// Serves until a signal comes, which is a success.
pub fn serve(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    if arguments.native {
        return native(arguments);
    }
    if !arguments.measure && !arguments.proxy {
        return Err(Failure::unusable(CODE, "nothing to serve", Some(SERVICES.to_owned())));
    }
    let key = read_key(&arguments.key)?.key;
    let clients = authorized(&arguments.authorized)?;
    let (public, count) = (key.public(), clients.len());
    let socket = arguments.socket.clone().or_else(default_socket);
    let status_socket = socket.map(|file| StatusSocket::open(&file)).transpose().map_err(failed)?;
    let proxy = proxy(arguments)?;
    raise_file_limit();
    let mut services: Vec<Box<dyn anabranch_link::Service>> = Vec::new();
    if arguments.measure {
        services.push(Box::new(MeasurementService::default()));
    }
    if let Some(settings) = proxy {
        services.push(Box::new(ProxyService::new(settings).map_err(failed)?));
    }
    let mut server = Server::listen(arguments.listen, key, clients, services).map_err(failed)?;
    interrupt::listen().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let local = server.local().map_err(failed)?;
    let clients = if count == 1 { "1 client".to_owned() } else { format!("{count} clients") };
    say(&format!("listening at {local} for {clients}; the server's key is {public}"));
    server.run(interrupt::flag(), status_socket.as_ref()).map_err(failed)?;
    let counts = server.counters();
    let refused: Vec<String> = counts.filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    Ok(Outcome { notes: format!("ended; {}\n", refused.join(", ")), ..Outcome::default() })
}

/// The clients in a list of authorised keys; at least one.
fn authorized(file: &Path) -> Result<Vec<Client>, Failure> {
    let line = "`anabranch key show CLIENT.KEY --authorize NAME`";
    let clients = secrets::read_authorized(file).map_err(|error| match absent(&error) {
        true => {
            let help = format!("make it with mode 0600, and add to it the line that {line} prints for each client");
            Failure::missing(CODE, format!("there is no list of authorised keys {}", file.display()), Some(help))
        }
        false => failed(error),
    })?;
    if clients.is_empty() {
        let message = format!("{} authorises nobody", file.display());
        return Err(Failure::unusable(CODE, message, Some(format!("add the line that {line} prints"))));
    }
    Ok(clients)
}

/// For clients of any kind, without a carrier.
fn native(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    let ServeArguments { via, congestion, orphan_timeout, .. } = arguments;
    let scheduler = scheduler("--scheduler", &arguments.scheduler)?;
    interfaces(via)?;
    let published = published(&arguments.forward)?;
    let connections = connection_settings(congestion, orphan_timeout, !arguments.no_ecn)?;
    let ports: Vec<String> = published.iter().map(|published| published.port.to_string()).collect();
    interrupt::listen().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    raise_file_limit();
    let settings =
        NativeServerSettings { interfaces: via.clone(), published, scheduler, connections, lookup: system() };
    let mut server = NativeServer::open(settings).map_err(failed)?;
    let status_socket = native_status_socket(arguments.socket.as_deref())?;
    server.missing().for_each(|path| say(&format!("waiting for {}: it has no address or no route", via[path.index()])));
    let locals: Vec<String> = server.locals().iter().map(SocketAddr::to_string).collect();
    let locals = if locals.is_empty() { format!("port {}", ports.join(", ")) } else { locals.join(", ") };
    say(&format!("listening at {locals}, over {}", via.join(", ")));
    server.run(interrupt::flag(), status_socket.as_ref()).map_err(failed)?;
    Ok(Outcome { notes: "ended\n".to_owned(), ..Outcome::default() })
}

/// Each port has one target.
fn published(forwards: &[String]) -> Result<Vec<PublishedPort>, Failure> {
    let unusable = |message: String, help: &str| Failure::unusable(CODE, message, Some(help.to_owned()));
    let service = |text: &String| {
        let help = "write PORT:HOST:PORT, such as 8080:127.0.0.1:80; the port is that of every interface of --via";
        PublishedPort::parse(text)
            .ok_or_else(|| unusable(format!("--forward {text}: this is no port with a target"), help))
    };
    let services = forwards.iter().map(service).collect::<Result<Vec<_>, _>>()?;
    let twice = services.iter().enumerate().find(|(n, one)| services[..*n].iter().any(|other| other.port == one.port));
    match twice {
        Some((_, PublishedPort { port, .. })) => {
            Err(unusable(format!("--forward: port {port} stands there twice"), "each port has one target"))
        }
        None => Ok(services),
    }
}

/// Bytes of buffers for the proxied connections of all clients together: a part of what packaging/anabranch-serve.service allows.
const MEMORY: u64 = 2 << 30;

fn proxy(arguments: &ServeArguments) -> Result<Option<EgressSettings>, Failure> {
    if !arguments.proxy {
        return Ok(None);
    }
    let block = |text: &String| {
        let help = "write a block as 192.168.7.0/24 or fd00:1::/64, with zeros behind its prefix and none before a number, or an address";
        let message = || format!("--allow {text}: this is no block of addresses");
        parse_block(text).ok_or_else(|| Failure::unusable(CODE, message(), Some(help.to_owned())))
    };
    let allowed = arguments.allow.iter().map(block).collect::<Result<Vec<_>, _>>()?;
    let connections = connection_settings(&arguments.congestion, &arguments.orphan_timeout, !arguments.no_ecn)?;
    let started = Resolver::start(system());
    let resolver =
        started.map_err(|source| failed(LinkError::System { what: "starting a thread".to_owned(), source }))?;
    Ok(Some(EgressSettings { filter: AddressFilter::new(allowed), resolver, connections, memory: MEMORY }))
}
