//! Tables for terminals.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Columns of the terminal, if there is one, within the limits in which a table with sentences can be read.
pub fn text_width() -> u16 {
    const WIDEST: u16 = 118;
    terminal_size::terminal_size().map_or(WIDEST, |(width, _)| width.0.clamp(60, WIDEST))
}

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
    fn short_times_have_the_unit_that_fits() {
        assert_eq!([3.4e-5, 1.24e-3, 3.42].map(seconds), ["34 µs", "1.2 ms", "3.4 s"]);
    }
}
