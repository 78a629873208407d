//! The frame of pictures that are drawn beforehand.

/// Opens a picture on white, `width` × `height` pixels; `name` is read aloud.
pub(crate) fn open(width: usize, height: usize, name: Option<&str>) -> String {
    let name = name.map(|name| format!(" role=\"img\" aria-label=\"{}\"", escape(name))).unwrap_or_default();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"10\" fill=\"#23272d\"{name}>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    )
}

/// Opens a picture of the page, in the page's own colours.
pub(crate) fn open_bare(width: usize, height: usize, name: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-size=\"12\" fill=\"var(--ink)\" role=\"img\" aria-label=\"{}\">\n",
        escape(name)
    )
}

/// The end of a picture.
pub(crate) const CLOSE: &str = "</svg>\n";

/// For the text of an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
