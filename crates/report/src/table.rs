//! Tables, as the page shows them and as files for papers and spreadsheets.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A table. The first column names the row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Table {
    /// Letters, digits and `-`: names its files.
    pub id: String,
    /// Caption.
    pub title: String,
    /// Heads.
    pub columns: Vec<Column>,
    /// As long as the heads, each.
    pub rows: Vec<Vec<String>>,
    /// Below the table.
    pub note: String,
    /// Shown only when asked for: what is long and seldom read.
    pub folded: bool,
}

/// Characters from which on a column of words is set as paragraphs.
const PARAGRAPH: usize = 24;

/// Characters of a line, at footnote size.
const LINE: f64 = 100.0;

/// What a column of such `length` asks for: as a paragraph, no more than four times what the narrowest does.
fn weight(length: usize, paragraph: bool) -> usize {
    if paragraph { length.min(4 * PARAGRAPH) } else { length }
}

/// The head of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// With the unit: `goodput, Mbit/s`.
    pub head: String,
    /// Aligned to the right.
    pub numeric: bool,
}

impl Column {
    /// A column of words.
    pub fn text(head: impl Into<String>) -> Self {
        Self { head: head.into(), numeric: false }
    }

    /// A column of figures.
    pub fn numeric(head: impl Into<String>) -> Self {
        Self { head: head.into(), numeric: true }
    }
}

impl Table {
    /// As CSV, with the heads as first line.
    pub fn to_csv(&self) -> String {
        let mut table = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        // Into memory, and rows may be of any length: nothing can fail.
        let _ = table.write_record(self.columns.iter().map(|column| &column.head));
        for row in &self.rows {
            let _ = table.write_record(row);
        }
        String::from_utf8_lossy(&table.into_inner().unwrap_or_default()).into_owned()
    }

    /// As a LaTeX table; the document needs `\usepackage{booktabs}`.
    pub fn to_latex(&self) -> String {
        let alignment = self.alignment();
        let heads: Vec<String> = self.columns.iter().map(|column| escape(&column.head)).collect();
        let mut text = String::from("\\begin{table}\n  \\centering\n");
        let _ = writeln!(text, "  \\caption{{{}}}", escape(&self.title));
        let _ = writeln!(text, "  \\label{{tab:{}}}", self.id);
        if alignment.contains('p') {
            text += "  \\footnotesize\n";
        }
        let _ = writeln!(text, "  \\begin{{tabular}}{{{alignment}}}\n    \\toprule");
        let _ = writeln!(text, "    {} \\\\\n    \\midrule", heads.join(" & "));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            let _ = writeln!(text, "    {} \\\\", cells.join(" & "));
        }
        text + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n"
    }

    /// A letter a column; those with long text are paragraphs, which share what the others leave of the line.
    fn alignment(&self) -> String {
        let longest = |i: usize| {
            let cells =
                self.rows.iter().filter_map(|row| row.get(i)).chain(self.columns.get(i).map(|column| &column.head));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let lengths: Vec<usize> = (0..self.columns.len()).map(longest).collect();
        let is_long = |i: usize| !self.columns[i].numeric && lengths[i] > PARAGRAPH;
        let sum = |long: bool| -> usize {
            (0..lengths.len()).filter(|i| is_long(*i) == long).map(|i| weight(lengths[i], long)).sum()
        };
        // Two of a line's characters go between columns.
        let left = (1.0 - (sum(false) + 2 * lengths.len()) as f64 / LINE).max(0.4);
        let letter = |i: usize| match (is_long(i), self.columns[i].numeric) {
            (true, _) => format!("p{{{:.2}\\linewidth}}", left * weight(lengths[i], true) as f64 / sum(true) as f64),
            (false, true) => "r".into(),
            (false, false) => "l".into(),
        };
        (0..self.columns.len()).map(letter).collect()
    }
}

/// `text` as LaTeX prints it: its special characters taken literally, the signs that we write as mathematics.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '<' => out += "\\textless{}",
            '>' => out += "\\textgreater{}",
            '|' => out += "\\textbar{}",
            '±' => out += "$\\pm$",
            '×' => out += "$\\times$",
            '÷' => out += "$\\div$",
            '−' => out += "$-$",
            '≤' => out += "$\\le$",
            '≥' => out += "$\\ge$",
            '→' => out += "$\\to$",
            '∞' => out += "$\\infty$",
            'µ' | 'μ' => out += "$\\mu$",
            'λ' => out += "$\\lambda$",
            'γ' => out += "$\\gamma$",
            'β' => out += "$\\beta$",
            'δ' => out += "$\\delta$",
            '–' => out += "--",
            '\n' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            id: "goodput".into(),
            title: "100 % of R&D".into(),
            columns: vec![Column::text("row_name"), Column::numeric("Mbit/s")],
            rows: vec![vec!["a, \"b\"".into(), "5.92 ± 0.24".into()], vec!["{x}^~\\$#".into(), "−3".into()]],
            ..Table::default()
        }
    }

    #[test]
    fn long_text_is_set_as_paragraphs_that_fit_the_line() {
        let mut verdicts = table();
        verdicts.columns = ["item", "claim", "verdict", "reason"].map(Column::text).to_vec();
        let long = "A sentence of some words. ".repeat(12);
        verdicts.rows =
            vec![["fig4 1", "What was claimed, in some words", "differs", &long].map(str::to_owned).to_vec()];
        let text = verdicts.to_latex();
        let widths: Vec<f64> =
            text.split("p{").skip(1).map(|rest| rest.split_once("\\linewidth").unwrap().0.parse().unwrap()).collect();
        assert!(text.contains("\\begin{tabular}{lp{") && widths.len() == 2, "{text}");
        assert!(widths[0] > 0.1 && widths[1] > widths[0] && widths.iter().sum::<f64>() < 0.9, "{widths:?}");
        assert!(text.contains("\\footnotesize"));
    }

    #[test]
    fn latex_takes_special_characters_literally() {
        let text = table().to_latex();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "\\begin{table}",
                "\\centering",
                "\\caption{100 \\% of R\\&D}",
                "\\label{tab:goodput}",
                "\\begin{tabular}{lr}",
                "\\toprule",
                "row\\_name & Mbit/s \\\\",
                "\\midrule",
                "a, \"b\" & 5.92 $\\pm$ 0.24 \\\\",
                "\\{x\\}\\textasciicircum{}\\textasciitilde{}\\textbackslash{}\\$\\# & $-$3 \\\\",
                "\\bottomrule",
                "\\end{tabular}",
                "\\end{table}",
            ]
        );
    }

    #[test]
    fn csv_quotes_what_it_must() {
        assert_eq!(table().to_csv(), "row_name,Mbit/s\n\"a, \"\"b\"\"\",5.92 ± 0.24\n{x}^~\\$#,−3\n");
    }

    #[test]
    fn rows_of_other_lengths_are_written_as_they_are() {
        let mut table = table();
        table.rows.push(vec!["alone".into()]);
        assert!(table.to_csv().ends_with("\nalone\n"));
        assert!(table.to_latex().contains("    alone \\\\\n"));
    }
}
