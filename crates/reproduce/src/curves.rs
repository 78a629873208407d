//! Curves of a row, drawn together.

use crate::figure::Figure;
use crate::outcome::MeanCurve;
use anabranch_run::{CellValues, Curve, Estimate, RunRecord};

/// The mean of each curve that the figures draw, by row and cell, in the order of the runs.
pub(crate) fn mean_curves(figures: &[Figure], runs: &[RunRecord]) -> Vec<MeanCurve> {
    let mut drawn: Vec<(&str, &CellValues, Vec<&RunRecord>)> = Vec::new();
    for run in runs {
        match drawn.iter_mut().find(|(row, cell, _)| *row == run.scheduler && **cell == run.cell) {
            Some((.., runs)) => runs.push(run),
            None => drawn.push((&run.scheduler, &run.cell, vec![run])),
        }
    }
    let mut curves = Vec::new();
    for figure in figures {
        let density = matches!(figure, Figure::Distribution { .. });
        let (Figure::Time { curve: name } | Figure::Distribution { curve: name }) = figure else { continue };
        for (row, cell, runs) in &drawn {
            let of_row: Vec<&Curve> = runs.iter().filter_map(|run| run.curves.get(name)).collect();
            if let Some((start, step, values)) = together(&of_row, density) {
                let (row, cell, name) = ((*row).to_owned(), (*cell).clone(), name.clone());
                curves.push(MeanCurve { row, cell, name, start, step, values });
            }
        }
    }
    curves
}

/// `start`, `step` and the means. Of distributions, whose ends and steps differ, all that is missing is zero, and the widest
/// step is that of all.
fn together(curves: &[&Curve], density: bool) -> Option<(f64, f64, Vec<Option<Estimate>>)> {
    let start = curves.iter().map(|curve| curve.start).reduce(f64::min)?;
    let step = curves.iter().map(|curve| curve.step).reduce(f64::max)?;
    let place = |curve: &Curve, n: usize| ((curve.start + curve.step * n as f64 - start) / step + 1e-9) as usize;
    let last = |curve: &&Curve| curve.values.len().checked_sub(1).map_or(0, |n| place(curve, n) + 1);
    let len = curves.iter().map(last).max()?;
    let missing = if density { Some(0.0) } else { None };
    let mut bins: Vec<Vec<Option<f64>>> = vec![vec![missing; curves.len()]; len];
    for (run, curve) in curves.iter().enumerate() {
        for (n, value) in curve.values.iter().enumerate() {
            let bin = &mut bins[place(curve, n)][run];
            *bin = if density { Some(bin.unwrap_or(0.0) + value.unwrap_or(0.0)) } else { *value };
        }
    }
    let mean = |bin: &Vec<Option<f64>>| Estimate::of(&bin.iter().flatten().copied().collect::<Vec<_>>());
    Some((start, step, bins.iter().map(mean).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(start: f64, step: f64, values: &[Option<f64>]) -> Curve {
        Curve { start, step, values: values.to_vec() }
    }

    fn means(curves: &[&Curve], density: bool) -> (f64, f64, Vec<Option<f64>>) {
        let (start, step, values) = together(curves, density).unwrap();
        (start, step, values.into_iter().map(|value| value.map(|value| value.mean)).collect())
    }

    #[test]
    fn times_are_averaged_over_the_runs_that_know_them() {
        let (a, b) = (curve(0.0, 0.5, &[None, Some(2.0), Some(4.0)]), curve(0.0, 0.5, &[None, Some(4.0)]));
        assert_eq!(means(&[&a, &b], false), (0.0, 0.5, vec![None, Some(3.0), Some(4.0)]));
        assert_eq!(together(&[], false), None);
    }

    #[test]
    fn distributions_may_begin_and_step_otherwise() {
        let a = curve(-2.0, 1.0, &[Some(0.25), Some(0.0), Some(0.5), Some(0.25)]);
        let b = curve(0.0, 2.0, &[Some(0.5), Some(0.5)]);
        assert_eq!(means(&[&a, &b], true), (-2.0, 2.0, vec![Some(0.125), Some(0.625), Some(0.25)]));
        assert_eq!(means(&[&a], true).2.iter().flatten().sum::<f64>(), 1.0);
    }
}
