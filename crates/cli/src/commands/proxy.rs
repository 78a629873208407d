//! `anabranch proxy`

use super::links::{CODE, common, failed, reach, scheduler};
use crate::args::{ProxyArguments, default_socket};
use crate::failure::Failure;
use crate::outcome::Outcome;
use anabranch_lab::interrupt;
use anabranch_link::proxy::{Credentials, Forward, Listeners, Proxy, ProxySettings, Rules};
use anabranch_link::{LinkError, Window, raise_file_limit};
use anabranch_scenario::PlugIn;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// Serves programs until a signal comes, which is a success.
pub fn proxy(arguments: &ProxyArguments) -> Result<Outcome, Failure> {
    let scheduler = scheduler("--scheduler", &arguments.scheduler)?;
    let common = common(&arguments.congestion, &arguments.orphan_timeout)?;
    let rules = read_rules(arguments, &scheduler).map_err(failed)?;
    let reach = reach(&arguments.far)?;
    let listeners = listeners(arguments)?;
    raise_file_limit();
    let socket = arguments.socket.clone().or_else(default_socket);
    let window = socket.map(|file| Window::open(&file)).transpose().map_err(failed)?;
    interrupt::listen().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let hangup = interrupt::on_hangup().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let locals: Vec<String> = listeners.locals().map(|local| local.to_string()).collect();
    let address = reach.address;
    let settings = ProxySettings { reach, listeners, rules, common };
    let (mut proxy, missing) = Proxy::open(settings, interrupt::flag()).map_err(failed)?;
    missing.iter().for_each(|missing| say(&format!("waiting for {missing}")));
    say(&format!("listening at {}, to {address}", locals.join(", ")));
    let mut changed = || {
        if !hangup.swap(false, Ordering::Relaxed) {
            return None;
        }
        match read_rules(arguments, &scheduler) {
            Ok(rules) => {
                say("the rules were read again");
                Some(rules)
            }
            Err(error) => {
                say(&format!("{error}; the rules remain as they are"));
                None
            }
        }
    };
    proxy.run(interrupt::flag(), window.as_ref(), &mut changed).map_err(failed)?;
    Ok(Outcome { notes: "ended\n".to_owned(), ..Outcome::default() })
}

/// Now, and wherever the output goes. Standard error may be closed.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn read_rules(arguments: &ProxyArguments, scheduler: &PlugIn) -> Result<Rules, LinkError> {
    let Some(file) = &arguments.rules else { return Ok(Rules::none(scheduler.clone())) };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|source| LinkError::System { what: format!("reading {name}"), source })?;
    Rules::parse(&name, &text, scheduler.clone(), &arguments.far.via)
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
