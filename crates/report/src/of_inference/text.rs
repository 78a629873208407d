//! An inference for the terminal.

use super::{in_short, tables};
use crate::table::Table;
use crate::text::{plain_table, print_table};
use anabranch_reproduce::infer::Inference;
use comfy_table::{CellAlignment, ContentArrangement};
use textwrap::fill;

/// All inferences; no line is longer than `width`, as far as words allow it.
pub fn text(inferences: &[Inference], width: u16) -> String {
    inferences.iter().map(|inference| one(inference, width)).collect::<Vec<_>>().join("\n")
}

fn one(inference: &Inference, width: u16) -> String {
    let mut text = fill(&in_short(inference), usize::from(width)) + "\n\n";
    let mut unknowns = tables::unknowns(inference);
    // The reasons stand in the file.
    unknowns.columns.pop();
    unknowns.rows.iter_mut().for_each(|row| _ = row.pop());
    text += &print(&unknowns, width);
    if !inference.anchors.is_empty() {
        text += &format!("\n{}", print(&tables::anchors(inference), width));
    }
    for table in tables::readings(inference).iter().chain(tables::calibration(inference).iter()) {
        text += &format!("\n{}\n{}", table.title, print(table, width));
    }
    if !inference.claims.is_empty() {
        text += &format!("\n{}", print(&tables::claims(inference), width));
    }
    text
}

fn print(table: &Table, width: u16) -> String {
    let mut plain = plain_table(table.columns.iter().map(|column| column.head.clone()).collect());
    plain.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for (n, column) in table.columns.iter().enumerate() {
        if let Some(own) = plain.column_mut(n) {
            own.set_cell_alignment(if column.numeric { CellAlignment::Right } else { CellAlignment::Left });
        }
    }
    table.rows.iter().for_each(|row| _ = plain.add_row(row));
    print_table(&plain)
}
