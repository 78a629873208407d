//! Captures of the packets that kernels send and receive: IP packets of any protocol.

use crate::LabError;
use anabranch_trace::PcapNg;
use anabranch_units::{Instant, PathId, Side};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

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
    /// Makes `client.pcapng` and `server.pcapng` in `folder`, which is made too. `paths` are the names of the paths.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn create(folder: &Path, paths: &[String]) -> Result<Self, LabError> {
        fs::create_dir_all(folder).map_err(LabError::system(format!("making {}", folder.display())))?;
        let open = |host, name: &str| {
            let file = folder.join(name);
            let capture = File::create(&file).and_then(|sink| PcapNg::new(BufWriter::new(sink), paths.to_vec()));
            let capture = capture.map_err(LabError::system(format!("writing {}", file.display())))?;
            Ok((file, capture.only(host)))
        };
        Ok(Self { files: [open(Side::Client, "client.pcapng")?, open(Side::Server, "server.pcapng")?] })
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
