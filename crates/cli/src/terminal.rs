//! The terminal that answers are read on.

use anabranch_workbench::visible::visible;
use std::io::{self, Write};

/// Columns of the terminal, if there is one, within the limits in which a table with sentences can be read.
pub fn text_width() -> u16 {
    const WIDEST: u16 = 118;
    terminal_size::terminal_size().map_or(WIDEST, |(width, _)| width.0.clamp(60, WIDEST))
}

/// Says `text` on standard error at once. That may be closed.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(visible(text).as_bytes());
}
