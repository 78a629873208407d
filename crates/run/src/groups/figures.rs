//! Results of groups: sums and means over their pairs, fairness, and the bound of all pairs together.

use super::cast::Cast;
use crate::job::Job;
use anabranch_metrics::{Oracle, RunMetrics, SegmentSizes, header_len, jain, mean, names, oracle_ratio};
use anabranch_units::{Direction, Instant};

/// Paths beyond which no bound is looked for: the linear program grows with their square.
const MOST_BOUND: usize = 64;

/// Means over the pairs of a group that have the metric.
const MEANS: [&str; 9] = [
    names::COMPLETION,
    names::FLOW_COMPLETION,
    names::RESPONSE,
    names::FRAME_DELAY,
    names::LATE,
    names::LATE_PER_MINUTE,
    names::QOE,
    names::STARTUP,
    names::STALL_RATIO,
];

/// The figures of a run with the metrics of each pair.
pub(crate) fn of(cast: &Cast, job: &Job, pairs: &[RunMetrics]) -> Vec<(String, f64)> {
    let goodputs: Vec<f64> = pairs.iter().map(|pair| pair.get(names::GOODPUT).unwrap_or(0.0)).collect();
    let total: f64 = goodputs.iter().sum();
    let mut figures = vec![(names::GOODPUT.to_owned(), total)];
    let completions: Option<Vec<f64>> = pairs.iter().map(|pair| pair.get(names::COMPLETION)).collect();
    let last = completions.and_then(|times| times.into_iter().reduce(f64::max));
    figures.extend(last.map(|last| (names::COMPLETION.to_owned(), last)));
    // The completion of all is the last one's, above.
    for name in &MEANS[1..] {
        figures.extend(mean_of(pairs.iter(), name).map(|mean| ((*name).to_owned(), mean)));
    }
    let bound = bound(cast, job);
    figures.extend(oracle_ratio(Some(total), bound).map(|ratio| (names::ORACLE_RATIO.to_owned(), ratio)));
    figures.extend(jain(&goodputs).map(|index| ("fairness_pairs".to_owned(), index)));
    let mut means = Vec::new();
    for (index, group) in job.scenario.groups.iter().enumerate() {
        let members = || cast.pairs.iter().zip(pairs).filter(move |(pair, _)| pair.group == index).map(|(_, own)| own);
        let own: Vec<f64> = members().map(|pair| pair.get(names::GOODPUT).unwrap_or(0.0)).collect();
        let (sum, count) = (own.iter().sum::<f64>(), own.len() as f64);
        means.push(sum / count);
        let mut add = |name: &str, value: f64| figures.push((format!("group.{}.{name}", group.name), value));
        add("goodput_bps", sum);
        add("goodput_mean_bps", sum / count);
        add("goodput_min_bps", own.iter().copied().fold(f64::INFINITY, f64::min));
        add("goodput_max_bps", own.iter().copied().fold(0.0, f64::max));
        if let Some(index) = jain(&own) {
            add("fairness", index);
        }
        for name in MEANS {
            if let Some(mean) = mean_of(members(), name) {
                add(name, mean);
            }
        }
    }
    figures.extend(jain(&means).map(|index| ("fairness_groups".to_owned(), index)));
    figures
}

/// Mean over the pairs that have the metric.
fn mean_of<'m>(pairs: impl Iterator<Item = &'m RunMetrics>, name: &str) -> Option<f64> {
    mean(&pairs.filter_map(|pair| pair.get(name)).collect::<Vec<_>>())
}

/// The most that all pairs carry together without Multipath TCP's headers: a flow on each path, bounded on every link. `None` for traffic
/// that ends, or where there are too many paths.
fn bound(cast: &Cast, job: &Job) -> Option<f64> {
    let scenario = &*job.scenario;
    let paths: Vec<usize> = cast.pairs.iter().flat_map(|pair| pair.paths.iter().copied()).collect();
    let from = Instant::ZERO + scenario.warmup;
    let until = from + scenario.duration?;
    let endless = |way: Direction| cast.pairs.iter().all(|pair| pair.fills.contains(&way));
    let [way] = *Direction::BOTH.into_iter().filter(|way| endless(*way)).collect::<Vec<_>>() else { return None };
    if paths.len() > MOST_BOUND {
        return None;
    }
    let plain = header_len(scenario.hosts.ip, scenario.settings.tcp.timestamps, None);
    let sizes = SegmentSizes { mss: scenario.settings.mss, plain, multipath: Some(plain) };
    let (topology, timeline) = cast.network();
    Oracle::new(topology, timeline, &paths, sizes, way).goodput(from, until)
}
