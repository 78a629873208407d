//! The form of every table on a terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// A table without frames whose header is underlined; columns but the first are aligned to the right.
pub fn plain_table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_content_arrangement(ContentArrangement::Disabled);
    let columns = header.len();
    table.set_header(header);
    for index in 0..columns {
        let alignment = if index == 0 { CellAlignment::Left } else { CellAlignment::Right };
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(alignment);
            // The header's line takes one more column between two columns.
            column.set_padding((u16::from(index > 0), 0));
        }
    }
    table
}

/// A heading of two lines as narrow as the words allow, the last word below where that is all the same.
pub(super) fn heading(words: &str) -> String {
    let width = |text: &str| text.chars().count();
    let breaks = words.match_indices(' ').map(|(at, _)| (&words[..at], &words[at + 1..]));
    let narrowest = breaks.rev().min_by_key(|(above, below)| width(above).max(width(below)));
    narrowest.map_or(words.to_owned(), |(above, below)| format!("{above}\n{below}"))
}

/// The table's lines without trailing blanks, ending in a newline.
pub fn print_table(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A short time in the unit that fits: `34 µs`, `1.2 ms`, `3.4 s`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_as_narrow_as_their_words_allow() {
        let words =
            ["goodput Mbit/s", "× best path", "OFO mean KiB", "flow completion s", "flow completion p95 s", "benefit"];
        let headings =
            ["goodput|Mbit/s", "× best|path", "OFO mean|KiB", "flow|completion s", "flow completion|p95 s", "benefit"];
        assert_eq!(words.map(heading), headings.map(|text| text.replace('|', "\n")));
    }

    #[test]
    fn short_times_have_the_unit_that_fits() {
        assert_eq!([3.4e-5, 1.24e-3, 3.42].map(seconds), ["34 µs", "1.2 ms", "3.4 s"]);
    }
}
