//! The answer of a run in sentences: which scheduler has the best main metric, by how much, and what multipath gives.

use super::contest::{Entrant, Gain, gain, gains};
use super::rows::main_metric;
use crate::describe::figure;
use crate::quantity::Quantity;
use anabranch_metrics::{Better, MetricInfo, SIGNIFICANT, Verdict};
use anabranch_run::{Comparison, ResultRow, Results};
use indexmap::IndexMap;

/// Schedulers of a sweep that get a sentence of their own.
const COUNTED: usize = 6;

/// How a metric is spoken of.
struct Words {
    label: &'static str,
    /// `highest`, `lowest`.
    best: &'static str,
    /// `more`, `less`; of times `shorter`, `longer`.
    better: &'static str,
    worse: &'static str,
}

impl Words {
    fn of(info: &MetricInfo) -> Self {
        let (best, better, worse) = match (info.better, info.unit) {
            (Some(Better::Lower), "s") => ("shortest", "shorter", "longer"),
            (Some(Better::Lower), _) => ("lowest", "less", "more"),
            _ => ("highest", "more", "less"),
        };
        Self { label: info.label, best, better, worse }
    }

    /// `11 % more (± 4 %)`.
    fn difference(&self, gain: &Gain<'_>) -> String {
        let word = if gain.share > 0.0 { self.better } else { self.worse };
        format!("{} {word}{}", gain.percent(), gain.interval())
    }

    /// Before times.
    fn article(&self) -> &'static str {
        if self.best == "highest" { "" } else { "a " }
    }

    /// `11 % more goodput (± 4 %)`, `a completion time 11 % shorter (± 4 %)`.
    fn outcome(&self, gain: &Gain<'_>) -> String {
        if self.best == "highest" {
            let word = if gain.share > 0.0 { self.better } else { self.worse };
            return format!("{} {word} {}{}", gain.percent(), self.label, gain.interval());
        }
        format!("a {} {}", self.label, self.difference(gain))
    }
}

/// The sentences; none without rows of Multipath TCP.
pub fn of(results: &Results, rows: &[ResultRow<'_>]) -> Vec<String> {
    let info = main_metric(rows);
    let cells = rows.chunk_by(|a, b| a.cell == b.cell).count();
    if cells > 1 {
        return of_sweep(results, rows, info, cells);
    }
    let entrants = Entrant::all(results, rows, info);
    of_entrants(&entrants, info)
}

fn of_entrants(entrants: &[Entrant], info: &MetricInfo) -> Vec<String> {
    let is_higher_better = info.better != Some(Better::Lower);
    let order = |list: &mut Vec<&Entrant>| {
        list.sort_by(|a, b| if is_higher_better { b.mean.total_cmp(&a.mean) } else { a.mean.total_cmp(&b.mean) });
    };
    let (mut single, mut multipath): (Vec<&Entrant>, Vec<&Entrant>) =
        entrants.iter().partition(|entrant| entrant.path.is_some());
    order(&mut single);
    order(&mut multipath);
    let Some((best, others)) = multipath.split_first() else { return Vec::new() };
    let words = Words::of(info);
    let mut sentences = vec![between(best, &gains(best, others, is_higher_better), info, &words)];
    if let Some(path) = single.first() {
        sentences.extend(against_path(&multipath, path, is_higher_better, &words));
    }
    sentences
}

/// The best against the other schedulers.
fn between(best: &Entrant, gains: &[Gain<'_>], info: &MetricInfo, words: &Words) -> String {
    let Words { label, best: superlative, .. } = words;
    let (name, value) = (&best.name, value(best, info));
    if gains.is_empty() {
        return format!("{name} has a {label} of {value} ({}).", seeds(best));
    }
    if best.runs < 2 && !best.deterministic {
        let next = &gains[0].other;
        let next = format!("{} with {}", next.name, self::value(next, info));
        return format!(
            "In one run each, {name} has the {superlative} {label}, {value}, then {next}. One seed shows no difference: repeat \
             the runs."
        );
    }
    // A row between the best and one that the seeds cannot tell from it is named with them.
    let leading = gains.iter().rposition(|gain| !gain.is_sure()).map_or(0, |last| last + 1);
    let (same, worse) = gains.split_at(leading);
    if same.is_empty() {
        let margins = margins(worse, words, "with ").unwrap_or_default();
        return format!("{name} has the {superlative} {label}, {value}: {margins} ({}).", seeds(best));
    }
    let is_highest = words.best == "highest";
    let of_best = if is_highest { format!("{name} has") } else { format!("That of {name} is") };
    let margins = margins(worse, words, if is_highest { "" } else { "that of " });
    let margins = margins.map(|text| format!(" {of_best} {text}.")).unwrap_or_default();
    format!("{}.{margins}", leaders(best, same, info, words))
}

/// The best with all down to the last that the seeds cannot tell from it.
fn leaders(best: &Entrant, same: &[Gain<'_>], info: &MetricInfo, words: &Words) -> String {
    let all: Vec<&Entrant> = [best].into_iter().chain(same.iter().map(|gain| gain.other)).collect();
    let values: Vec<String> = all.iter().map(|one| value(one, info)).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let named = |is_sure: bool| -> Vec<&str> {
        same.iter().filter(|gain| gain.is_sure() == is_sure).map(|gain| &*gain.other.name).collect()
    };
    let (ties, between) = (named(false), named(true));
    let verdict = match &between[..] {
        _ if same.iter().all(|gain| gain.verdict == Verdict::Equal) => "they are equal in every run".to_owned(),
        _ if best.runs == 1 => "one seed shows no difference between them".to_owned(),
        [] if ties.len() == 1 => format!("{} show no difference between them", seeds(best)),
        [] => format!("{} show no difference between {} and any other of them", seeds(best), best.name),
        [one] => format!("{}; {one} lies between", no_difference(best, &ties)),
        _ => format!("{}; {} lie between", no_difference(best, &ties), in_list(&between)),
    };
    let names: Vec<&str> = all.iter().map(|one| &*one.name).collect();
    format!("{} have the {} {} ({}): {verdict}", in_list(&names), words.best, words.label, in_list(&values))
}

/// `20 seeds show no difference between stms and otias`.
fn no_difference(best: &Entrant, ties: &[&str]) -> String {
    format!("{} show no difference between {} and {}", seeds(best), best.name, in_list(ties))
}

/// The best against the next and the last of those that are worse, which `of` introduces after "than"; none without any.
fn margins(worse: &[Gain<'_>], words: &Words, of: &str) -> Option<String> {
    let than = |gain: &Gain<'_>, rest: &str| format!("{} than {of}{}{rest}", words.difference(gain), gain.other.name);
    match worse {
        [] => None,
        [one] => Some(than(one, "")),
        [next, .., last] => Some(format!("{}, and {}", than(next, ", the next best"), than(last, ", the worst"))),
    }
}

/// `5.92 Mbit/s`.
fn value(entrant: &Entrant, info: &MetricInfo) -> String {
    let quantity = Quantity::of(info.name, entrant.mean.abs());
    let unit = quantity.label.rsplit_once(", ").map_or("", |(_, unit)| unit);
    format!("{} {unit}", figure(round3(entrant.mean / quantity.per))).trim_end().to_owned()
}

/// The best against the best path alone, and the schedulers that do worse than it.
fn against_path(multipath: &[&Entrant], path: &Entrant, is_higher_better: bool, words: &Words) -> Option<String> {
    let best = multipath.first()?;
    let gain = gain(best, path, is_higher_better)?;
    let alone = path.path.as_deref()?;
    let name = &best.name;
    let mut text = match gain.is_sure() {
        true if gain.share > 0.0 => {
            format!("Over all paths together, {name} gives {} than the best path alone, {alone}", words.outcome(&gain))
        }
        true => format!(
            "Even {name} gives {} than the best path alone, {alone}: multipath does not pay here",
            words.outcome(&gain)
        ),
        false => {
            format!("Against the best path alone, {alone}, {} can show no gain of multipath ({name})", seeds(best))
        }
    };
    let others = multipath[1..].iter().filter_map(|other| self::gain(other, path, is_higher_better));
    let losers: Vec<Gain<'_>> = others.filter(|gain| gain.is_sure() && gain.share < 0.0).collect();
    if gain.share > 0.0 && !losers.is_empty() {
        let names: Vec<String> =
            losers.iter().map(|loser| format!("{}, {}", loser.best.name, words.difference(loser))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        text += &format!(". These are worse than {alone} alone: {}", names.join("; "));
    }
    Some(text + ".")
}

/// How often each scheduler is better and worse than the first.
fn of_sweep(results: &Results, rows: &[ResultRow<'_>], info: &MetricInfo, cells: usize) -> Vec<String> {
    let Some(reference) = rows.iter().find(|row| !row.kind().is_single()) else { return Vec::new() };
    // With several congestion controls, rows are named by both.
    let label = |c: &Comparison| match reference.name == reference.scheduler {
        true => c.a.to_string(),
        false => format!("{}, {}", c.a, c.congestion),
    };
    let is_higher_better = info.better != Some(Better::Lower);
    let mut found: IndexMap<String, Count> = IndexMap::new();
    for (comparison, verdict) in results.verdicts(info.name, reference.scheduler) {
        let is_better = (comparison.mean_diff > 0.0) == is_higher_better;
        found.entry(label(comparison)).or_default().add(verdict, is_better);
    }
    if found.is_empty() {
        return vec![format!(
            "{cells} cells of {}; there is no other scheduler to compare it with.",
            reference.scheduler
        )];
    }
    let words = Words::of(info);
    found.iter().take(COUNTED).map(|(name, count)| count.sentence(name, reference.scheduler, &words)).collect()
}

/// The cells of a sweep by the verdict on a scheduler against the reference.
#[derive(Default)]
struct Count {
    better: usize,
    worse: usize,
    equal: usize,
    /// Cells in which the seeds show no difference.
    open: usize,
    /// Better and worse in one random run each.
    once: [usize; 2],
}

impl Count {
    fn add(&mut self, verdict: Verdict, is_better: bool) {
        *match (verdict, is_better) {
            (Verdict::Differs, true) => &mut self.better,
            (Verdict::Differs, false) => &mut self.worse,
            (Verdict::Equal, _) => &mut self.equal,
            (Verdict::Open, _) => &mut self.open,
            (Verdict::Untested, _) => &mut self.once[usize::from(!is_better)],
        } += 1;
    }

    fn sentence(&self, name: &str, reference: &str, words: &Words) -> String {
        let &Self { better, worse, equal, open, once: [above, below] } = self;
        let Words { label, better: more, worse: less, .. } = words;
        let article = words.article();
        let all = better + worse + equal + open + above + below;
        let most = format!("{article}{more} {label} than {reference}");
        if open == all {
            let test = "paired t test with Holm's correction";
            return format!(
                "Between {name} and {reference} the seeds show no difference in {label} in any of {all} cells ({test})."
            );
        }
        if above + below > 0 {
            return format!(
                "In one run per cell, {name} has {most} in {} of {all} cells, {less} in {}. One seed shows no difference: repeat the runs.",
                above + better,
                below + worse
            );
        }
        let mut text = format!("{name} has {most} in {better} of {all} cells, {less} in {worse}");
        if equal > 0 {
            text += &format!("; in {equal} both are equal in every run");
        }
        if open > 0 {
            text += &format!(
                "; in the other {open} the seeds show no difference (paired t test, p < {SIGNIFICANT} after Holm's correction)"
            );
        }
        text + "."
    }
}

/// `20 seeds`.
fn seeds(entrant: &Entrant) -> String {
    match entrant.runs {
        _ if entrant.deterministic => "one run, which has nothing random".into(),
        1 => "1 seed".into(),
        n => format!("{n} seeds"),
    }
}

/// `a, b and c`.
fn in_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [firsts @ .., last] => format!("{} and {last}", firsts.join(", ")),
    }
}

/// Three digits that count.
fn round3(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let place = libm::exp10(2.0 - libm::floor(libm::log10(value.abs())));
    libm::round(value * place) / place
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_metrics::names;

    fn entrant(name: &str, values: &[f64]) -> Entrant {
        Entrant::new(name, values.iter().enumerate().map(|(seed, value)| (seed as u64, *value)).collect(), false)
    }

    fn answer(metric: &str, entrants: &[Entrant]) -> Vec<String> {
        of_entrants(entrants, MetricInfo::of_run(metric).unwrap())
    }

    #[test]
    fn the_best_is_named_with_what_it_gains() {
        let blest = entrant("blest", &[5.5e6, 5.6e6, 5.7e6, 5.6e6]);
        let minrtt = entrant("minrtt", &[5.0e6, 5.0e6, 5.2e6, 5.1e6]);
        let daps = entrant("daps", &[2.5e6, 2.9e6, 2.7e6, 3.0e6]);
        let wlan = entrant("single:wlan", &[4.5e6, 4.4e6, 4.6e6, 4.6e6]);
        let slow = entrant("single:3g", &[2.0e6, 2.0e6, 2.0e6, 2.1e6]);
        assert_eq!(
            answer(names::GOODPUT, &[minrtt, daps, blest, slow, wlan]),
            [
                "blest has the highest goodput, 5.6 Mbit/s: 10 % more than with minrtt, the next best, and 102 % more than with daps, \
                 the worst (4 seeds).",
                "Over all paths together, blest gives 24 % more goodput than the best path alone, wlan. These are worse than wlan \
                 alone: daps, 39 % less."
            ]
        );
    }

    #[test]
    fn of_enough_seeds_a_gain_has_an_interval() {
        let of = |name: &str, mean: f64, by: f64| {
            entrant(name, &(0..12).map(|seed| mean + by * f64::from(seed * seed)).collect::<Vec<_>>())
        };
        let said = answer(names::GOODPUT, &[of("blest", 5.5e6, 2e3), of("minrtt", 5.0e6, 1e3)]);
        assert_eq!(
            said,
            ["blest has the highest goodput, 5.58 Mbit/s: 11 % more (± 0.7 %) than with minrtt (12 seeds)."]
        );
    }

    #[test]
    fn what_the_seeds_cannot_show_is_not_claimed() {
        let a = entrant("a", &[5.0e6, 6.0e6, 5.1e6, 5.5e6]);
        let b = entrant("b", &[5.6e6, 5.2e6, 5.4e6, 5.3e6]);
        let path = entrant("single:wlan", &[5.2e6, 5.6e6, 5.3e6, 5.3e6]);
        let said = answer(names::GOODPUT, &[a, b, path]);
        assert!(said[0].contains("4 seeds show no difference between them"), "{said:?}");
        assert!(said[1].contains("4 seeds can show no gain of multipath"), "{said:?}");
    }

    #[test]
    fn several_that_lead_are_compared_with_the_rest() {
        let [a, b] = ["a", "b"].map(|name| entrant(name, &[0.50, 0.51, 0.52, 0.51]));
        let slow = entrant("slow", &[1.00, 1.02, 1.04, 1.02]);
        assert_eq!(
            answer(names::COMPLETION, &[a, b, slow]),
            [
                "a and b have the shortest completion time (510 ms and 510 ms): they are equal in every run. That of a is 50 % \
              shorter than that of slow."
            ]
        );
        let [a, b] = ["a", "b"].map(|name| entrant(name, &[2e6, 2.02e6, 2.04e6, 2.02e6]));
        let slow = entrant("slow", &[1e6, 1.01e6, 1.02e6, 1.01e6]);
        let said = answer(names::GOODPUT, &[a, b, slow]);
        assert!(said[0].ends_with("they are equal in every run. a has 100 % more than slow."), "{said:?}");
    }

    #[test]
    fn short_times_are_good() {
        let fast = entrant("fast", &[0.50, 0.51, 0.52, 0.51]);
        let slow = entrant("slow", &[1.00, 1.02, 1.04, 1.02]);
        let path = entrant("single:lte", &[0.40, 0.41, 0.42, 0.41]);
        assert_eq!(
            answer(names::COMPLETION, &[slow, fast, path]),
            [
                "fast has the shortest completion time, 510 ms: 50 % shorter than with slow (4 seeds).",
                "Even fast gives a completion time 24 % longer than the best path alone, lte: multipath does not pay here."
            ]
        );
    }

    #[test]
    fn one_run_shows_no_difference_unless_nothing_is_random() {
        let once = |name: &str, value, deterministic| Entrant::new(name, vec![(1, value)], deterministic);
        let said = answer(names::GOODPUT, &[once("a", 5e6, false), once("b", 4e6, false)]);
        assert!(said[0].ends_with("One seed shows no difference: repeat the runs."), "{said:?}");
        let said = answer(names::GOODPUT, &[once("a", 5e6, true), once("b", 4e6, true)]);
        assert_eq!(
            said[0],
            "a has the highest goodput, 5 Mbit/s: 25 % more than with b (one run, which has nothing random)."
        );
        let said = answer(names::GOODPUT, &[once("a", 5e6, true), once("b", 5e6, true)]);
        assert_eq!(said[0], "a and b have the highest goodput (5 Mbit/s and 5 Mbit/s): they are equal in every run.");
    }

    #[test]
    fn a_sweep_counts_the_cells_in_which_the_seeds_decide() {
        let summary = |scheduler: &str, loss: &str| {
            serde_json::json!({ "scheduler": scheduler, "congestion": "lia", "cell": { "loss": loss }, "metric": names::GOODPUT,
                "n": 5, "mean": 1.0, "median": 1.0, "p95": 1.0 })
        };
        let comparison = |loss: &str, mean_diff: f64, p: f64| {
            serde_json::json!({ "a": "blest", "b": "minrtt", "congestion": "lia", "cell": { "loss": loss }, "metric": names::GOODPUT,
                "n": 5, "mean_diff": mean_diff, "p": p })
        };
        let losses = ["1%", "2%", "3%"];
        let summaries: Vec<_> =
            losses.iter().flat_map(|loss| ["minrtt", "blest"].map(|scheduler| summary(scheduler, loss))).collect();
        let said = |comparisons: serde_json::Value| {
            let document = serde_json::json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
                "summary": summaries, "comparisons": comparisons });
            let results: Results = serde_json::from_value(document).unwrap();
            of(&results, &results.rows())
        };
        let mixed = [comparison("1%", 5.0, 0.01), comparison("2%", -5.0, 0.01), comparison("3%", 9.0, 0.2)];
        assert_eq!(
            said(mixed.to_vec().into()),
            [
                "blest has more goodput than minrtt in 1 of 3 cells, less in 1; in the other 1 the seeds show no difference \
              (paired t test, p < 0.05 after Holm's correction)."
            ]
        );
        let open = losses.map(|loss| comparison(loss, 1.0, 0.3));
        assert_eq!(
            said(open.to_vec().into()),
            [
                "Between blest and minrtt the seeds show no difference in goodput in any of 3 cells (paired t test with Holm's correction)."
            ]
        );
        // Each alone would be below 0.05.
        let many = losses.map(|loss| comparison(loss, 1.0, 0.03));
        assert!(said(many.to_vec().into())[0].starts_with("Between blest and minrtt the seeds show no difference"));
    }

    #[test]
    fn a_sweep_without_randomness_is_compared_exactly() {
        let said = |deterministic: bool, diffs: [f64; 3]| {
            let mut summary = Vec::new();
            let mut comparisons = Vec::new();
            for (cell, diff) in ["10ms", "20ms", "30ms"].into_iter().zip(diffs) {
                let cell = serde_json::json!({ "path.a.delay": cell });
                for (scheduler, mean) in [("minrtt", 18e6), ("blest", 18e6 + diff)] {
                    summary.push(serde_json::json!({ "scheduler": scheduler, "congestion": "lia", "cell": cell, "metric": names::GOODPUT,
                        "n": 1, "mean": mean, "median": mean, "p95": mean, "deterministic": deterministic }));
                }
                comparisons.push(serde_json::json!({ "a": "blest", "b": "minrtt", "congestion": "lia", "cell": cell,
                    "metric": names::GOODPUT, "n": 1, "mean_diff": diff, "p_wilcoxon": 1.0 }));
            }
            let document = serde_json::json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
                "summary": summary, "comparisons": comparisons });
            let results: Results = serde_json::from_value(document).unwrap();
            of(&results, &results.rows()).concat()
        };
        assert_eq!(
            said(true, [10.4e6, -1.0, 0.0]),
            "blest has more goodput than minrtt in 1 of 3 cells, less in 1; in 1 both are equal in every run."
        );
        assert_eq!(
            said(false, [10.4e6, -1.0, 1.0]),
            "In one run per cell, blest has more goodput than minrtt in 2 of 3 cells, less in 1. One seed shows no difference: \
             repeat the runs."
        );
    }

    #[test]
    fn whoever_lies_between_the_best_and_a_tie_is_named() {
        // minrtt is below stms in every run by nearly the same; otias is lower still, but scatters.
        let stms = entrant("stms", &[13.40e6, 13.38e6, 13.39e6, 13.40e6]);
        let minrtt = entrant("minrtt", &[13.35e6, 13.33e6, 13.341e6, 13.35e6]);
        let otias = entrant("otias", &[13.2e6, 13.5e6, 13.1e6, 13.5e6]);
        let daps = entrant("daps", &[5.0e6, 5.1e6, 5.0e6, 5.1e6]);
        let said = answer(names::GOODPUT, &[otias.clone(), daps, stms.clone(), minrtt.clone()]);
        assert!(
            said[0].starts_with(
                "stms, minrtt and otias have the highest goodput (13.4 Mbit/s, 13.3 Mbit/s and 13.3 Mbit/s): 4 seeds show no \
                 difference between stms and otias; minrtt lies between. stms has "
            ),
            "{said:?}"
        );
        let ecf = entrant("ecf", &[13.3e6, 13.5e6, 13.2e6, 13.5e6]);
        let said = answer(names::GOODPUT, &[otias, stms, ecf]);
        assert!(said[0].ends_with("4 seeds show no difference between stms and any other of them."), "{said:?}");
    }

    #[test]
    fn one_scheduler_is_told_with_its_figure() {
        let said = answer(names::FRAME_DELAY, &[entrant("minrtt", &[0.0312, 0.0318, 0.0310])]);
        assert_eq!(said, ["minrtt has a frame delay of 31.3 ms (3 seeds)."]);
        assert_eq!(answer(names::GOODPUT, &[entrant("single:wlan", &[1e6])]), Vec::<String>::new());
    }
}
