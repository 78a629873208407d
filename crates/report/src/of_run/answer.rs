//! The answer of a run in sentences: which scheduler has the best main metric, by how much, and what multipath gives.

use super::contest::{Entrant, Gain, gain, gains};
use super::over_cells;
use super::rows::Main;
use crate::describe::figure;
use crate::quantity::Quantity;
use anabranch_metrics::{Better, MetricInfo, Verdict};
use anabranch_run::{ResultRow, Results};

/// How a metric is spoken of.
pub(super) struct Words {
    /// The metric's, of an application with its name.
    pub label: String,
    /// `highest`, `lowest`.
    best: &'static str,
    /// `more`, `less`; of times `shorter`, `longer`.
    pub better: &'static str,
    pub worse: &'static str,
}

impl Words {
    pub fn of(info: &MetricInfo, label: &str) -> Self {
        let (best, better, worse) = match (info.better, info.unit) {
            (Some(Better::Lower), "s") => ("shortest", "shorter", "longer"),
            (Some(Better::Lower), _) => ("lowest", "less", "more"),
            _ => ("highest", "more", "less"),
        };
        Self { label: label.to_owned(), best, better, worse }
    }

    /// `11 % more (± 4 %)`.
    fn difference(&self, gain: &Gain<'_>) -> String {
        format!("{}{}", self.amount(gain), gain.interval())
    }

    /// `11 % more`; alone `more` against nothing.
    fn amount(&self, gain: &Gain<'_>) -> String {
        let word = if gain.share > 0.0 { self.better } else { self.worse };
        gain.percent().map_or(word.to_owned(), |percent| format!("{percent} {word}"))
    }

    /// Before times.
    pub fn article(&self) -> &'static str {
        if self.best == "highest" { "" } else { "a " }
    }

    /// `11 % more goodput (± 4 %)`, `a completion time 11 % shorter (± 4 %)`.
    fn outcome(&self, gain: &Gain<'_>) -> String {
        if self.best == "highest" {
            return format!("{} {}{}", self.amount(gain), self.label, gain.interval());
        }
        format!("a {} {}", self.label, self.difference(gain))
    }
}

/// The sentences; none without rows of Multipath TCP.
pub fn of(results: &Results, rows: &[ResultRow<'_>]) -> Vec<String> {
    let cells = rows.chunk_by(|a, b| a.cell == b.cell).count();
    let of = |main: Main| match cells {
        0 | 1 => of_entrants(&Entrant::all(results, rows, &main.name), main.info, &main.label()),
        _ => over_cells::of(results, rows, &main, cells),
    };
    Main::all(rows).into_iter().flat_map(of).collect()
}

fn of_entrants(entrants: &[Entrant], info: &MetricInfo, label: &str) -> Vec<String> {
    let is_higher_better = info.better != Some(Better::Lower);
    let order = |list: &mut Vec<&Entrant>| {
        list.sort_by(|a, b| if is_higher_better { b.mean.total_cmp(&a.mean) } else { a.mean.total_cmp(&b.mean) });
    };
    let (mut single, mut multipath): (Vec<&Entrant>, Vec<&Entrant>) =
        entrants.iter().partition(|entrant| entrant.path.is_some());
    order(&mut single);
    order(&mut multipath);
    let Some((best, others)) = multipath.split_first() else { return Vec::new() };
    let words = Words::of(info, label);
    let mut sentences = vec![between(best, &gains(best, others, is_higher_better), info, &words)];
    sentences.extend(against_path(&multipath, &single, is_higher_better, &words));
    sentences
}

/// The best against the other schedulers.
fn between(best: &Entrant, gains: &[Gain<'_>], info: &MetricInfo, words: &Words) -> String {
    let Words { label, best: superlative, .. } = words;
    let (name, value) = (&best.name, value(best, info));
    if gains.is_empty() {
        return format!("{name} has a {label} of {value} ({}).", seeds(best));
    }
    if best.overlaps || (best.runs < 2 && !best.deterministic) {
        return untested(best, gains, info, words);
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

/// Runs that no test decides about: the best, and those that are equal to it, against the next.
fn untested(best: &Entrant, gains: &[Gain<'_>], info: &MetricInfo, words: &Words) -> String {
    let equal = gains.iter().take_while(|gain| gain.verdict == Verdict::Equal).count();
    let (equal, others) = gains.split_at(equal);
    let names = [best].into_iter().chain(equal.iter().map(|gain| gain.other)).map(|one| &*one.name);
    let names = in_list(&names.collect::<Vec<_>>());
    let (verb, next) = (if equal.is_empty() { "has" } else { "have" }, others.first());
    let superlative = if next.is_some() { words.best } else { "same" };
    let next = next.map(|gain| format!(", then {} with {}", gain.other.name, value(gain.other, info)));
    let (first, last) = match best.overlaps {
        true => ("", format!("The {} share parts of a trace, so they show no difference", seeds(best))),
        false => ("In one run each, ", "One seed shows no difference: repeat the runs".to_owned()),
    };
    let (label, value, next) = (&words.label, value(best, info), next.unwrap_or_default());
    format!("{first}{names} {verb} the {superlative} {label}, {value}{next}. {last}.")
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
    let than = |equal: &[Gain<'_>], rest: &str| {
        let names: Vec<String> = equal.iter().map(|gain| format!("{of}{}", gain.other.name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("{} than {}{rest}", words.difference(&equal[0]), in_list(&names))
    };
    // In order, so that equal ones follow each other.
    let mut groups = worse.chunk_by(|a, b| a.other.mean == b.other.mean);
    let next = groups.next()?;
    Some(match groups.last() {
        None => than(next, ""),
        Some(last) => format!("{}, and {}", than(next, ", the next best"), than(last, ", the worst")),
    })
}

/// `5.92 Mbit/s`.
fn value(entrant: &Entrant, info: &MetricInfo) -> String {
    let quantity = Quantity::of(info.name, entrant.mean.abs());
    let unit = quantity.label.rsplit_once(", ").map_or("", |(_, unit)| unit);
    format!("{} {unit}", figure(round3(entrant.mean / quantity.per))).trim_end().to_owned()
}

/// The best against the best path alone, and the schedulers that do worse than it.
fn against_path(multipath: &[&Entrant], single: &[&Entrant], is_higher_better: bool, words: &Words) -> Option<String> {
    let (best, path) = (multipath.first()?, single.first()?);
    let gain = gain(best, path, is_higher_better)?;
    let equal = single.iter().take_while(|other| other.mean == path.mean);
    let alone = equal.filter_map(|equal| equal.path.as_deref()).collect::<Vec<_>>().join(" or ");
    let name = &best.name;
    let mut text = match gain.is_sure() {
        true if gain.share > 0.0 => {
            format!("Over all paths together, {name} gives {} than the best path alone, {alone}", words.outcome(&gain))
        }
        true => format!(
            "Even {name} gives {} than the best path alone, {alone}: multipath does not pay here",
            words.outcome(&gain)
        ),
        false if gain.verdict == Verdict::Equal => {
            format!("{name} has exactly the {} of the best path alone, {alone}", words.label)
        }
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
        let info = MetricInfo::of_run(metric).unwrap();
        of_entrants(entrants, info, info.label)
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
    fn equal_rows_are_named_together_and_none_of_them_is_better() {
        let once = |name: &str, value, deterministic| Entrant::new(name, vec![(1, value)], deterministic);
        let said = answer(names::GOODPUT, &["a", "b"].map(|name| once(name, 0.0, false)));
        assert_eq!(
            said,
            [
                "In one run each, a and b have the same goodput, 0 Mbit/s. One seed shows no difference: repeat the runs."
            ]
        );
        let three = [once("a", 5e6, false), once("b", 5e6, false), once("c", 4e6, false)];
        assert!(
            answer(names::GOODPUT, &three)[0]
                .starts_with("In one run each, a and b have the highest goodput, 5 Mbit/s, then c with 4 Mbit/s."),
        );
        let behind = [once("a", 4e6, true), once("b", 5e6, true), once("c", 4e6, true)];
        assert_eq!(
            answer(names::GOODPUT, &behind),
            [
                "b has the highest goodput, 5 Mbit/s: 25 % more than with a and with c (one run, which has nothing random)."
            ]
        );
        let paths = [once("a", 5e6, true), once("single:x", 5e6, true), once("single:y", 5e6, true)];
        assert_eq!(answer(names::GOODPUT, &paths)[1], "a has exactly the goodput of the best path alone, x or y.");
    }

    #[test]
    fn more_than_nothing_has_no_percent() {
        let once = |name: &str, value| Entrant::new(name, vec![(1, value)], true);
        let said = answer(names::GOODPUT, &[once("a", 0.0), once("b", 5e6), once("single:x", 0.0)]);
        assert_eq!(
            said,
            [
                "b has the highest goodput, 5 Mbit/s: more than with a (one run, which has nothing random).",
                "Over all paths together, b gives more goodput than the best path alone, x."
            ]
        );
    }

    /// The longer side of the interval alone would reach across zero.
    #[test]
    fn an_interval_that_is_longer_than_the_difference_has_both_ends() {
        let low = entrant("low", &(0..12).map(|seed| 1e6 + f64::from(seed)).collect::<Vec<_>>());
        let rare = |seed: i32| 1.0015e6 + f64::from(seed) * 1.01 + if seed % 6 == 0 { 14e3 } else { 0.0 };
        let high = entrant("high", &(0..12).map(rare).collect::<Vec<_>>());
        let said = answer(names::GOODPUT, &[low, high]);
        assert_eq!(
            said,
            ["high has the highest goodput, 1 Mbit/s: 0.4 % more (0.04 % to 2 %) than with low (12 seeds)."]
        );
    }

    #[test]
    fn runs_that_overlap_show_nothing() {
        let of = |name: &str, by: f64| {
            let values: Vec<f64> = (0..12).map(|seed| 1e6 + by + f64::from(seed * seed)).collect();
            entrant(name, &values).overlapping()
        };
        assert_eq!(
            answer(names::GOODPUT, &[of("a", 0.0), of("b", 2e5), of("single:x", 1e5)]),
            [
                "b has the highest goodput, 1.2 Mbit/s, then a with 1 Mbit/s. The 12 seeds share parts of a trace, so they show no difference.",
                "Against the best path alone, x, 12 seeds can show no gain of multipath (b)."
            ]
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
