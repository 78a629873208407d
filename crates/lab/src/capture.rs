//! Captures of the packets that kernels send and receive: IP packets of any protocol.

use crate::LabError;
use anabranch_recorders::PcapNg;
use anabranch_units::{Instant, PathId, Side};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// One file per host: in a common file every packet would appear twice.
pub struct Capture {
    files: [(PathBuf, PcapNg<BufWriter<File>>); 2],
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.files.iter().map(|(file, _)| file)).finish()
    }
}

impl Capture {
    /// Begins the files of the client and of the server, each with its name for messages. `paths` are the names of the paths.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn new([client, server]: [(PathBuf, File); 2], paths: &[String]) -> Result<Self, LabError> {
        let begin = |host, (name, file): (PathBuf, File)| {
            let capture = PcapNg::new(BufWriter::new(file), paths.to_vec());
            let capture = capture.map_err(LabError::system(format!("writing {}", name.display())))?;
            Ok((name, capture.only(host)))
        };
        Ok(Self { files: [begin(Side::Client, client)?, begin(Side::Server, server)?] })
    }

    /// Records a packet that left (`sent`) or reached a host over `path`.
    pub fn packet(&mut self, now: Instant, host: Side, sent: bool, path: usize, bytes: &[u8]) {
        for (_, capture) in &mut self.files {
            capture.raw(now, host, sent, PathId(path as u8), bytes);
        }
    }

    /// Flushes both files.
    ///
    /// # Errors
    /// The first error of either file.
    pub fn finish(self) -> Result<(), LabError> {
        for (file, capture) in self.files {
            capture.finish().map_err(LabError::system(format!("writing {}", file.display())))?;
        }
        Ok(())
    }
}
