//! A proxy or its server ends in the middle of a stream, by SIGTERM or SIGKILL: what it carried is reset, and never ends as if it were whole.

use super::{Server, listening};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than a client of the carrier takes to notice a server that was started again.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that loads without end in one direction, through a proxy.
struct Load {
    proxy: Child,
    program: TcpStream,
    /// How the target's stream ended.
    target: Receiver<std::io::Result<()>>,
}

/// Reads to the end.
fn drained(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut piece = vec![0; 1 << 16];
    while stream.read(&mut piece)? > 0 {}
    Ok(())
}

/// Writes until that fails.
fn filled(stream: &mut TcpStream) -> std::io::Result<()> {
    let piece = vec![7; 1 << 16];
    loop {
        stream.write_all(&piece)?;
    }
}

impl Load {
    /// A download, or an upload.
    fn begin(server: &Server, is_download: bool) -> Self {
        Self::with(server, is_download, &[])
    }

    fn with(server: &Server, is_download: bool, options: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (ended, target) = channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = ended.send(if is_download { filled(&mut stream) } else { drained(&mut stream) });
        });
        let folder = server.folder.path();
        let forward = format!("0:127.0.0.1:{port}");
        let reach = ["proxy", &server.address, "--via", "lo", "--server-key", &server.key];
        let usual = ["--socket", "proxy.sock", "--forward", &forward];
        let (proxy, local) = listening(folder, &[&reach[..], &usual, options].concat(), "proxied");
        let mut program = TcpStream::connect(local).unwrap();
        program.set_read_timeout(Some(PATIENCE)).unwrap();
        if is_download {
            program.read_exact(&mut vec![0; 4 << 20]).unwrap();
        } else {
            program.write_all(&vec![7; 4 << 20]).unwrap();
        }
        Self { proxy, program, target }
    }

    fn program_is_reset(&mut self) {
        let end = drained(&mut self.program);
        assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset), "the program's end");
    }

    fn target_is_reset(&self) {
        let end = self.target.recv_timeout(PATIENCE).expect("the target waits for ever");
        assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset), "the target's end");
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

fn terminate(process: &mut Child) {
    let id = process.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

fn kill(process: &mut Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

fn serving() -> Server {
    Server::with(&["--proxy", "--allow", "127.0.0.1/32"])
}

#[test]
fn a_proxy_that_is_killed_leaves_no_download_that_looks_whole() {
    let server = serving();
    let mut load = Load::begin(&server, true);
    kill(&mut load.proxy);
    load.program_is_reset();
}

#[test]
fn a_server_that_is_killed_leaves_no_upload_that_looks_whole() {
    let mut server = serving();
    let load = Load::begin(&server, false);
    kill(&mut server.process);
    load.target_is_reset();
}

#[test]
fn a_proxy_that_is_ended_resets_programs_and_targets() {
    for is_download in [true, false] {
        let server = serving();
        let mut load = Load::begin(&server, is_download);
        terminate(&mut load.proxy);
        load.program_is_reset();
        load.target_is_reset();
    }
}

#[test]
fn a_server_that_is_ended_resets_programs_and_targets() {
    for is_download in [true, false] {
        let mut server = serving();
        let mut load = Load::begin(&server, is_download);
        terminate(&mut server.process);
        load.program_is_reset();
        load.target_is_reset();
    }
}

/// The program only waits for data. The server says nothing at its end, and knows nothing of the connection afterwards.
#[test]
fn a_server_that_was_killed_and_started_again_resets_the_downloads_of_before() {
    let mut server = serving();
    let mut load = Load::begin(&server, true);
    kill(&mut server.process);
    let local = server.address.clone();
    let again = ["serve", "--listen", &local, "--socket", "status.sock", "--proxy", "--allow", "127.0.0.1/32"];
    server.process = listening(server.folder.path(), &again, "said").0;
    load.program_is_reset();
}

#[test]
fn a_server_that_was_killed_for_good_ends_the_downloads_of_before() {
    let mut server = serving();
    let mut load = Load::with(&server, true, &["--orphan-timeout", "1s"]);
    kill(&mut server.process);
    load.program_is_reset();
}
