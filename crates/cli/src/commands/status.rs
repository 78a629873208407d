//! `anabranch status`

use super::links::{CODE, likely_sockets};
use crate::args::StatusArguments;
use anabranch_link::{ClientStatus, PathState, Status, read_status};
use anabranch_report::text::{plain_table, print_table};
use anabranch_workbench::failure::Failure;
use std::path::PathBuf;

/// The state of a running server.
pub fn status(arguments: &StatusArguments) -> Result<String, Failure> {
    let socket = arguments.socket.clone().map_or_else(found, Ok)?;
    let status = read_status(&socket).map_err(|error| {
        let help = "is `anabranch serve` running, with the same --socket, and as the same user?";
        Failure::missing(CODE, error.to_string(), Some(error.help().unwrap_or_else(|| help.to_owned())))
    })?;
    if arguments.json {
        // Strings and finite numbers only: this cannot fail.
        return Ok(serde_json::to_string_pretty(&status).unwrap_or_default() + "\n");
    }
    Ok(text(&status))
}

/// The first socket that is there.
fn found() -> Result<PathBuf, Failure> {
    let likely = likely_sockets();
    likely.iter().find(|file| file.exists()).cloned().ok_or_else(|| {
        let places: Vec<String> = likely.iter().map(|file| file.display().to_string()).collect();
        let message = format!("no `serve` or `proxy` has a socket at {}", places.join(" or "));
        let help = "is one running? One that was started without $XDG_RUNTIME_DIR has a socket only with --socket FILE; give \
                    the same here";
        Failure::missing(CODE, message, Some(help.to_owned()))
    })
}

fn text(status: &Status) -> String {
    let Status { anabranch, listening, up_s, clients, .. } = status;
    let head = format!("anabranch {anabranch} at {listening}, up {up_s:.0} s\n");
    if clients.is_empty() {
        return head + "No client has a session.\n";
    }
    let header =
        ["client", "scheduler", "path", "address", "SRTT\nms", "Mbit/s", "MB", "share\n%", "loss\n%", "cwnd\npackets"];
    let mut table = plain_table(header.map(str::to_owned).to_vec());
    for ClientStatus { name, scheduler, paths, .. } in clients {
        for PathState { path, address, srtt_s, rate_bps, sent_bytes, share, loss_ratio, cwnd_packets, .. } in paths {
            table.add_row([
                name.clone(),
                scheduler.clone().unwrap_or_default(),
                path.to_string(),
                address.clone(),
                srtt_s.map(|srtt| format!("{:.1}", srtt * 1e3)).unwrap_or_default(),
                format!("{:.2}", *rate_bps as f64 / 1e6),
                format!("{:.2}", *sent_bytes as f64 / 1e6),
                format!("{:.0}", share * 100.0),
                format!("{:.2}", loss_ratio * 100.0),
                cwnd_packets.to_string(),
            ]);
        }
    }
    head + &print_table(&table)
}
