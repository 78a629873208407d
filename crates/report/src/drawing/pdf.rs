//! A drawing as PDF 1.5 of one page, with its font embedded.

use super::font::{self, SIZE};
use super::{Anchor, Drawing, FAINT, INK, Mark, PALE, Pen, Point, WHITE};
use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::collections::BTreeMap;

/// Objects of the file, in order.
#[derive(Clone, Copy)]
enum Part {
    Catalog = 1,
    Pages,
    Page,
    Content,
    Font,
    CidFont,
    Descriptor,
    File,
    Characters,
    Pale,
    Faint,
}

impl Part {
    const fn id(self) -> Ref {
        Ref::new(self as i32)
    }
}

const FONT: Name<'_> = Name(b"F");
const FONT_NAME: Name<'_> = Name(b"DejaVuSans");
const ORDERING: SystemInfo<'_> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
const LEVEL: u8 = 9;

pub fn pdf(drawing: &Drawing) -> Vec<u8> {
    let (width, height) = (drawing.width as f32, drawing.height as f32);
    let mut pdf = Pdf::new();
    // A version that pdfTeX includes without a warning.
    pdf.set_version(1, 5);
    pdf.catalog(Part::Catalog.id()).pages(Part::Pages.id());
    pdf.pages(Part::Pages.id()).kids([Part::Page.id()]).count(1);
    let mut page = pdf.page(Part::Page.id());
    page.media_box(Rect::new(0.0, 0.0, width, height)).parent(Part::Pages.id()).contents(Part::Content.id());
    let mut resources = page.resources();
    resources.fonts().pair(FONT, Part::Font.id());
    resources.ext_g_states().pair(state(PALE), Part::Pale.id()).pair(state(FAINT), Part::Faint.id());
    resources.finish();
    page.finish();
    for (part, opacity) in [(Part::Pale, PALE), (Part::Faint, FAINT)] {
        pdf.ext_graphics(part.id()).non_stroking_alpha(opacity as f32);
    }
    let content = compress_to_vec_zlib(&content(drawing), LEVEL);
    pdf.stream(Part::Content.id(), &content).filter(Filter::FlateDecode);
    embed(&mut pdf, drawing);
    pdf.finish()
}

/// The name of the state that makes areas so opaque.
fn state(opacity: f64) -> Name<'static> {
    if opacity == PALE { Name(b"Pale") } else { Name(b"Faint") }
}

/// The font with the widths of its glyphs and the characters that they show, so that text can be searched and copied.
fn embed(pdf: &mut Pdf, drawing: &Drawing) {
    let texts =
        drawing.marks.iter().filter_map(|mark| if let Mark::Text { text, .. } = mark { Some(text) } else { None });
    let used: BTreeMap<u16, char> = texts.flat_map(|text| text.chars()).map(|c| (font::glyph(c).0, c)).collect();
    pdf.type0_font(Part::Font.id())
        .base_font(FONT_NAME)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(Part::CidFont.id())
        .to_unicode(Part::Characters.id());
    let mut cid = pdf.cid_font(Part::CidFont.id());
    cid.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(ORDERING).font_descriptor(Part::Descriptor.id());
    cid.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for glyph in used.keys() {
        widths.consecutive(*glyph, [font::advance(ttf_parser::GlyphId(*glyph)) as f32]);
    }
    widths.finish();
    cid.finish();
    let face = font::face();
    let scaled = |value: i16| f32::from(value) * 1000.0 / f32::from(face.units_per_em());
    let bounds = face.global_bounding_box();
    pdf.font_descriptor(Part::Descriptor.id())
        .name(FONT_NAME)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(scaled(bounds.x_min), scaled(bounds.y_min), scaled(bounds.x_max), scaled(bounds.y_max)))
        .italic_angle(0.0)
        .ascent(scaled(face.ascender()))
        .descent(scaled(face.descender()))
        .cap_height(scaled(face.capital_height().unwrap_or(face.ascender())))
        .stem_v(80.0)
        .font_file2(Part::File.id());
    let file = compress_to_vec_zlib(font::FILE, LEVEL);
    pdf.stream(Part::File.id(), &file).filter(Filter::FlateDecode);
    let mut characters = UnicodeCmap::new(Name(b"Custom"), ORDERING);
    used.iter().for_each(|(glyph, c)| characters.pair(*glyph, *c));
    pdf.cmap(Part::Characters.id(), &characters.finish());
}

/// The page's operators. PDF counts upwards.
fn content(drawing: &Drawing) -> Vec<u8> {
    let mut content = Content::new();
    fill(&mut content, WHITE);
    content.rect(0.0, 0.0, drawing.width as f32, drawing.height as f32).fill_nonzero();
    drawing.marks.iter().for_each(|mark| one(&mut content, mark, drawing.height));
    content.finish().to_vec()
}

fn one(content: &mut Content, mark: &Mark, height: f64) {
    content.save_state();
    match mark {
        Mark::Line { points, pen } => {
            path(content, points, height);
            stroke(content, pen);
            content.stroke();
        }
        Mark::Area { points, fill: colour, opacity, pen } => {
            if *opacity < 1.0 {
                content.set_parameters(state(*opacity));
            }
            fill(content, colour);
            path(content, points, height);
            content.close_path();
            match pen {
                Some(pen) => {
                    stroke(content, pen);
                    content.fill_nonzero_and_stroke();
                }
                None => drop(content.fill_nonzero()),
            }
        }
        Mark::Text { at: (x, y), text, anchor, turned } => {
            let share = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
            let back = font::width(text) * share;
            let (x, y) = (*x as f32, (height - y) as f32);
            let matrix = match turned {
                true => [0.0, 1.0, -1.0, 0.0, x, y - back as f32],
                false => [1.0, 0.0, 0.0, 1.0, x - back as f32, y],
            };
            fill(content, INK);
            let glyphs: Vec<u8> = text.chars().flat_map(|c| font::glyph(c).0.to_be_bytes()).collect();
            content.begin_text().set_font(FONT, SIZE as f32).set_text_matrix(matrix).show(Str(&glyphs)).end_text();
        }
    }
    content.restore_state();
}

fn path(content: &mut Content, points: &[Point], height: f64) {
    for (i, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, (height - y) as f32);
        if i == 0 {
            content.move_to(x, y)
        } else {
            content.line_to(x, y)
        };
    }
}

fn stroke(content: &mut Content, Pen { colour, width, dash }: &Pen) {
    let [red, green, blue] = channels(colour);
    content.set_stroke_rgb(red, green, blue).set_line_width(*width as f32);
    let dash = dash.split(' ').filter_map(|length| length.parse::<f32>().ok());
    content.set_dash_pattern(dash, 0.0);
}

fn fill(content: &mut Content, colour: &str) {
    let [red, green, blue] = channels(colour);
    content.set_fill_rgb(red, green, blue);
}

/// `#0072b2` as shares of red, green and blue.
fn channels(colour: &str) -> [f32; 3] {
    [1, 3, 5].map(|at| {
        colour
            .get(at..at + 2)
            .and_then(|two| u8::from_str_radix(two, 16).ok())
            .map_or(0.0, |value| f32::from(value) / 255.0)
    })
}
