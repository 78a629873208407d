//! `anabranch proxy`

use super::links::{
    CODE, connection_settings, failed, interfaces, native_status_socket, say, scheduler, session_settings,
};
use crate::args::{ProxyArguments, default_socket};
use crate::outcome::Outcome;
use anabranch_lab::interrupt;
use anabranch_link::{LinkError, StatusSocket, raise_file_limit};
use anabranch_proxy::native::{NativeProxy, NativeProxySettings};
use anabranch_proxy::{ConnectionSettings, Credentials, Forward, Listeners, Proxy, ProxySettings, Rules, system};
use anabranch_scenario::PlugIn;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::input::{TEXT, read_within};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The parts that both kinds of proxies begin with.
struct Parts {
    connections: ConnectionSettings,
    rules: Rules,
    listeners: Listeners,
}

/// Serves programs until a signal comes, which is a success.
pub fn proxy(arguments: &ProxyArguments) -> Result<Outcome, Failure> {
    let scheduler = scheduler("--scheduler", &arguments.scheduler)?;
    interrupt::listen().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let hangup = interrupt::on_hangup().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let mut changed = || changed(arguments, &scheduler, &hangup);
    match (&arguments.server, &arguments.server_key) {
        (Some(server), Some(key)) => carried(arguments, server, key, &scheduler, &mut changed)?,
        _ => native(arguments, &scheduler, &mut changed)?,
    }
    Ok(Outcome { notes: "ended\n".to_owned(), ..Outcome::default() })
}

fn parts(arguments: &ProxyArguments, scheduler: &PlugIn) -> Result<Parts, Failure> {
    let connections = connection_settings(&arguments.congestion, &arguments.orphan_timeout, !arguments.no_ecn)?;
    let rules = read_rules(arguments, scheduler).map_err(failed)?;
    let listeners = listeners(arguments)?;
    raise_file_limit();
    Ok(Parts { connections, rules, listeners })
}

fn status_socket(arguments: &ProxyArguments) -> Result<Option<StatusSocket>, Failure> {
    let socket = arguments.socket.clone().or_else(default_socket);
    socket.as_deref().map(StatusSocket::open).transpose().map_err(failed)
}

/// Through a server.
fn carried(
    arguments: &ProxyArguments,
    server: &str,
    key: &str,
    scheduler: &PlugIn,
    changed: &mut dyn FnMut() -> Option<Rules>,
) -> Result<(), Failure> {
    let session = session_settings(server, key, &arguments.near)?;
    let Parts { connections, rules, listeners } = parts(arguments, scheduler)?;
    let status_socket = status_socket(arguments)?;
    let (locals, address) = (locals(&listeners), session.address);
    let settings = ProxySettings { session, listeners, rules, connections };
    let (mut proxy, missing) = Proxy::open(settings, interrupt::flag()).map_err(failed)?;
    missing.iter().for_each(|missing| say(&format!("waiting for {missing}")));
    say(&format!("listening at {locals}, to {address}"));
    proxy.run(interrupt::flag(), status_socket.as_ref(), changed, &mut say).map_err(failed)
}

/// Straight to the targets.
fn native(
    arguments: &ProxyArguments,
    scheduler: &PlugIn,
    changed: &mut dyn FnMut() -> Option<Rules>,
) -> Result<(), Failure> {
    let via = &arguments.near.via;
    interfaces(via)?;
    let Parts { connections, rules, listeners } = parts(arguments, scheduler)?;
    let locals = locals(&listeners);
    let settings = NativeProxySettings { interfaces: via.clone(), listeners, rules, connections, lookup: system() };
    let mut proxy = NativeProxy::open(settings).map_err(failed)?;
    let status_socket = native_status_socket(arguments.socket.as_deref())?;
    proxy.missing().for_each(|path| say(&format!("waiting for {}: it has no address or no route", via[path.index()])));
    say(&format!("listening at {locals}, over {}", via.join(", ")));
    proxy.run(interrupt::flag(), status_socket.as_ref(), changed).map_err(failed)
}

fn locals(listeners: &Listeners) -> String {
    listeners.locals().map(|local| local.to_string()).collect::<Vec<_>>().join(", ")
}

/// The rules, if SIGHUP came.
fn changed(arguments: &ProxyArguments, scheduler: &PlugIn, hangup: &AtomicBool) -> Option<Rules> {
    if !hangup.swap(false, Ordering::Relaxed) {
        return None;
    }
    match read_rules(arguments, scheduler) {
        Ok(rules) => {
            say("the rules were read again");
            Some(rules)
        }
        Err(error) => {
            say(&format!("{error}; the rules remain as they are"));
            None
        }
    }
}

fn read_rules(arguments: &ProxyArguments, scheduler: &PlugIn) -> Result<Rules, LinkError> {
    let Some(file) = &arguments.rules else { return Ok(Rules::none(scheduler.clone())) };
    let name = file.display().to_string();
    let text =
        read_within(TEXT, 0, file).map_err(|source| LinkError::System { what: format!("reading {name}"), source })?;
    Rules::parse(&name, &text, scheduler.clone(), &arguments.near.via)
}

fn listeners(arguments: &ProxyArguments) -> Result<Listeners, Failure> {
    let forward = |text: &String| {
        let help = "write PORT:HOST:PORT or ADDR:PORT:HOST:PORT, such as 8080:example.net:80";
        Forward::parse(text).ok_or_else(|| {
            Failure::unusable(CODE, format!("--forward {text}: this is no port with a target"), Some(help.to_owned()))
        })
    };
    let forwards = arguments.forward.iter().map(forward).collect::<Result<Vec<_>, _>>()?;
    let usual = || vec![SocketAddr::from(([127, 0, 0, 1], 1080))];
    let socks = match arguments.socks.is_empty() && forwards.is_empty() {
        true => usual(),
        false => arguments.socks.clone(),
    };
    let credentials = arguments.credentials.as_deref().map(Credentials::read).transpose().map_err(failed)?;
    Listeners::open(&socks, &forwards, credentials).map_err(failed)
}
