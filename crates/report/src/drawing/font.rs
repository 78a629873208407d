//! The font of drawings: its widths, its glyphs, its file.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId};

/// DejaVu Sans, Latin, Greek and signs (`assets/font.LICENSE`).
pub const FILE: &[u8] = include_bytes!("../../assets/font.ttf");

/// Height of every text, in points.
pub const SIZE: f64 = 7.0;

static FACE: LazyLock<Face<'static>> = LazyLock::new(|| Face::parse(FILE, 0).expect("the file is ours"));

/// The font.
pub fn face() -> &'static Face<'static> {
    &FACE
}

/// The glyph of `c`; the empty box of the font if it has none.
pub fn glyph(c: char) -> GlyphId {
    FACE.glyph_index(c).unwrap_or(GlyphId(0))
}

/// Width of a glyph in thousandths of the text's height.
pub fn advance(glyph: GlyphId) -> f64 {
    f64::from(FACE.glyph_hor_advance(glyph).unwrap_or(0)) * 1000.0 / f64::from(FACE.units_per_em())
}

/// Width of a text, in points.
pub fn width(text: &str) -> f64 {
    text.chars().map(|c| advance(glyph(c))).sum::<f64>() * SIZE / 1000.0
}

/// `text` within `room` points: what is too long ends in `…`.
pub fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut short: String = text.to_owned();
    while !short.is_empty() && width(&short) + width("…") > room {
        short.pop();
    }
    short + "…"
}
