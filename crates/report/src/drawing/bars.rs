//! Bars: a panel per group, a row per scheduler.

use super::axis::Scale;
use super::panel::{Panel, Sheet};
use super::{INK, Looks, Mark, Pen, Point, WHITE};
use crate::chart::{Bar, Bars};
use indexmap::IndexMap;

/// Height of a row, in points.
const ROW: f64 = 12.0;

/// The groups, or the one that is the `only`th.
pub fn draw(sheet: &mut Sheet, chart: &Bars, only: Option<usize>, looks: &Looks) {
    let mut groups: IndexMap<&str, Vec<&Bar>> = IndexMap::new();
    chart.bars.iter().for_each(|bar| groups.entry(&bar.group).or_default().push(bar));
    // One scale for all, unless some would be lost on it.
    let size = |bars: &[&Bar]| bars.iter().flat_map(|bar| values(chart, bar)).map(libm::fabs).fold(0.0, f64::max);
    let sizes: Vec<f64> = groups.values().map(|bars| size(bars)).filter(|size| *size > 0.0).collect();
    let apart = sizes.iter().any(|size| sizes.iter().any(|other| *size > 10.0 * other));
    let scale = |bars: &mut dyn Iterator<Item = &Bar>| {
        Scale::of(&chart.axis, bars.flat_map(|bar| values(chart, bar)).collect::<Vec<_>>().into_iter(), 5.0, false)
    };
    let shown = groups.iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place));
    for (_, (group, bars)) in shown {
        let x = if apart { scale(&mut bars.iter().copied()) } else { scale(&mut chart.bars.iter()) };
        let names: Vec<&str> = bars.iter().map(|bar| &*bar.row).collect();
        let panel = sheet.rows(group, (x, &chart.axis.label), &names, ROW);
        for (row, bar) in bars.iter().enumerate() {
            one(sheet, &panel, bar, (Sheet::row_top(&panel, row, ROW), chart.axis.signed), looks);
        }
    }
    if apart && groups.len() > 1 {
        sheet.remark("Each panel has an axis of its own: the values differ more than tenfold.");
    }
    if chart.bars.iter().any(|bar| bar.published.is_some()) {
        sheet.remark("Diamond: published.");
    }
}

/// Values that the axis must reach.
fn values<'a>(chart: &'a Bars, bar: &'a Bar) -> impl Iterator<Item = f64> {
    let ours = bar.ours.iter().flat_map(|mean| [Some(mean.mean), mean.high, mean.low.filter(|_| chart.axis.signed)]);
    ours.flatten().chain(bar.published)
}

fn one(sheet: &mut Sheet, panel: &Panel, bar: &Bar, (top, signed): (f64, bool), looks: &Looks) {
    let (colour, style) = looks.of(&bar.row);
    let middle = top + ROW / 2.0;
    if let Some(mean) = bar.ours {
        let (from, to) = (panel.across(0.0), panel.across(mean.mean));
        let points = rectangle((from, top + 2.0), (to, top + ROW - 2.0));
        let opacity = if style.filled { 1.0 } else { super::PALE };
        sheet.add(Mark::Area { points, fill: colour, opacity, pen: Some(Pen::plain(colour, 0.8)) });
        if let (Some(low), Some(high)) = (mean.low, mean.high) {
            let low = if signed { low } else { low.max(0.0) };
            whisker(sheet, (panel.across(low), panel.across(high)), middle);
        }
    }
    if let Some(published) = bar.published {
        sheet.published((panel.across(published), middle), WHITE);
    }
}

fn rectangle((left, top): Point, (right, bottom): Point) -> Vec<Point> {
    vec![(left, top), (right, top), (right, bottom), (left, bottom)]
}

/// An interval in ink, within white, which every colour lets see.
fn whisker(sheet: &mut Sheet, (low, high): (f64, f64), y: f64) {
    for pen in [Pen::plain(WHITE, 2.4), Pen::plain(INK, 1.0)] {
        let half = if pen.colour == WHITE { 2.9 } else { 2.2 };
        sheet.add(Mark::Line { points: vec![(low, y), (high, y)], pen });
        for end in [low, high] {
            sheet.add(Mark::Line { points: vec![(end, y - half), (end, y + half)], pen });
        }
    }
}
