//! The packets that crossed each path, as a table to read.

use anabranch_lab::shell::{PathSummary, WaySummary};
use anabranch_report::text::{plain_table, print_table};
use indexmap::IndexMap;

/// A column: its header, and what it shows.
type Column = (&'static str, fn(&WaySummary) -> Option<String>);
/// A fate of packets: its header, and their number.
type Cause = (&'static str, fn(&WaySummary) -> u64);

const COLUMNS: [Column; 7] = [
    ("packets", |way| Some(way.packets.to_string())),
    ("MB", |way| Some(format!("{:.2}", way.bytes as f64 / 1e6))),
    ("% of\nrate", |way| Some(format!("{:.1}", way.utilisation? * 100.0))),
    ("queue\nmean", |way| Some(format!("{:.1}", way.queue_mean_packets?))),
    ("queue\nmax", |way| Some(way.queue_max_packets?.to_string())),
    ("delay ms\nmean", |way| Some(format!("{:.1}", way.delay_mean_s? * 1e3))),
    ("delay ms\np99", |way| Some(format!("{:.1}", way.delay_p99_s? * 1e3))),
];

const CAUSES: [Cause; 9] = [
    ("dropped:\nqueue", |way| way.queue_drops),
    ("dropped:\nAQM", |way| way.aqm_drops),
    ("dropped:\npolicer", |way| way.police_drops),
    ("dropped:\nMTU", |way| way.mtu_drops),
    ("dropped:\nbox", |way| way.middlebox_drops),
    ("marked\n(ECN)", |way| way.marked),
    ("dropped:\nloss", |way| way.loss_drops),
    ("dropped:\noutage", |way| way.outage_drops),
    ("corrupt", |way| way.corruption_drops),
];

/// One row for each direction of each path; columns of those in which there are only zeros are left out.
pub fn link_table(paths: &IndexMap<String, PathSummary>) -> String {
    let ways: Vec<(String, &WaySummary)> = paths
        .iter()
        .flat_map(|(name, path)| [(format!("{name} down"), &path.down), (format!("{name} up"), &path.up)])
        .collect();
    let causes: Vec<&Cause> = CAUSES.iter().filter(|(_, of)| ways.iter().any(|(_, way)| of(way) > 0)).collect();
    let header = ["path"].into_iter().chain(COLUMNS.iter().map(|(name, _)| *name)).chain(causes.iter().map(|c| c.0));
    let mut table = plain_table(header.map(str::to_owned).collect());
    for (name, way) in &ways {
        let values = COLUMNS.iter().map(|(_, of)| of(way).unwrap_or_default());
        let drops = causes.iter().map(|(_, of)| of(way).to_string());
        table.add_row([name.clone()].into_iter().chain(values).chain(drops));
    }
    print_table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(packets: u64, queue_drops: u64) -> WaySummary {
        WaySummary {
            packets,
            bytes: packets * 1000,
            queue_drops,
            aqm_drops: 0,
            police_drops: 0,
            mtu_drops: 0,
            middlebox_drops: 0,
            marked: 0,
            loss_drops: 0,
            outage_drops: 0,
            corruption_drops: 0,
            utilisation: Some(0.5),
            queue_mean_packets: (packets > 0).then_some(1.25),
            queue_max_packets: (packets > 0).then_some(7),
            delay_mean_s: None,
            delay_p99_s: None,
        }
    }

    #[test]
    fn each_direction_has_a_row_and_each_cause_a_column() {
        let paths = [("wlan".to_owned(), PathSummary { down: way(2000, 3), up: way(0, 0) })].into_iter().collect();
        let table = link_table(&paths);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(table.contains("dropped:") && !table.contains("outage"), "{table}");
        assert!(lines.contains(&vec!["wlan", "down", "2000", "2.00", "50.0", "1.2", "7", "3"]), "{table}");
        assert!(lines.contains(&vec!["wlan", "up", "0", "0.00", "50.0", "0"]), "{table}");
    }
}
