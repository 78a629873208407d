//! A named pipe whose reader is there before its writer.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Makes a pipe, and reads all that its first writer writes.
pub fn read_pipe(pipe: &Path) -> JoinHandle<Vec<u8>> {
    nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let nonblock = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let reader = OpenOptions::new().read(true).custom_flags(nonblock).open(pipe).unwrap();
    thread::spawn(move || read_first_writer(reader))
}

fn read_first_writer(mut reader: File) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match reader.read(&mut piece) {
            // Without a writer the pipe is at its end: before the first one, too.
            Ok(0) if !all.is_empty() => return all,
            Ok(length) if length > 0 => all.extend_from_slice(&piece[..length]),
            Ok(_) => thread::sleep(Duration::from_millis(5)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
}
