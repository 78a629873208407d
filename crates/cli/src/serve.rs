//! Serves a list of files to browsers of this machine: HTTP/1.1, one request per connection, nothing but GET and HEAD.

use crate::site::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes of a request's head that are read; browsers send fewer.
const HEAD: u64 = 16 * 1024;

/// A connection on which nothing comes ends: browsers open some that they never use.
const IDLE: Duration = Duration::from_secs(20);

/// Answers every connection, without end.
///
/// # Errors
/// The listener failed.
pub fn serve(listener: &TcpListener, files: Vec<File>) -> io::Result<()> {
    let files = Arc::new(files);
    loop {
        let (stream, _) = listener.accept()?;
        let files = files.clone();
        // A browser that goes away loses its own answer alone.
        thread::Builder::new().spawn(move || answer(stream, &files).ok())?;
    }
}

fn answer(mut stream: TcpStream, files: &[File]) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    let first = head(&mut stream)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let name = match target.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let (status, file) = match (method, files.iter().find(|file| file.name == name)) {
        ("GET" | "HEAD", Some(file)) => ("200 OK", Some(file)),
        ("GET" | "HEAD", None) => ("404 Not Found", None),
        _ => ("405 Method Not Allowed", None),
    };
    let (length, media_type) = file.map_or((0, "text/plain"), |file| (file.bytes.len(), file.media_type));
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Type: {media_type}\r\nCache-Control: no-cache\r\n\
         X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n"
    )?;
    if let Some(file) = file.filter(|_| method == "GET") {
        stream.write_all(&file.bytes)?;
    }
    stream.flush()
}

/// The first line of a request whose head was read to its end: an answer to half a request would be reset.
fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut lines = BufReader::new(stream.take(HEAD)).lines();
    let first = lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
    for line in lines {
        if line?.is_empty() {
            return Ok(first);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}
