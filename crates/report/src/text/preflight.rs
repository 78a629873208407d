//! Paths as configured beside paths as measured, as a table to read.

use super::plain::{plain_table, print_table, seconds};
use anabranch_run::{Preflight, WayCheck};
use std::fmt::Write as _;

const HEADER: [&str; 10] = [
    "path",
    "Mbit/s\nset",
    "\nmeasured",
    "\n%",
    "delay ms\nset",
    "\nmeasured",
    "jitter\nms",
    "queue\nset",
    "\nmeasured",
    "",
];

/// One row for each direction of each path; a word at those that are outside the tolerance.
pub fn preflight_table(preflight: &Preflight) -> String {
    let mut table = plain_table(HEADER.map(str::to_owned).into());
    for way in &preflight.ways {
        table.add_row(row(way));
    }
    let mut text =
        format!("\nPaths as measured in {} before the run:\n\n{}", seconds(preflight.took_s), print_table(&table));
    for way in &preflight.ways {
        if let Some(why) = &way.skipped {
            let _ = writeln!(text, "{} {} was not measured: {why}.", way.path, way.direction);
        }
    }
    let deviating = preflight.ways.iter().filter(|way| way.deviates()).count();
    if deviating > 0 {
        let _ = writeln!(
            text,
            "{deviating} of {} directions are outside the tolerance; 99 % of the packets left at most {} late.",
            preflight.ways.len(),
            seconds(preflight.late_p99_s)
        );
    }
    text.push('\n');
    text
}

fn row(way: &WayCheck) -> [String; 10] {
    let (set, found) = (&way.configured, &way.measured);
    let figure = |value: Option<f64>, per: f64, decimals: usize| {
        value.map(|value| format!("{:.decimals$}", value / per)).unwrap_or_default()
    };
    let deviation = set.rate_bps.zip(found.rate_bps).map(|(set, found)| format!("{:+.2}", (found / set - 1.0) * 100.0));
    [
        format!("{} {}", way.path, way.direction),
        figure(set.rate_bps, 1e6, 3),
        figure(found.rate_bps, 1e6, 3),
        deviation.unwrap_or_default(),
        figure(set.delay_s, 1e-3, 2),
        figure(found.delay_s, 1e-3, 2),
        figure(way.jitter_s, 1e-3, 3),
        figure(set.queue_packets, 1.0, 0),
        figure(found.queue_packets, 1.0, 0),
        if way.deviates() { "deviates" } else { "" }.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::WayFigures;
    use anabranch_units::Direction;

    #[test]
    fn deviations_are_marked_and_gaps_explained() {
        let figures = |rate| WayFigures { rate_bps: Some(rate), delay_s: Some(0.02), queue_packets: Some(10.0) };
        let mut wrong = WayCheck::new("wlan", Direction::Down, figures(5e6));
        wrong.measured = figures(4e6);
        wrong.judge();
        let mut left_out = WayCheck::new("sat", Direction::Up, figures(1e6));
        left_out.skipped = Some("it would take 3.0 s".into());
        let preflight = Preflight { took_s: 0.8, late_p99_s: 5e-5, ways: vec![wrong, left_out] };
        let text = preflight_table(&preflight);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let row = "wlan down 5.000 4.000 -20.00 20.00 20.00 10 10 deviates";
        assert!(lines.contains(&row.split(' ').collect()), "{text}");
        assert!(text.contains("sat up was not measured: it would take 3.0 s."), "{text}");
        assert!(text.contains("1 of 2 directions are outside the tolerance"), "{text}");
    }
}
