//! Groups of hosts and their links on a terminal.

use super::fields::Differences;
use super::plain::{heading, plain_table, print_table};
use crate::of_run::groups::{groups, links, main_of, names};
use crate::table::{Column, Table};
use anabranch_run::{ResultRow, Results};

/// The links that are shown of a row.
const LINKS: usize = 8;

/// The groups side by side, with the differences of schedulers per group, and the busiest links; empty without groups. `rows` are of one
/// cell.
pub(super) fn groups_tables(results: &Results, rows: &[ResultRow<'_>]) -> String {
    let Some(mut groups) = groups(rows) else { return String::new() };
    add_differences(&mut groups, results, rows);
    let links =
        links(rows, LINKS).map(|links| format!("\n{}{}\n", printed(&links), links.note).trim_end().to_owned() + "\n");
    format!("\n{}{}", printed(&groups), links.unwrap_or_default())
}

/// A column with the difference of each row from the first, per group, where there are several of one congestion control.
fn add_differences(table: &mut Table, results: &Results, rows: &[ResultRow<'_>]) {
    let [reference, others @ ..] = rows else { return };
    if others.is_empty() || others.iter().any(|row| row.congestion != reference.congestion) {
        return;
    }
    let mut texts = Vec::new();
    for group in names(rows) {
        let differences = Differences::new(results, &main_of(group), reference);
        texts.extend(rows.iter().map(|row| differences.text(row, reference).unwrap_or_default()));
    }
    // Of many rows the table has the first.
    if texts.len() == table.rows.len() {
        table.columns.push(Column::numeric(format!("against {} %", reference.scheduler)));
        table.rows.iter_mut().zip(texts).for_each(|(row, text)| row.push(text));
    }
}

fn printed(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| heading(&column.head.replace(',', ""))).collect();
    let mut plain = plain_table(heads);
    table.rows.iter().for_each(|row| {
        plain.add_row(row.clone());
    });
    print_table(&plain)
}
