//! Charts in words and figures, for those who cannot see them and for those who want the numbers.

use crate::chart::{Bar, Bars, Chart, Curve, Distribution, Line, Lines, Mean, Scatter, TimeSeries};
use crate::table::{Column, Table};
use anabranch_recorders::{Fate, Timeline};
use anabranch_trace::SendKind;

/// Names that a description lists; it counts the others.
const LISTED: usize = 12;

/// The chart in one paragraph.
pub fn in_words(chart: &Chart) -> String {
    match chart {
        Chart::Bars(chart) => bars_in_words(chart),
        Chart::Lines(chart) => {
            let head = format!("Lines: {} over {}. ", chart.y.label, chart.x.label);
            head + &list(chart.lines.iter().filter_map(line_in_words))
        }
        Chart::Distribution(chart) => {
            let head = format!("Distribution: {} over {}. ", chart.y.label, chart.x.label);
            let mean = |shares: &[(i64, f64)]| shares.iter().map(|(x, share)| *x as f64 * share).sum::<f64>();
            head + &list(
                chart.curves.iter().map(|curve| format!("{}: mean {}", curve.name, figure(mean(&curve.shares)))),
            )
        }
        Chart::TimeSeries(chart) => series_in_words(chart),
        Chart::Scatter(chart) => {
            let sets = chart.sets.iter().map(|set| format!("{} points of {}", set.points.len(), set.name));
            let r2 = chart.r2.map(|r2| format!(" R² of the model: {}.", figure(r2))).unwrap_or_default();
            format!("Points: {} over {}. {}{r2}", chart.y.label, chart.x.label, list(sets))
        }
        Chart::Timeline(timeline) => timeline_in_words(timeline),
    }
}

/// The values behind the chart; of those with thousands, none.
pub fn values(chart: &Chart) -> Option<Table> {
    let (columns, rows) = match chart {
        Chart::Bars(chart) => bars_values(chart),
        Chart::Lines(chart) => lines_values(chart),
        Chart::Distribution(chart) => distribution_values(chart),
        Chart::Scatter(chart) => scatter_values(chart),
        Chart::TimeSeries(_) | Chart::Timeline(_) => return None,
    };
    Some(Table { columns, rows, ..Table::default() })
}

/// Four digits that count: `5.924`, `0.0004124`, `1083`.
pub fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    let exponent = libm::log10(value.abs()).floor() as i32;
    let decimals = (3 - exponent).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `5.924 (5.683 to 6.165)`.
fn mean_in_words(mean: &Mean) -> String {
    match mean.low.zip(mean.high) {
        Some((low, high)) => format!("{} ({} to {})", figure(mean.mean), figure(low), figure(high)),
        None => figure(mean.mean),
    }
}

/// `a; b; c.`, or the first of them and how many more.
fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let more = if items.len() > LISTED { format!("; and {} more", items.len() - LISTED) } else { String::new() };
    format!("{}{more}.", items[..items.len().min(LISTED)].join("; "))
}

fn bars_in_words(chart: &Bars) -> String {
    let bar = |bar: &Bar| {
        let name = if bar.group.is_empty() { bar.row.clone() } else { format!("{}, {}", bar.group, bar.row) };
        let ours = bar.ours.as_ref().map(|mean| format!(" {}", mean_in_words(mean))).unwrap_or_default();
        let published = bar.published.map(|value| format!(", published {}", figure(value))).unwrap_or_default();
        format!("{name}{ours}{published}")
    };
    format!("Bars: {}. {}", chart.axis.label, list(chart.bars.iter().map(bar)))
}

fn line_in_words(line: &Line) -> Option<String> {
    let ((first_x, first), (last_x, last)) = (line.points.first()?, line.points.last()?);
    Some(format!(
        "{}: from {} at {} to {} at {}",
        line.name,
        figure(first.mean),
        figure(*first_x),
        figure(last.mean),
        figure(*last_x)
    ))
}

fn series_in_words(chart: &TimeSeries) -> String {
    let curve = |label: &str, curve: &Curve| {
        let known: Vec<f64> = curve.mean.iter().flatten().copied().collect();
        let (low, high) = known.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        let name = if curve.name.is_empty() { label.to_owned() } else { format!("{label}, {}", curve.name) };
        (!known.is_empty()).then(|| format!("{name}: {} to {}", figure(low), figure(high)))
    };
    let curves = chart.panels.iter().flat_map(|panel| panel.curves.iter().map(|c| (panel.axis.label.as_str(), c)));
    format!("Over time: {}", list(curves.filter_map(|(label, one)| curve(label, one))))
}

fn timeline_in_words(timeline: &Timeline) -> String {
    let packets = &timeline.packets;
    let count = |of: &dyn Fn(SendKind) -> bool| packets.iter().filter(|packet| of(packet.kind)).count();
    let waits: Vec<f64> = packets.iter().filter_map(|packet| packet.waited_s()).collect();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    let count_of_waits = waits.len().max(1) as f64;
    let mean = waits.iter().sum::<f64>() / count_of_waits;
    let in_subflows = packets.iter().filter(|packet| packet.delivered_s.is_some());
    let mean_in_subflows = in_subflows.filter_map(|packet| packet.waited_in_subflow_s()).sum::<f64>() / count_of_waits;
    let part = match timeline.knows_subflows() {
        true => format!(" ({} ms of it behind gaps of their own subflow)", figure(1e3 * mean_in_subflows)),
        false => String::new(),
    };
    format!(
        "{} packets over {} within {} s: {} sent for the first time, {} repeated on another path, {} retransmitted on the same; {} \
         were lost; at the end {} were on their way and {} waited at the receiver. Those that were delivered had waited for \
         earlier data {} ms on average{part}, {} ms at most.",
        packets.len(),
        timeline.paths.join(", "),
        figure(timeline.duration_s),
        count(&|kind| kind == SendKind::First),
        count(&|kind| matches!(kind, SendKind::Opportunistic | SendKind::Rescue | SendKind::Copy)),
        count(&|kind| kind == SendKind::Retransmission),
        timeline.count(Fate::Lost),
        timeline.count(Fate::OnTheWay),
        timeline.count(Fate::Waiting),
        figure(1e3 * mean),
        figure(1e3 * longest),
    )
}

type Values = (Vec<Column>, Vec<Vec<String>>);

fn of_mean(mean: Option<&Mean>) -> [String; 4] {
    let field = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let n = mean.map(|mean| mean.n.to_string()).unwrap_or_default();
    [field(mean.map(|m| m.mean)), field(mean.and_then(|m| m.low)), field(mean.and_then(|m| m.high)), n]
}

fn mean_columns(label: &str) -> [Column; 4] {
    [label, "95 % low", "95 % high", "n"].map(Column::numeric)
}

fn bars_values(chart: &Bars) -> Values {
    let grouped = chart.bars.iter().any(|bar| !bar.group.is_empty());
    let published = chart.bars.iter().any(|bar| bar.published.is_some());
    let mut columns = if grouped { vec![Column::text("group")] } else { Vec::new() };
    columns.push(Column::text("row"));
    columns.extend(mean_columns(&chart.axis.label));
    columns.extend(published.then(|| Column::numeric("published")));
    let row = |bar: &Bar| {
        let mut row = if grouped { vec![bar.group.clone()] } else { Vec::new() };
        row.push(bar.row.clone());
        row.extend(of_mean(bar.ours.as_ref()));
        row.extend(published.then(|| bar.published.map(|value| value.to_string()).unwrap_or_default()));
        row
    };
    (columns, chart.bars.iter().map(row).collect())
}

fn lines_values(chart: &Lines) -> Values {
    let mut columns = vec![Column::text("row"), Column::numeric(&chart.x.label)];
    columns.extend(mean_columns(&chart.y.label));
    columns.push(Column::numeric("published"));
    let mut rows = Vec::new();
    for line in &chart.lines {
        let published = |x: f64| line.published.iter().find(|(at, _)| *at == x).map(|(_, y)| y.to_string());
        let row = |x: f64, mean: Option<&Mean>| {
            let mut row = vec![line.name.clone(), x.to_string()];
            row.extend(of_mean(mean));
            row.push(published(x).unwrap_or_default());
            row
        };
        rows.extend(line.points.iter().map(|(x, mean)| row(*x, Some(mean))));
        let ours = |x: f64| line.points.iter().any(|(at, _)| *at == x);
        rows.extend(line.published.iter().filter(|(x, _)| !ours(*x)).map(|(x, _)| row(*x, None)));
    }
    (columns, rows)
}

fn distribution_values(chart: &Distribution) -> Values {
    let columns = vec![Column::text("row"), Column::numeric(&chart.x.label), Column::numeric(&chart.y.label)];
    let rows = chart.curves.iter().flat_map(|curve| {
        curve.shares.iter().map(|(x, share)| vec![curve.name.clone(), x.to_string(), share.to_string()])
    });
    (columns, rows.collect())
}

fn scatter_values(chart: &Scatter) -> Values {
    let columns = vec![Column::text("of"), Column::numeric(&chart.x.label), Column::numeric(&chart.y.label)];
    let sets = chart.sets.iter().chain(&chart.models);
    let rows =
        sets.flat_map(|set| set.points.iter().map(|(x, y)| vec![set.name.clone(), x.to_string(), y.to_string()]));
    (columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Axis;
    use anabranch_recorders::TimelinePacket;

    #[test]
    fn figures_have_four_digits_that_count() {
        let texts = [5.9243, 0.000_412_38, 1083.4, 12345.6, 0.0, -27.0, 2.5, 1000.0].map(figure);
        assert_eq!(texts, ["5.924", "0.0004124", "1083", "12346", "0", "-27", "2.5", "1000"]);
    }

    fn bars() -> Chart {
        let mean = Mean { mean: 5.5, low: Some(5.0), high: Some(6.0), n: 20 };
        let ours = Bar { group: "lossy".into(), row: "blest".into(), ours: Some(mean), published: Some(6.25) };
        let theirs = Bar { group: "lossy".into(), row: "daps".into(), ours: None, published: Some(3.0) };
        Chart::Bars(Bars { axis: Axis::linear("goodput, Mbit/s"), bars: vec![ours, theirs] })
    }

    #[test]
    fn bars_are_told_with_interval_and_published_value() {
        let words = "Bars: goodput, Mbit/s. lossy, blest 5.5 (5 to 6), published 6.25; lossy, daps, published 3.";
        assert_eq!(in_words(&bars()), words);
        let csv = values(&bars()).unwrap().to_csv();
        let expected = "group,row,\"goodput, Mbit/s\",95 % low,95 % high,n,published\n\
                        lossy,blest,5.5,5,6,20,6.25\nlossy,daps,,,,,3\n";
        assert_eq!(csv, expected);
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let bar = |i: usize| Bar { row: format!("row{i}"), ..Bar::default() };
        let chart = Chart::Bars(Bars { axis: Axis::linear("x"), bars: (0..15).map(bar).collect() });
        assert!(in_words(&chart).ends_with("row11; and 3 more."));
        assert_eq!(values(&chart).unwrap().rows.len(), 15);
    }

    #[test]
    fn published_points_without_ours_are_kept() {
        let point = (1.0, Mean { mean: 2.0, n: 1, ..Mean::default() });
        let line = Line { name: "ocps".into(), points: vec![point], published: vec![(1.0, 2.5), (4.0, 3.5)] };
        let lines = Lines { x: Axis::linear("loss, %"), y: Axis::linear("Mbit/s"), lines: vec![line] };
        let rows = values(&Chart::Lines(lines)).unwrap().rows;
        assert_eq!(rows, [["ocps", "1", "2", "", "", "1", "2.5"], ["ocps", "4", "", "", "", "", "3.5"]]);
    }

    #[test]
    fn a_timeline_tells_losses_and_waiting() {
        let packet = |arrived_s, kind| TimelinePacket {
            data_start: 0,
            data_end: 1400,
            path: 0,
            bound_s: 0.0,
            sent_s: 0.0,
            arrived_s,
            subflow_in_order_s: arrived_s.map(|at| f64::min(at + 0.125, 0.5)),
            delivered_s: arrived_s.map(|_| 0.5),
            kind,
            fate: if arrived_s.is_some() { Fate::Delivered } else { Fate::Lost },
        };
        let packets = vec![
            packet(Some(0.25), SendKind::First),
            packet(None, SendKind::Rescue),
            packet(Some(0.5), SendKind::First),
        ];
        let words = in_words(&Chart::Timeline(Timeline {
            paths: vec!["wlan".into()],
            duration_s: 1.0,
            packets,
            decisions: None,
        }));
        assert!(
            words.starts_with("3 packets over wlan within 1 s: 2 sent for the first time, 1 repeated on another"),
            "{words}"
        );
        assert!(words.ends_with(
            "1 were lost; at the end 0 were on their way and 0 waited at the receiver. Those that were delivered had waited \
             for earlier data 125 ms on average (62.5 ms of it behind gaps of their own subflow), 250 ms at most."
        ));
    }
}
