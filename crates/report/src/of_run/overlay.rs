//! The rows of a cell over time, in charts that they share.

use super::{OfRow, Series};
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
const OPEN: [&str; 3] = ["cwnd_packets", "srtt_s", "queue_packets"];

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
            .filter(|name| MetricRef::parse(name).path.is_some())
            .partition(|name| OPEN.contains(&MetricRef::parse(name).name));
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
            figure("Each path: window, RTT, queue", "", false, overlay.panels(&open)),
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

    /// A panel a column.
    fn panels(&self, names: &[&str]) -> Vec<Panel> {
        let panel = |name: &&str| {
            let MetricRef { path, name: of } = MetricRef::parse(name);
            if of == SENT {
                let rate = path.map_or("sent_bps".to_owned(), |path| MetricRef::of_path(path, "sent_bps").to_string());
                return self.rate(name, &Quantity::of(&rate, 0.0));
            }
            let greatest = self.rows.iter().map(|row| row.record.greatest(name)).fold(0.0, f64::max);
            let quantity = Quantity::of(name, greatest);
            self.panel(quantity.axis(), |series| series.means(name, quantity.per, self.steps))
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
