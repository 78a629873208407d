//! Where the room is.

use super::{members, percent};
use crate::table::{csv_lines, markdown_table};
use anabranch_studies::frontier::{Room, RoomRow, TAKEN_AWAY};
use indexmap::IndexSet;
use std::fmt::Write as _;

/// The room by application, by kind of paths, and how each hindrance is removed.
pub fn room(room: &Room) -> String {
    let mut text = format!(
        "With {}. Best scheduler over all: {}. The portfolio that represents all schedulers below, and the loss of \
         its best so far against the best of all, in percent: {}.\n",
        room.congestion,
        room.leader,
        members(&room.team)
    );
    let groups: [(&str, Group); 2] = [("application", |row| &row.traffic), ("paths", |row| &row.kind)];
    for (title, group) in groups {
        let _ = write!(text, "\nRatio to the oracle, in percent, by {title}:\n\n{}", ratios(room, title, group));
        let _ = write!(text, "\nPoints that it gains to take away, by {title}:\n\n{}", gains(room, title, group));
    }
    text += "\nTaken away means:\n\n";
    TAKEN_AWAY.iter().for_each(|(name, how)| text += &format!("- *{name}*: {how}.\n"));
    text
}

type Group = fn(&RoomRow) -> &str;

/// The rows of each group, then all.
fn grouped(room: &Room, group: Group) -> Vec<(String, Vec<&RoomRow>)> {
    let names: IndexSet<&str> = room.rows.iter().map(group).collect();
    let of = |name: &&str| ((*name).to_owned(), room.rows.iter().filter(|row| group(row) == *name).collect());
    names.iter().map(of).chain([("all".to_owned(), room.rows.iter().collect())]).collect()
}

/// Every path set counts the same.
fn mean(rows: &[&RoomRow], value: &dyn Fn(&RoomRow) -> f64) -> f64 {
    let sets: usize = rows.iter().map(|row| row.sets).sum();
    rows.iter().map(|row| value(row) * row.sets as f64).sum::<f64>() / sets.max(1) as f64
}

fn ratios(room: &Room, title: &str, group: Group) -> String {
    let last = TAKEN_AWAY[TAKEN_AWAY.len() - 1].0;
    let mut header = [title, "cells", "best path alone"].map(str::to_owned).to_vec();
    header.extend([room.leader.clone()]);
    header.extend(["best of all", "all taken away", "what is left to the oracle"].map(str::to_owned));
    let line = |(name, rows): (String, Vec<&RoomRow>)| {
        let all = mean(&rows, &|row| row.without.get(last).copied().unwrap_or(0.0));
        let cells: usize = rows.iter().map(|row| row.sets).sum();
        let values = [mean(&rows, &|r| r.single), mean(&rows, &|r| r.leader), mean(&rows, &|r| r.best), all, 1.0 - all];
        [name, cells.to_string()].into_iter().chain(values.map(percent)).collect()
    };
    markdown_table(&header, 1, grouped(room, group).into_iter().map(line))
}

fn gains(room: &Room, title: &str, group: Group) -> String {
    let header: Vec<String> = [title, "the best of the team"]
        .into_iter()
        .chain(TAKEN_AWAY.iter().map(|(name, _)| *name))
        .map(str::to_owned)
        .collect();
    let line = |(name, rows): (String, Vec<&RoomRow>)| {
        let gain = |(thing, _): &(&str, &str)| {
            let points = mean(&rows, &|row| row.without.get(*thing).map_or(0.0, |ratio| ratio - row.team));
            format!("{:+.1}", points * 100.0)
        };
        [name, percent(mean(&rows, &|row| row.team))].into_iter().chain(TAKEN_AWAY.iter().map(gain)).collect()
    };
    markdown_table(&header, 1, grouped(room, group).into_iter().map(line))
}

/// One line per kind of paths and application.
pub fn room_csv(room: &Room) -> String {
    let mut head = ["kind", "traffic", "sets", "single", "leader", "best", "team"].map(str::to_owned).to_vec();
    head.extend(TAKEN_AWAY.iter().map(|(name, _)| format!("without {name}")));
    let mut records = vec![head];
    records.extend(room.rows.iter().map(|row| {
        let mut record = vec![row.kind.clone(), row.traffic.clone(), row.sets.to_string()];
        record.extend([row.single, row.leader, row.best, row.team].map(|value| value.to_string()));
        record.extend(row.without.values().map(f64::to_string));
        record
    }));
    csv_lines(&records)
}
