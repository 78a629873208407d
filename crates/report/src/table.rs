//! Tables, as the page shows them and as files for papers and spreadsheets.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A Markdown table whose first `texts` columns are aligned to the left, the others to the right.
pub(crate) fn markdown_table(header: &[String], texts: usize, lines: impl Iterator<Item = Vec<String>>) -> String {
    let rule: String = (0..header.len()).map(|n| if n < texts { "---|" } else { "---:|" }).collect();
    let mut text = format!("| {} |\n|{rule}\n", header.join(" | "));
    lines.for_each(|line| text += &format!("| {} |\n", line.join(" | ")));
    text
}

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
    /// Shown only on request: for tables that are long and rarely read.
    pub folded: bool,
}

/// Characters of a column that is never set as paragraphs.
const SHORT: usize = 14;

/// Characters of a line, at script size.
const LINE: usize = 100;

/// The head of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Head of the column with the unit: `goodput, Mbit/s`.
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
    /// As CSV for programs, with the heads as first line: a column of `5.92 ± 0.24, n 18` becomes columns of plain numbers, the
    /// second and third with `±` and `n` after the head.
    pub fn to_csv(&self) -> String {
        let parts: Vec<Parts> = (0..self.columns.len()).map(|i| self.parts(i)).collect();
        let mut table = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        // Into memory, and rows may be of any length: nothing can fail.
        let heads = self.columns.iter().zip(&parts).flat_map(|(column, parts)| parts.heads(column));
        let _ = table.write_record(heads);
        for row in &self.rows {
            let cells = row.iter().enumerate().flat_map(|(i, cell)| match parts.get(i) {
                Some(parts) if self.columns[i].numeric => parts.cells(cell),
                _ => vec![cell.clone()],
            });
            let _ = table.write_record(cells);
        }
        String::from_utf8_lossy(&table.into_inner().unwrap_or_default()).into_owned()
    }

    fn parts(&self, column: usize) -> Parts {
        let has = |sign: &str| self.rows.iter().filter_map(|row| row.get(column)).any(|cell| cell.contains(sign));
        let numeric = self.columns[column].numeric;
        Parts { half: numeric && has(HALF), n: numeric && has(COUNT) }
    }

    /// As a LaTeX table; the document needs `\usepackage{booktabs}`.
    pub fn to_latex(&self) -> String {
        let alignment = self.alignment();
        let heads: Vec<String> = self.columns.iter().map(|column| escape(&column.head)).collect();
        let mut text = String::from("\\begin{table}\n  \\centering\n");
        let _ = writeln!(text, "  \\caption{{{}}}", escape(&self.title));
        let _ = writeln!(text, "  \\label{{tab:{}}}", self.id);
        if alignment.contains('p') {
            text += "  \\scriptsize\n  \\setlength{\\tabcolsep}{3pt}\n";
        }
        let _ = writeln!(text, "  \\begin{{tabular}}{{{alignment}}}\n    \\toprule");
        let _ = writeln!(text, "    {} \\\\\n    \\midrule", heads.join(" & "));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            let _ = writeln!(text, "    {} \\\\", cells.join(" & "));
        }
        text + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n"
    }

    /// A letter a column. If the table is wider than a line, columns of long text are paragraphs, which share what the others
    /// leave: room for a long word each, and of the rest the more the longer its text.
    fn alignment(&self) -> String {
        let texts = |i: usize| {
            let cells = self.rows.iter().filter_map(move |row| row.get(i));
            cells.chain(self.columns.get(i).map(|column| &column.head)).map(String::as_str)
        };
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let lengths: Vec<usize> = (0..self.columns.len()).map(|i| longest(&mut texts(i))).collect();
        // Two characters go between columns.
        let room = LINE.saturating_sub(2 * lengths.len());
        let is_wide = lengths.iter().sum::<usize>() > room;
        let is_long = |i: &usize| is_wide && !self.columns[*i].numeric && lengths[*i] > SHORT;
        let (long, short): (Vec<usize>, Vec<usize>) = (0..lengths.len()).partition(is_long);
        let left = room.saturating_sub(short.iter().map(|i| lengths[*i]).sum()).max(LINE / 2) as f64;
        let word = |i: usize| longest(&mut texts(i).flat_map(str::split_whitespace)).min(SHORT) as f64;
        let root = |i: usize| libm::sqrt(lengths[i] as f64);
        let words: f64 = long.iter().map(|i| word(*i)).sum();
        let roots: f64 = long.iter().map(|i| root(*i)).sum();
        let width = |i: usize| word(i) * (left / words).min(1.0) + root(i) * (left - words).max(0.0) / roots;
        let letter = |i: usize| match self.columns[i].numeric {
            _ if long.contains(&i) => format!("p{{{:.3}\\linewidth}}", width(i) / LINE as f64),
            true => "r".into(),
            false => "l".into(),
        };
        (0..lengths.len()).map(letter).collect()
    }
}

/// Before the half-width of an interval, and before the number of runs, in a cell of figures.
const HALF: &str = " ± ";
const COUNT: &str = ", n ";

/// The parts of a column of figures besides its means.
struct Parts {
    half: bool,
    n: bool,
}

impl Parts {
    fn heads(&self, column: &Column) -> Vec<String> {
        let more = [(self.half, "±"), (self.n, "n")].into_iter().filter(|(has, _)| *has);
        let more = more.map(|(_, sign)| format!("{} {sign}", column.head));
        [column.head.clone()].into_iter().chain(more).collect()
    }

    fn cells(&self, cell: &str) -> Vec<String> {
        let (rest, n) = cell.split_once(COUNT).unwrap_or((cell, ""));
        let (mean, half) = rest.split_once(HALF).unwrap_or((rest, ""));
        let more = [(self.half, half), (self.n, n)].into_iter().filter(|(has, _)| *has).map(|(_, text)| text);
        // The sign of typesetting is none of programs.
        [mean].into_iter().chain(more).map(|text| text.replace('−', "-")).collect()
    }
}

/// Records of one length as CSV.
pub fn csv_lines(records: &[Vec<String>]) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    for record in records {
        // Records of one length into memory: nothing can fail.
        let _ = table.write_record(record);
    }
    String::from_utf8_lossy(&table.into_inner().unwrap_or_default()).into_owned()
}

/// `text` as LaTeX prints it: its special characters taken literally, the signs that we write as mathematics.
pub(crate) fn escape(text: &str) -> String {
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
        let row = ["fig4 1", "What was claimed, in some words", "not specified", &long];
        verdicts.rows = vec![row.map(str::to_owned).to_vec()];
        let text = verdicts.to_latex();
        let widths: Vec<f64> =
            text.split("p{").skip(1).map(|rest| rest.split_once("\\linewidth").unwrap().0.parse().unwrap()).collect();
        assert!(text.contains("\\begin{tabular}{lp{") && text.contains("\\linewidth}lp{"), "{text}");
        // The room beside `fig4 1` and `not specified`, and between four columns.
        assert!((widths.iter().sum::<f64>() - 0.73).abs() < 0.01, "{widths:?}");
        assert!(widths[0] > 0.15 && widths[1] > 2.0 * widths[0], "{widths:?}");
        assert!(text.contains("\\scriptsize"));
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
        assert_eq!(table().to_csv(), "row_name,Mbit/s,Mbit/s ±\n\"a, \"\"b\"\"\",5.92,0.24\n{x}^~\\$#,-3,\n");
    }

    #[test]
    fn rows_of_other_lengths_are_written_as_they_are() {
        let mut table = table();
        table.rows.push(vec!["alone".into()]);
        assert!(table.to_csv().ends_with("\nalone\n"));
        assert!(table.to_latex().contains("    alone \\\\\n"));
    }
}
