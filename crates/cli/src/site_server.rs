//! Serves a list of files to browsers of this machine: HTTP/1.1, one request per connection, nothing but GET and HEAD.

use crate::site::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a request's head that are read; browsers send fewer.
const HEAD: u64 = 16 * 1024;

/// A connection without a whole request in this time ends, as does one whose answer is not read: browsers open some that they
/// never use.
const PATIENCE: Duration = Duration::from_secs(20);

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
            let _ = thread::Builder::new().spawn(move || answer(&stream, port, &files, PATIENCE).ok());
        }
    }
}

/// A connection that ends at a time, however little comes or goes at once.
struct Until<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Until<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Reads a request and answers it, each within `patience`.
fn answer(stream: &TcpStream, port: u16, files: &[File], patience: Duration) -> io::Result<()> {
    let Head { first, hosts, malformed } = head(Until { stream, end: Instant::now() + patience })?;
    let mut stream = Until { stream, end: Instant::now() + patience };
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let name = match target.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    // Another site's name may lead here (DNS rebinding): RFC 9110 §15.5.20.
    let is_ours = |host| [format!("127.0.0.1:{port}"), format!("localhost:{port}")].contains(host);
    let (status, file) = match (method, files.iter().find(|file| file.name == name)) {
        // RFC 9112 §3.2: one host, neither none nor several; §5.1: no space before the colon; §5.2: no folded line.
        _ if malformed || hosts.len() != 1 => ("400 Bad Request", None),
        _ if !hosts.iter().all(is_ours) => ("421 Misdirected Request", None),
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
    /// In lower case, each with its port.
    hosts: Vec<String>,
    /// Some line is no field.
    malformed: bool,
}

/// The head of a request, read to its end: an answer to half a request would be reset.
fn head(stream: impl Read) -> io::Result<Head> {
    let mut lines = BufReader::new(stream.take(HEAD)).lines();
    let first = lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
    let (mut hosts, mut malformed) = (Vec::new(), false);
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            return Ok(Head { first, hosts, malformed });
        }
        match line.split_once(':') {
            Some((name, _)) if name.is_empty() || name.contains(char::is_whitespace) => malformed = true,
            Some(("host", host)) => {
                let host = host.trim();
                hosts.push(if host.contains(':') { host.to_owned() } else { format!("{host}:80") });
            }
            Some(_) => {}
            None => malformed = true,
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection whose other end [`answer`] serves.
    fn served(patience: Duration) -> (TcpStream, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let files = [File { name: "index.html", media_type: "text/html", bytes: b"page".as_slice().into() }];
        thread::spawn(move || answer(&server, port, &files, patience));
        (client, port)
    }

    fn status(head: &str) -> String {
        let (mut client, port) = served(PATIENCE);
        let head = head.replace("PORT", &port.to_string());
        write!(client, "GET / HTTP/1.1\r\n{head}\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    }

    #[test]
    fn a_request_has_one_host() {
        for (head, expected) in [
            ("Host: 127.0.0.1:PORT\r\n", "200"),
            ("host:localhost:PORT\r\nAccept: */*\r\n", "200"),
            ("Host: rebound.example:PORT\r\n", "421"),
            ("Host: 127.0.0.1:PORT\r\nHost: rebound.example\r\n", "400"),
            ("Host: rebound.example\r\nHost: 127.0.0.1:PORT\r\n", "400"),
            ("Host: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\n", "400"),
            ("", "400"),
            ("Host : 127.0.0.1:PORT\r\n", "400"),
            ("Host: 127.0.0.1:PORT\r\n folded: x\r\n", "400"),
            ("Host: 127.0.0.1:PORT\r\nnothing\r\n", "400"),
        ] {
            assert_eq!(status(head), expected, "{head:?}");
        }
    }

    #[test]
    fn a_request_that_comes_drop_by_drop_ends_as_a_whole() {
        let (mut client, _) = served(Duration::from_millis(300));
        write!(client, "GET / HTTP/1.1\r\n").unwrap();
        // Fifty times as long as the server waits.
        let refused = (0..300).any(|_| {
            thread::sleep(Duration::from_millis(50));
            client.write_all(b"x").is_err()
        });
        assert!(refused, "the connection is open as long as something comes");
    }
}
