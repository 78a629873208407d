//! Serves a list of files to browsers of this machine: HTTP/1.1, one request per connection, nothing but GET and HEAD.

use crate::site::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes of a request's head that are read; browsers send fewer.
const HEAD: u64 = 16 * 1024;

/// A connection on which nothing comes, or from which nothing is read, ends: browsers open some that they never use.
const IDLE: Duration = Duration::from_secs(20);

/// Connections at a time; of more, the newest are closed.
const MOST: usize = 64;

/// Without a free descriptor no connection can be accepted until one ends.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers every connection, without end. A connection that fails is lost alone.
///
/// # Errors
/// The listener has no address.
pub fn serve(listener: &TcpListener, files: Vec<File>) -> io::Result<()> {
    let port = listener.local_addr()?.port();
    let files = Arc::new(files);
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        // Each thread has the files.
        if Arc::strong_count(&files) <= MOST {
            let files = files.clone();
            let _ = thread::Builder::new().spawn(move || answer(stream, port, &files).ok());
        }
    }
}

fn answer(mut stream: TcpStream, port: u16, files: &[File]) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let Head { first, host } = head(&mut stream)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let name = match target.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    // Another site's name may lead here (DNS rebinding): RFC 9110 §15.5.20.
    let is_ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")].contains(&host);
    let (status, file) = match (method, files.iter().find(|file| file.name == name)) {
        _ if !is_ours => ("421 Misdirected Request", None),
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

struct Head {
    first: String,
    /// In lower case, with its port; empty without one.
    host: String,
}

/// The head of a request, read to its end: an answer to half a request would be reset.
fn head(stream: &mut TcpStream) -> io::Result<Head> {
    let mut lines = BufReader::new(stream.take(HEAD)).lines();
    let first = lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
    let mut host = String::new();
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            return Ok(Head { first, host });
        }
        if let Some(name) = line.strip_prefix("host:") {
            let name = name.trim();
            host = if name.contains(':') { name.to_owned() } else { format!("{name}:80") };
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}
