//! `anabranch serve`

use super::links::{CODE, failed};
use crate::args::{ServeArguments, default_socket};
use crate::failure::Failure;
use crate::outcome::Outcome;
use anabranch_lab::interrupt;
use anabranch_link::{Host, Window, secrets};
use std::io::Write as _;

/// Serves until a signal comes, which is a success.
pub fn serve(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    let key = secrets::read_key(&arguments.key).map_err(failed)?.key;
    let clients = secrets::read_authorized(&arguments.authorized).map_err(failed)?;
    if clients.is_empty() {
        let message = format!("{} authorises nobody", arguments.authorized.display());
        let help = "add the line that `anabranch key show CLIENT.KEY --authorize NAME` prints";
        return Err(Failure::unusable(CODE, message, Some(help.to_owned())));
    }
    let (public, count) = (key.public(), clients.len());
    let socket = arguments.socket.clone().or_else(default_socket);
    let window = socket.map(|file| Window::open(&file)).transpose().map_err(failed)?;
    let mut host = Host::listen(arguments.listen, key, clients).map_err(failed)?;
    interrupt::listen().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let local = host.local().map_err(failed)?;
    let clients = if count == 1 { "1 client".to_owned() } else { format!("{count} clients") };
    // Now, and wherever the output goes. Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "listening at {local} for {clients}; the server's key is {public}");
    host.run(interrupt::flag(), window.as_ref()).map_err(failed)?;
    let counts = host.counters();
    let refused: Vec<String> = counts.filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    Ok(Outcome { notes: format!("ended; {}\n", refused.join(", ")), ..Outcome::default() })
}
