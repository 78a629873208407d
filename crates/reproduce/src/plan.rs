//! An item's scenario → what there is to run.

use crate::claim::Claim;
use crate::item_row::{ItemRow, row_and_parameter};
use crate::paper::Item;
use crate::reading::Reading;
use anabranch_run::{Options, Plan, Repeat, RowKind, Variant};
use anabranch_scenario::{Cell, Diagnostic, Document, Override, Scenario};
use std::sync::Arc;

/// The user's options beyond the item.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Few repetitions, and the item's settings for a quick look.
    pub quick: bool,
    /// Set in every scenario, over everything else.
    pub overrides: Vec<Override>,
    /// Add seeds until the main metric is known well enough.
    pub auto: bool,
}

/// Repetitions of a quick look; at most those of the scenario.
const QUICK: u32 = 3;
/// Repetitions of live items, unless asked otherwise.
const LIVE: u32 = 5;

/// One part of an item: its runs as written, or those of one reading.
#[derive(Debug)]
pub struct Part<'a> {
    /// `None` = as written.
    pub reading: Option<&'a Reading>,
    /// Every row.
    pub whole: Plan,
    /// The rows of the anchors alone, where these decide whether the reading is admissible.
    pub baselines: Option<Plan>,
}

/// Reads the item's scenario with `read(overrides)`, once per variant and reading. The part as written comes first; a
/// quick look has no other.
///
/// # Errors
/// Those of `read`.
pub fn parts<'a, E>(
    item: &'a Item,
    asked: &Asked,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Vec<Part<'a>>, E> {
    let mut parts = vec![part(item, None, asked, read)?];
    if !asked.quick {
        for reading in &item.readings {
            parts.push(part(item, Some(reading), asked, read)?);
        }
    }
    Ok(parts)
}

/// One run of each row whose packets are shown, in the first cell; `None` if the item shows none.
///
/// # Errors
/// Those of `read`.
pub fn example<E>(
    item: &Item,
    asked: &Asked,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Option<Plan>, E> {
    let rows = item.rows.iter().filter(|row| item.packets.contains(&row.name));
    let schedulers: Vec<_> = rows.map(|row| row.plug_in.clone()).collect();
    if schedulers.is_empty() || item.live {
        return Ok(None);
    }
    let mut overrides = item.variants.first().map_or(Vec::new(), |(_, set)| set.clone());
    overrides.extend(asked.overrides.clone());
    let mut cells = read(overrides)?.cells;
    cells.truncate(1);
    let once = |(cell, mut scenario): (_, Scenario)| {
        scenario.repeat = 1;
        Variant { cell, scenario: Arc::new(scenario) }
    };
    let variants: Vec<Variant> = cells.into_iter().map(once).collect();
    Ok(Some(Plan::new(&variants, &Options { schedulers, baselines: false, causes: false, ..Options::default() })))
}

/// One testbed of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    /// Name of its cell.
    pub name: String,
    /// The keys that it sets in the item's scenario.
    pub set: Vec<Override>,
    /// The item's rows, some perhaps with other parameters.
    pub rows: Vec<ItemRow>,
}

impl Testbed {
    /// A testbed with these settings: keys of the scenario, and `row.NAME.PARAMETER` for a scheduler's.
    ///
    /// # Errors
    /// A row's scheduler has no such parameter, or not with that value.
    pub fn of(item: &Item, name: &str, set: Vec<Override>) -> Result<Self, Vec<Diagnostic>> {
        let rows = item.rows.iter().map(|row| row.with(&set)).collect::<Result<_, _>>()?;
        let is_key = |change: &Override| row_and_parameter(&change.key).is_none();
        Ok(Self { name: name.to_owned(), set: set.into_iter().filter(is_key).collect(), rows })
    }
}

/// The rows of the anchors in the cells of the anchors, in several testbeds: a cell `testbed = NAME` each. No other row of the
/// item is in it, so that none can take part in the choice of a testbed. Where all anchors are of single paths, the scenario's own scheduler
/// runs beside them, and no value of it is used. A plan for each set of rows; none without anchors.
///
/// # Errors
/// Those of `read`.
pub fn baselines_in<E>(
    item: &Item,
    testbeds: &[Testbed],
    repeat: u32,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Vec<Plan>, E> {
    if item.anchors.is_empty() {
        return Ok(Vec::new());
    }
    let anchored: Vec<&str> = item.anchors.iter().flat_map(Claim::rows).collect();
    let places: Vec<_> = item.anchors.iter().flat_map(Claim::places).collect();
    let has = |cell: &Cell, (key, value): &(String, String)| cell.iter().any(|(own, its)| own == key && its == value);
    let wanted = |cell: &Cell| places.iter().any(|place| place.iter().all(|value| has(cell, value)));
    let is_anchored = |row: &&ItemRow| anchored.contains(&row.name.as_str());
    let singles = anchored.iter().any(|row| RowKind::of(row).is_single());
    let plan = |rows: &[ItemRow], group: &[&Testbed]| {
        let mut variants = variants_in(item, group, repeat, read)?;
        variants.retain(|variant| wanted(&variant.cell));
        let rows: Vec<&ItemRow> = rows.iter().filter(is_anchored).collect();
        Ok(Plan::new(&variants, &options(item, &rows, singles)))
    };
    by_rows(testbeds, plan)
}

/// Every row in every cell, in several testbeds: a plan for each set of rows.
///
/// # Errors
/// Those of `read`.
pub fn whole_in<E>(
    item: &Item,
    testbeds: &[Testbed],
    repeat: u32,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Vec<Plan>, E> {
    by_rows(testbeds, |rows, group| {
        let variants = variants_in(item, group, repeat, read)?;
        Ok(Plan::new(&variants, &options(item, &rows.iter().collect::<Vec<_>>(), item.baselines)))
    })
}

/// A plan for each set of rows, which `plan` makes of those testbeds that have it.
fn by_rows<E>(
    testbeds: &[Testbed],
    mut plan: impl FnMut(&[ItemRow], &[&Testbed]) -> Result<Plan, E>,
) -> Result<Vec<Plan>, E> {
    let mut groups: Vec<(&[ItemRow], Vec<&Testbed>)> = Vec::new();
    for testbed in testbeds {
        match groups.iter_mut().find(|(rows, _)| *rows == testbed.rows) {
            Some((_, group)) => group.push(testbed),
            None => groups.push((&testbed.rows, vec![testbed])),
        }
    }
    groups.iter().map(|(rows, group)| plan(rows, group)).collect()
}

fn variants_in<E>(
    item: &Item,
    testbeds: &[&Testbed],
    repeat: u32,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Vec<Variant>, E> {
    let asked = Asked { overrides: vec![Override::new("repeat", "repeat", repeat.to_string())], ..Asked::default() };
    let mut all = Vec::new();
    for testbed in testbeds {
        let mut own = variants(item, &testbed.set, &asked, read)?;
        own.iter_mut().for_each(|variant| variant.cell.push((TESTBED.to_owned(), testbed.name.clone())));
        all.extend(own);
    }
    Ok(all)
}

fn options(item: &Item, rows: &[&ItemRow], baselines: bool) -> Options {
    Options {
        schedulers: rows.iter().map(|row| row.plug_in.clone()).collect(),
        baselines,
        real_time: item.live,
        causes: false,
        curves: item.curves,
        ..Options::default()
    }
}

fn part<'a, E>(
    item: &'a Item,
    reading: Option<&'a Reading>,
    asked: &Asked,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Part<'a>, E> {
    let set = reading.map_or(&[][..], |reading| &reading.set);
    let variants = variants(item, set, asked, read)?;
    let rows = reading.map_or(&[][..], |reading| &reading.rows);
    let rows: &[ItemRow] = if rows.is_empty() { &item.rows } else { rows };
    let plan = |rows: &[&ItemRow], baselines: bool| {
        let repeat = if asked.auto { Repeat::Auto } else { Repeat::AsWritten };
        let options = Options { repeat, ..options(item, rows, baselines) };
        Plan::new(&variants, &options)
    };
    let anchored: Vec<&str> = item.anchors.iter().flat_map(Claim::rows).collect();
    let baselines = (reading.is_some_and(|reading| reading.open) && !anchored.is_empty()).then(|| {
        let rows: Vec<&ItemRow> = rows.iter().filter(|row| anchored.contains(&row.name.as_str())).collect();
        plan(&rows, anchored.iter().any(|row| RowKind::of(row).is_single()))
    });
    Ok(Part { reading, whole: plan(&rows.iter().collect::<Vec<_>>(), item.baselines), baselines })
}

/// The item's scenarios with some keys set, cell by cell.
fn variants<E>(
    item: &Item,
    set: &[Override],
    asked: &Asked,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Vec<Variant>, E> {
    let as_written = [(None, Vec::new())];
    let named: Vec<_> = item.variants.iter().map(|(name, set)| (Some(name), set.clone())).collect();
    let mut variants = Vec::new();
    for (name, own) in if named.is_empty() { as_written.to_vec() } else { named } {
        let mut overrides = own;
        overrides.extend(set.iter().cloned());
        if item.live {
            overrides.push(Override::new("--live", "hosts.receiver", "linux"));
            overrides.push(Override::new("--live", "repeat", LIVE.to_string()));
        }
        if asked.quick {
            overrides.extend(item.quick.clone());
        }
        overrides.extend(asked.overrides.clone());
        for (mut cell, mut scenario) in read(overrides)?.cells {
            cell.extend(name.map(|name| (VARIANT.to_owned(), name.clone())));
            if asked.quick {
                scenario.repeat = scenario.repeat.min(QUICK);
            }
            variants.push(Variant { cell, scenario: Arc::new(scenario) });
        }
    }
    Ok(variants)
}

/// The key of the cells that an item's variants make.
pub(crate) const VARIANT: &str = "variant";

/// The key of the cells that testbeds make.
pub const TESTBED: &str = "testbed";
