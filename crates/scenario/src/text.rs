//! A source in messages: lines are found by search, and a long line is shown in part.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// The longest token shown in full, in bytes.
pub(crate) const LONG_TOKEN: usize = 80;
/// The longest line shown in full.
const LONG_LINE: usize = 500;
/// The bytes shown on either side of a token in a longer line.
const AROUND: usize = 60;

/// A named text.
#[derive(Debug)]
pub(crate) struct Text {
    name: String,
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Text {
    pub fn new(name: &str, text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { name: name.to_owned(), text, lines }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line of a byte, counted from 0.
    pub fn line_of(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at) - 1
    }

    fn begin(&self, line: usize) -> usize {
        self.lines.get(line).copied().unwrap_or(self.text.len())
    }

    /// The text shown around a token: its lines and their neighbours, or, in a long line, the surrounding bytes.
    fn window(&self, start: usize, end: usize, before: usize, after: usize) -> (usize, usize) {
        let (first, last) = (self.line_of(start), self.line_of(end));
        // One line more, because the library looks beyond an empty token at a line's end.
        let shown = first.saturating_sub(before + 1)..=last.saturating_add(after + 1).min(self.lines.len() - 1);
        let is_long = |line: usize| self.begin(line + 1) - self.begin(line) > LONG_LINE;
        if !shown.clone().any(is_long) {
            return (self.begin(*shown.start()), self.begin(shown.end() + 1));
        }
        let from = self.text.floor_char_boundary(start.saturating_sub(AROUND)).max(self.begin(first));
        let to = self.text.ceil_char_boundary(end.saturating_add(AROUND)).min(self.begin(last + 1));
        (from, to)
    }
}

impl SourceCode for Text {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let start = span.offset().min(self.text.len());
        let end = span.offset().saturating_add(span.len()).min(self.text.len());
        let (from, to) = self.window(start, end, before, after);
        let first = self.line_of(from);
        // A span beyond the text is refused there.
        let inside = SourceSpan::from((span.offset() - from, span.len()));
        let shown = &self.text[from..to];
        let contents = shown.read_span(&inside, before, after)?;
        let column =
            if contents.line() == 0 { contents.column() + from - self.begin(first) } else { contents.column() };
        let at = SourceSpan::from((contents.span().offset() + from, contents.span().len()));
        let data = &shown.as_bytes()[at.offset() - from..][..at.len()];
        let line = contents.line() + first;
        let lines = contents.line_count();
        Ok(Box::new(MietteSpanContents::new_named(self.name.clone(), data, at, line, column, lines)))
    }
}

/// The beginning of a text, clipped to a length.
pub(crate) fn clipped(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::NamedSource;

    /// Offset, data, line and column of the shown text.
    fn shown(source: &dyn SourceCode, span: (usize, usize), context: usize) -> Option<(usize, String, usize, usize)> {
        let contents = source.read_span(&span.into(), context, context).ok()?;
        let data = String::from_utf8(contents.data().to_vec()).unwrap();
        Some((contents.span().offset(), data, contents.line(), contents.column()))
    }

    #[test]
    fn short_lines_are_shown_as_the_library_shows_them() {
        for text in ["", "\n", "a = 1", "a = 1\n", "\n\nfirst = 1\nsecond = 22\n\nthird = 333\nµ = \"…\"\n\n"] {
            let (ours, theirs) = (Text::new("f", text.into()), NamedSource::new("f", text.to_owned()));
            for start in 0..=text.len() {
                for len in 0..=text.len() - start + 1 {
                    if !text.is_char_boundary(start) || start + len <= text.len() && !text.is_char_boundary(start + len)
                    {
                        continue;
                    }
                    for context in [0, 1, 2] {
                        let (ours, theirs) =
                            (shown(&ours, (start, len), context), shown(&theirs, (start, len), context));
                        assert_eq!(ours, theirs, "{text:?} {start} {len} {context}");
                    }
                }
            }
        }
    }

    #[test]
    fn of_a_long_line_a_part_is_shown_in_its_place() {
        let line = format!("x = [{}]\n", "\"µ\", ".repeat(10_000));
        let text = Text::new("f", format!("first\n{line}last\n"));
        let at = 6 + 30_001;
        let at = text.text().floor_char_boundary(at);
        let (offset, data, number, column) = shown(&text, (at, 3), 1).unwrap();
        assert!(data.len() < 3 + 2 * AROUND + 8 && text.text()[offset..].starts_with(&data), "{data}");
        assert!(offset <= at && at + 3 <= offset + data.len());
        assert_eq!((number, column), (1, offset - 6));
        // The place in the message's first line.
        assert_eq!(shown(&text, (at, 3), 0).map(|(.., number, column)| (number, column)), Some((1, at - 6)));
    }

    #[test]
    fn long_texts_are_clipped_between_characters() {
        assert_eq!(clipped("short".into(), 5), "short");
        assert_eq!(clipped("aµµµ".into(), 4), "aµ…");
    }
}
