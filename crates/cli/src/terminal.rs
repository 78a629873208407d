//! The terminal that answers are read on.

/// Columns of the terminal, if there is one, within the limits in which a table with sentences can be read.
pub fn text_width() -> u16 {
    const WIDEST: u16 = 118;
    terminal_size::terminal_size().map_or(WIDEST, |(width, _)| width.0.clamp(60, WIDEST))
}
