//! `anabranch playground`

use crate::args::PlaygroundArguments;
use crate::failure::Failure;
use crate::opener::Opener;
use crate::outcome::Outcome;
use crate::output::{create, write};
use crate::site::{File, files};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use tiny_http::{Header, Method, Request, Response, Server};

/// Serves the playground, or writes it as a static site.
pub fn playground(arguments: &PlaygroundArguments) -> Result<Outcome, Failure> {
    let files = files()?;
    if let Some(folder) = &arguments.out {
        return keep(&files, folder);
    }
    let opener = arguments.open.then(Opener::find).transpose()?;
    let server = Server::http((Ipv4Addr::LOCALHOST, arguments.port)).map_err(|error| {
        let help = Some("another program may listen there: choose another --port, or 0 for any".to_owned());
        Failure::missing(CODE, format!("cannot listen on port {}: {error}", arguments.port), help)
    })?;
    let url = format!("http://{}/", server.server_addr());
    // A reader that has gone needs no address.
    let _ = writeln!(io::stdout(), "The playground is at {url} until Ctrl-C.").and_then(|()| io::stdout().flush());
    if let Some(failure) = opener.and_then(|opener| opener.open_page(&url).err()) {
        let _ = io::stderr().write_all(failure.render(false).as_bytes());
    }
    loop {
        let request = server.recv().map_err(|error| Failure::failed(CODE, format!("the server failed: {error}")))?;
        // A browser that closes its connection loses its own answer alone.
        let _ = answer(&files, request);
    }
}

fn keep(files: &[File], folder: &Path) -> Result<Outcome, Failure> {
    if folder.exists() {
        let help = Some("name a directory that does not exist yet".to_owned());
        return Err(Failure::unusable(CODE, format!("{} exists", folder.display()), help));
    }
    create(folder)?;
    for file in files {
        write(&folder.join(file.name), &*file.bytes)?;
    }
    Ok(Outcome::new(format!("{}\n", folder.join("index.html").display()), Vec::new()))
}

fn answer(files: &[File], request: Request) -> io::Result<()> {
    let path = request.url().split(['?', '#']).next().unwrap_or_default().trim_start_matches('/');
    let name = if path.is_empty() { "index.html" } else { path };
    let found = files.iter().find(|file| file.name == name);
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    match found.filter(|_| is_read) {
        Some(file) => request.respond(response(file)),
        None if is_read => request.respond(Response::empty(404)),
        None => request.respond(Response::empty(405)),
    }
}

fn response(file: &File) -> Response<&[u8]> {
    let headers = [
        ("Content-Type", file.media_type),
        ("Cache-Control", "no-cache"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ];
    let mut response = Response::new(200.into(), Vec::new(), &*file.bytes, Some(file.bytes.len()), None);
    for (name, value) in headers {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    response
}

const CODE: &str = "anabranch::playground";
