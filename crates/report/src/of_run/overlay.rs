//! The rows of a cell over time, in charts that they share.

use super::{OfRow, Series, recorded};
use crate::chart::{Axis, Chart, Curve, Panel, TimeSeries};
use crate::quantity::Quantity;
use crate::value::Figure;
use anabranch_metrics::MetricRef;
use indexmap::IndexSet;

/// Values of all curves in one page.
const VALUES: usize = 90_000;

/// Steps of a curve, at least and at most.
const STEPS: (usize, usize) = (100, 400);

/// The moving mean of rates, in seconds, and the part of a short run that it has instead.
const WINDOW_S: f64 = 1.0;
const WINDOW_PART: f64 = 0.05;

/// Cells whose charts are shown.
pub const CELLS: usize = 6;

const DELIVERED: &str = "delivered_bytes";
const SENT: &str = "sent_bytes";
/// The same queue in another unit.
const TWIN: &str = "ofo_packets";
/// Quantities of a path that are drawn unasked.
const OPEN: [&str; 3] = ["cwnd_packets", SRTT, "queue_packets"];
/// Columns of a path, each with the column of its trace that is drawn beside it.
const BESIDE: [(&str, &str); 2] = [(SENT, recorded::RATE), (SRTT, recorded::RTT)];
const SRTT: &str = "srtt_s";
/// The name of such a curve.
const TRACE: &str = "the trace";

/// Title and caption of the paths' figure if one of them has a trace.
const OF_TRACED: (&str, &str) = (
    "Each path: window, RTT, queue; what was sent, and what the trace offers",
    "The trace's rate counts whole packets, the data sent has no headers and includes what a full queue drops. The trace's \
     delay is of both directions, without the queue.",
);

/// A column that is drawn in another one's panel.
fn is_beside(name: &str) -> bool {
    BESIDE.iter().any(|(_, offered)| MetricRef::parse(name).name == *offered)
}

/// The figures of every cell: the connection, then each path's window, RTT and queue, then the paths' other columns, folded.
pub fn figures(all: &[OfRow<Series>], warmup_s: f64) -> Vec<Figure> {
    let columns: usize = all.iter().map(|row| row.record.columns()).sum();
    let steps = (VALUES / columns.max(1)).clamp(STEPS.0, STEPS.1);
    let cells: IndexSet<&str> = all.iter().map(|row| row.cell.as_str()).collect();
    let of_cell = |(n, cell): (usize, &&str)| {
        let rows: Vec<&OfRow<Series>> = all.iter().filter(|row| row.cell == **cell).collect();
        let overlay = Overlay { rows, steps };
        let names = overlay.names();
        let (open, other): (Vec<&str>, Vec<&str>) = names
            .iter()
            .copied()
            .filter(|name| MetricRef::parse(name).path.is_some() && !is_beside(name))
            .partition(|name| OPEN.contains(&MetricRef::parse(name).name) || overlay.offered(name).is_some());
        let is_traced = open.iter().any(|name| overlay.offered(name).is_some());
        let (title, caption) = if is_traced { OF_TRACED } else { ("Each path: window, RTT, queue", "") };
        let figure = |title: &str, caption: &str, folded: bool, panels: Vec<Panel>| Figure {
            title: title.to_owned(),
            caption: caption.to_owned(),
            group: (*cell).to_owned(),
            folded: folded || n > 0,
            chart: Chart::TimeSeries(TimeSeries { panels, warmup_s }),
        };
        let connection =
            "Goodput is a moving mean over a second; in a run of less than 20 s, over a twentieth of the run.";
        let figures = [
            figure("The connection", connection, false, overlay.connection(&names)),
            figure(title, caption, false, overlay.panels(&open)),
            figure("Each path: other columns", "", true, overlay.panels(&other)),
        ];
        figures
            .into_iter()
            .filter(|figure| matches!(&figure.chart, Chart::TimeSeries(chart) if !chart.panels.is_empty()))
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

/// The rows of one cell.
struct Overlay<'a> {
    rows: Vec<&'a OfRow<Series>>,
    steps: usize,
}

impl<'a> Overlay<'a> {
    /// All columns that any row has, those of one path together.
    fn names(&self) -> Vec<&'a str> {
        let names: IndexSet<&str> = self.rows.iter().flat_map(|row| row.record.names()).collect();
        let paths: IndexSet<Option<&str>> = names.iter().map(|name| MetricRef::parse(name).path).collect();
        let mut names: Vec<&str> = names.into_iter().filter(|name| *name != TWIN).collect();
        names.sort_by_key(|name| paths.get_index_of(&MetricRef::parse(name).path));
        names
    }

    /// A curve per row that has the column.
    fn panel(&self, axis: Axis, of: impl Fn(&Series) -> Option<Curve>) -> Panel {
        let curve = |row: &&OfRow<Series>| {
            let curve = of(&row.record)?;
            // A path that the row does not use has nothing to show.
            curve.mean.iter().flatten().any(|value| *value != 0.0).then(|| Curve { name: row.row.clone(), ..curve })
        };
        Panel { axis, curves: self.rows.iter().filter_map(curve).collect() }
    }

    fn connection(&self, names: &[&str]) -> Vec<Panel> {
        let own = names.iter().copied().filter(|name| MetricRef::parse(name).path.is_none());
        let (delivered, others): (Vec<&str>, Vec<&str>) = own.partition(|name| *name == DELIVERED);
        let mut panels = Vec::new();
        if !delivered.is_empty() {
            let rate = Quantity::of("goodput_bps", 0.0);
            panels.push(self.rate(DELIVERED, &rate));
            let total = |series: &Series| series.total(DELIVERED, 1e6, self.steps);
            panels.push(self.panel(Axis::linear("delivered so far, MB"), total));
        }
        panels.extend(self.panels(&others));
        panels.retain(|panel| !panel.curves.is_empty());
        panels
    }

    fn rate(&self, name: &str, quantity: &Quantity) -> Panel {
        let of = |series: &Series| {
            let window = WINDOW_S.min(WINDOW_PART * series.duration_s());
            series.moving_rate(name, window, quantity.per, self.steps)
        };
        self.panel(quantity.axis(), of)
    }

    /// The first row's column of what a trace offers beside the column `name`. All rows of a cell have the seed of its first run, so the
    /// same part of the trace.
    fn offered(&self, name: &str) -> Option<(&'a Series, String)> {
        let MetricRef { path, name } = MetricRef::parse(name);
        let (_, offered) = BESIDE.iter().find(|(achieved, _)| *achieved == name)?;
        let column = MetricRef::of_path(path?, offered).to_string();
        let row = self.rows.iter().find(|row| row.record.names().any(|name| name == column))?;
        Some((&row.record, column))
    }

    /// A panel a column.
    fn panels(&self, names: &[&str]) -> Vec<Panel> {
        let panel = |name: &&str| {
            let MetricRef { path, name: of } = MetricRef::parse(name);
            let offered = self.offered(name);
            let (quantity, mut panel) = if of == SENT {
                let rate = path.map_or("sent_bps".to_owned(), |path| MetricRef::of_path(path, "sent_bps").to_string());
                let quantity = Quantity::of(&rate, 0.0);
                let panel = self.rate(name, &quantity);
                (quantity, panel)
            } else {
                let greatest = self.rows.iter().map(|row| row.record.greatest(name)).fold(0.0, f64::max);
                let quantity = Quantity::of(name, greatest);
                let panel = self.panel(quantity.axis(), |series| series.means(name, quantity.per, self.steps));
                (quantity, panel)
            };
            let trace = offered.and_then(|(series, column)| series.means(&column, quantity.per, self.steps));
            panel.curves.extend(trace.map(|curve| Curve { name: TRACE.into(), ..curve }));
            panel
        };
        names.iter().map(panel).filter(|panel| !panel.curves.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &str =
        "time_s,ofo_bytes,delivered_bytes,ofo_packets,path.wlan.cwnd_packets,path.wlan.sent_bytes,path.3g.cwnd_packets";

    fn row(name: &str, cell: &str, cwnd: [u32; 2]) -> OfRow<Series> {
        let lines: String =
            (0..100).map(|i| format!("{},1024,12500,1,{},1250,{}\n", i as f64 / 100.0, cwnd[0], cwnd[1])).collect();
        let record = Series::parse(&format!("{COLUMNS}\n{lines}")).unwrap();
        OfRow { row: name.into(), cell: cell.into(), seed: Some(1), record }
    }

    /// Each panel's axis, and the names of its curves.
    fn shown(figure: &Figure) -> Vec<(&str, Vec<&str>)> {
        let Chart::TimeSeries(chart) = &figure.chart else { panic!("over time") };
        chart
            .panels
            .iter()
            .map(|panel| (&*panel.axis.label, panel.curves.iter().map(|curve| &*curve.name).collect()))
            .collect()
    }

    #[test]
    fn rows_share_a_chart_and_paths_have_panels_of_their_own() {
        let rows = [row("minrtt", "", [10, 20]), row("blest", "", [11, 21]), row("single:wlan", "", [9, 0])];
        let figures = figures(&rows, 10.0);
        let all = vec!["minrtt", "blest", "single:wlan"];
        let connection =
            [("goodput, Mbit/s", all.clone()), ("delivered so far, MB", all.clone()), ("OFO, KiB", all.clone())];
        assert_eq!(shown(&figures[0]), connection);
        // OFO in packets is the same queue. What a row does not use has no curve.
        let paths = [("cwnd of path wlan, packets", all.clone()), ("cwnd of path 3g, packets", all[..2].to_vec())];
        assert_eq!(shown(&figures[1]), paths);
        assert_eq!(shown(&figures[2]), [("sent of path wlan, Mbit/s", all)]);
        assert_eq!(figures.iter().map(|figure| figure.folded).collect::<Vec<_>>(), [false, false, true]);
        let Chart::TimeSeries(chart) = &figures[0].chart else { panic!() };
        assert_eq!((chart.warmup_s, chart.panels[0].curves[0].mean[50]), (10.0, Some(10.0)));
    }

    #[test]
    fn what_a_trace_offers_stands_beside_what_was_made_of_it() {
        let columns = "time_s,path.lte.srtt_s,path.lte.sent_bytes,path.lte.trace_rate_bps,path.lte.trace_rtt_s";
        let lines: String = (0..100).map(|i| format!("{},0.06,1250,2000000,0.04\n", i as f64 / 100.0)).collect();
        let record = Series::parse(&format!("{columns}\n{lines}")).unwrap();
        let row = |name: &str| OfRow { row: name.into(), cell: String::new(), seed: Some(1), record: record.clone() };
        let figures = figures(&[row("minrtt"), row("blest")], 0.0);
        let all = vec!["minrtt", "blest", TRACE];
        assert_eq!(shown(&figures[0]), [("SRTT of path lte, ms", all.clone()), ("sent of path lte, Mbit/s", all)]);
        let Chart::TimeSeries(chart) = &figures[0].chart else { panic!() };
        let last = |panel: usize| chart.panels[panel].curves.iter().map(|curve| curve.mean[50]).collect::<Vec<_>>();
        assert_eq!(
            (last(0), last(1)),
            (vec![Some(60.0), Some(60.0), Some(40.0)], vec![Some(1.0), Some(1.0), Some(2.0)])
        );
        assert!(figures[0].title.contains("what the trace offers") && figures.len() == 1, "{figures:?}");
    }

    #[test]
    fn cells_have_charts_of_their_own_of_which_the_first_is_open() {
        let rows = [row("minrtt", "loss = 1%", [1, 2]), row("minrtt", "loss = 2%", [1, 2])];
        let figures = figures(&rows, 0.0);
        let heads: Vec<(&str, bool)> = figures.iter().map(|figure| (&*figure.group, figure.folded)).collect();
        let (first, second) = ("loss = 1%", "loss = 2%");
        assert_eq!(
            heads,
            [(first, false), (first, false), (first, true), (second, true), (second, true), (second, true)]
        );
    }
}
