//! The charts of an inference.

use crate::chart::{Axis, Bar, Bars, Chart, Mean};
use crate::value::Figure;
use anabranch_reproduce::infer::{Inference, Posterior};

/// Where the kept testbeds are in each prior, the most fixed first.
pub fn posterior(inference: &Inference) -> Option<Figure> {
    let mut all: Vec<&Posterior> = inference.unknowns.iter().collect();
    all.sort_by(|a, b| b.fixed.total_cmp(&a.fixed));
    let bars = all.into_iter().flat_map(|unknown| {
        let n = inference.extent.keep as usize;
        let rows = cells(unknown).into_iter().zip(&unknown.shares);
        rows.map(move |(row, share)| Bar {
            group: unknown.unknown.clone(),
            row,
            ours: Some(Mean { mean: share * 100.0, low: None, high: None, n }),
            // The prior's share of each cell.
            published: Some(100.0 / unknown.shares.len() as f64),
        })
    });
    let bars: Vec<Bar> = bars.collect();
    (!bars.is_empty()).then(|| Figure {
        title: "What the baselines fix".into(),
        caption: "Share of the kept testbeds with each value. The mark is the share before: an unknown whose bars end at the marks is \
                  as open as it was."
            .into(),
        group: String::new(),
        folded: false,
        chart: Chart::Bars(Bars { axis: Axis::linear("share of the kept testbeds, %"), bars }),
    })
}

/// The values of a list, or the tenths of a range: `5ms–10ms`.
fn cells(unknown: &Posterior) -> Vec<String> {
    match unknown.is_list {
        true => unknown.values.clone(),
        false => unknown.values.windows(2).map(|ends| format!("{}–{}", ends[0], ends[1])).collect(),
    }
}

/// The baselines: published, over all draws, over the kept ones, in the named readings; each as a multiple of the published value.
pub fn map(inference: &Inference) -> Option<Figure> {
    let mut bars = Vec::new();
    for anchor in &inference.anchors {
        let spreads = [("all draws", anchor.all), ("kept", anchor.kept)];
        bars.extend(spreads.into_iter().filter_map(|(row, spread)| {
            let (spread, of) = (spread?, anchor.published);
            let (low, high) = (Some(spread.low / of), Some(spread.high / of));
            let n = inference.extent.keep as usize;
            let ours = Some(Mean { mean: spread.median / of, low, high, n });
            Some(Bar { group: group(anchor), row: row.into(), ours, published: Some(1.0) })
        }));
        let own: Vec<&str> =
            inference.anchors.iter().filter(|other| other.item == anchor.item).map(|a| a.text.as_str()).collect();
        let place = own.iter().position(|text| *text == anchor.text).unwrap_or(0);
        bars.extend(inference.readings.iter().filter(|reading| reading.item == anchor.item).filter_map(|reading| {
            let mean = reading.ours.get(place).copied()?? / anchor.published;
            let ours = Some(Mean { mean, low: None, high: None, n: 1 });
            Some(Bar { group: group(anchor), row: reading.name.clone(), ours, published: Some(1.0) })
        }));
    }
    (!bars.is_empty()).then(|| Figure {
        title: "Baselines: all draws, kept draws, named readings".into(),
        caption: "Each as a multiple of the published value, which the mark shows; median and central 95 %.".into(),
        group: String::new(),
        folded: false,
        chart: Chart::Bars(Bars { axis: Axis::linear("multiple of the published value"), bars }),
    })
}

fn group(anchor: &anabranch_reproduce::infer::Drawn) -> String {
    format!("{}: {}", anchor.item, anchor.text)
}
