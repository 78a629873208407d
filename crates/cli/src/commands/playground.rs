//! `anabranch playground`

use crate::args::PlaygroundArguments;
use crate::opener::Opener;
use crate::outcome::Outcome;
use crate::site::{File, files};
use crate::site_server::serve;
use crate::terminal::say;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::folder::Folder;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Serves the playground, or writes it as a static site.
pub fn playground(arguments: &PlaygroundArguments) -> Result<Outcome, Failure> {
    let files = files()?;
    if let Some(folder) = &arguments.out {
        return keep(&files, folder);
    }
    let opener = arguments.open.then(Opener::find).transpose()?;
    let cannot = |error: io::Error| {
        let help = Some("another program may listen there: choose another --port, or 0 for any".to_owned());
        Failure::missing(CODE, format!("cannot listen on port {}: {error}", arguments.port), help)
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let url = format!("http://{address}/");
    // A reader that has gone needs no address.
    let _ = writeln!(io::stdout(), "The playground is at {url} until Ctrl-C.").and_then(|()| io::stdout().flush());
    if let Some(failure) = opener.and_then(|opener| opener.open_page(&url).err()) {
        say(&failure.render(false));
    }
    serve(&listener, files).map_err(|error| Failure::failed(CODE, format!("the server failed: {error}")))?;
    Ok(Outcome::default())
}

fn keep(files: &[File], folder: &Path) -> Result<Outcome, Failure> {
    if folder.exists() {
        let help = Some("name a directory that does not exist yet".to_owned());
        return Err(Failure::unusable(CODE, format!("{} exists", folder.display()), help));
    }
    let made = Folder::make(folder)?;
    files.iter().try_for_each(|file| made.write(file.name, &*file.bytes))?;
    Ok(Outcome::new(format!("{}\n", folder.join("index.html").display()), Vec::new()))
}

const CODE: &str = "anabranch::playground";
