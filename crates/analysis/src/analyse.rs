//! Captures in, an analysis out.

use crate::connection::Connections;
use crate::frames::{Capture, Fault, Frames};
use crate::result::{self, Analysis};
use crate::words;
use anabranch_units::{Instant, Side};

/// Analyses captures: several files are merged by time. `host`: beside which host they were captured, if the packets are not to
/// decide that.
///
/// # Errors
/// A capture cannot be opened, or is none. One that ends or is damaged later is analysed up to there, and its
/// [`cut`](crate::CaptureInfo::cut) says so.
pub fn analyse(captures: &[Capture], host: Option<Side>) -> Result<Analysis, Fault> {
    let mut frames = Frames::open(captures)?;
    let mut connections = Connections::new(host);
    let mut begin: Option<Instant> = None;
    for frame in frames.by_ref() {
        begin.get_or_insert(frame.now);
        connections.packet(frame);
    }
    connections.finish();
    let mut analysis = result::analysis(frames.info(), connections, host, begin.unwrap_or_default());
    for connection in &mut analysis.connections {
        connection.story = words::story(connection);
    }
    Ok(analysis)
}
