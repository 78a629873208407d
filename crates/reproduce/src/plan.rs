//! An item's scenario → what there is to run.

use crate::claim::Claim;
use crate::item_row::ItemRow;
use crate::paper::Item;
use crate::reading::Reading;
use anabranch_run::{Options, Plan, Repeat, RowKind, Variant};
use anabranch_scenario::{Document, Override, Scenario};
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

fn part<'a, E>(
    item: &'a Item,
    reading: Option<&'a Reading>,
    asked: &Asked,
    read: &mut dyn FnMut(Vec<Override>) -> Result<Document, E>,
) -> Result<Part<'a>, E> {
    let as_written = [(None, Vec::new())];
    let named: Vec<_> = item.variants.iter().map(|(name, set)| (Some(name), set.clone())).collect();
    let mut variants = Vec::new();
    for (name, set) in if named.is_empty() { as_written.to_vec() } else { named } {
        let mut overrides = set;
        overrides.extend(reading.iter().flat_map(|reading| reading.set.clone()));
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
    let rows = reading.map_or(&[][..], |reading| &reading.rows);
    let rows: &[ItemRow] = if rows.is_empty() { &item.rows } else { rows };
    let plan = |rows: &[&ItemRow], baselines: bool| {
        let options = Options {
            schedulers: rows.iter().map(|row| row.plug_in.clone()).collect(),
            baselines,
            repeat: if asked.auto { Repeat::Auto } else { Repeat::AsWritten },
            real_time: item.live,
            causes: false,
            curves: item.curves,
            ..Options::default()
        };
        Plan::new(&variants, &options)
    };
    let anchored: Vec<&str> = item.anchors.iter().flat_map(Claim::rows).collect();
    let baselines = (reading.is_some_and(|reading| reading.open) && !anchored.is_empty()).then(|| {
        let rows: Vec<&ItemRow> = rows.iter().filter(|row| anchored.contains(&row.name.as_str())).collect();
        plan(&rows, anchored.iter().any(|row| RowKind::of(row).is_single()))
    });
    Ok(Part { reading, whole: plan(&rows.iter().collect::<Vec<_>>(), item.baselines), baselines })
}

/// The key of the cells that an item's variants make.
pub(crate) const VARIANT: &str = "variant";
