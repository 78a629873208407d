//! `anabranch status`

use super::links::CODE;
use crate::args::{StatusArguments, default_socket};
use crate::failure::Failure;
use anabranch_link::{ClientStatus, PathState, Status, read_status};
use anabranch_report::text::{plain_table, print_table};

/// The state of a running server.
pub fn status(arguments: &StatusArguments) -> Result<String, Failure> {
    let socket = arguments.socket.clone().or_else(default_socket).ok_or_else(|| {
        let help = "give --socket FILE, as to `anabranch serve`";
        Failure::unusable(CODE, "no socket is known: there is no $XDG_RUNTIME_DIR", Some(help.to_owned()))
    })?;
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
