//! The contents of `claims.toml`, and the verdicts of runs.

mod common;

use anabranch_reproduce::{Judged, Mistake, Verdict, judge, read};
use anabranch_run::RunRecord;
use common::{HEAD, record};

/// Runs of each row, its values by seed; `x` is the sweep's key.
fn runs(x: &str, rows: &[(&str, &[f64])]) -> Vec<RunRecord> {
    let of_row = |(row, values): &(&str, &[f64])| -> Vec<RunRecord> {
        values.iter().enumerate().map(|(seed, value)| record(row, seed, Some(x), *value)).collect()
    };
    rows.iter().flat_map(of_row).collect()
}

fn judged(claim: &str, runs: &[RunRecord]) -> Judged {
    let text = format!("{HEAD}[[item.claim]]\ntext = \"c\"\nmetric = \"goodput_bps\"\n{claim}\n");
    let paper = read(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let item = &paper.items[0];
    judge(&item.claims, runs, &item.rows, &[]).remove(0)
}

fn mistakes(claim: &str) -> Vec<(String, String)> {
    let text = format!("{HEAD}{claim}\n");
    let told = |Mistake { at, message, help }: Mistake| {
        (text[at].to_owned(), format!("{message}; {}", help.unwrap_or_default()))
    };
    read(&text).expect_err("it is wrong").into_iter().map(told).collect()
}

const TEN: [f64; 10] = [10.0, 11.0, 9.0, 10.5, 9.5, 10.2, 9.8, 10.4, 9.6, 10.0];

fn times(factor: f64) -> Vec<f64> {
    TEN.iter().enumerate().map(|(n, v)| v * factor + 0.01 * n as f64).collect()
}

#[test]
fn a_change_reproduces_within_its_band_and_in_its_direction_alone_beside_it() {
    let runs = runs("1", &[("minrtt", &TEN), ("blest+or", &times(1.12)), ("otias", &times(0.8))]);
    let change = |rest: &str| judged(&format!("of = \"blest+or\"\nagainst = \"minrtt\"\n{rest}"), &runs);
    let inside = change("published = 10\nband = [5, 20]");
    assert_eq!((inside.verdict, inside.published.as_str()), (Verdict::Reproduces, "+10 %"));
    let estimate = inside.estimate.unwrap();
    assert!((estimate.mean - 12.45).abs() < 0.01 && estimate.n == 10, "{estimate:?}");
    assert!(inside.p.unwrap() < 0.01 && inside.ours.starts_with("+12.5 ["), "{inside:?}");
    assert_eq!(change("published = 40\nband = [20, 60]").verdict, Verdict::DirectionOnly);
    assert_eq!(change("published = -10\nband = [-20, -5]").verdict, Verdict::Differs);
    // The band has no magnitude.
    assert_eq!(change("band = [0, inf]").verdict, Verdict::Reproduces);
    assert_eq!(change("band = [-inf, 0]").verdict, Verdict::Differs);
    assert_eq!(change("published = 0\nband = [-5, 5]").verdict, Verdict::Differs);
    assert_eq!(change("published = 0\nband = [-15, 15]").verdict, Verdict::Reproduces);
}

#[test]
fn a_difference_that_may_be_luck_is_none() {
    let uncertain: Vec<f64> = TEN.iter().enumerate().map(|(n, v)| if n % 2 == 0 { v * 1.4 } else { v * 0.7 }).collect();
    let runs = runs("1", &[("minrtt", &TEN), ("otias", &uncertain), ("blest+or", &TEN)]);
    let judged = judged("of = \"otias\"\nagainst = \"minrtt\"\nband = [0, inf]", &runs);
    assert!(judged.estimate.unwrap().mean > 0.0);
    assert_eq!(judged.verdict, Verdict::Differs);
}

#[test]
fn a_value_is_held_against_its_band_in_the_published_unit() {
    let bits: Vec<f64> = TEN.iter().map(|v| v * 1e6).collect();
    let runs = runs("1", &[("minrtt", &bits)]);
    let value = |rest: &str| judged(&format!("value = \"minrtt\"\npublished = 9\nunit = \"Mbit/s\"\n{rest}"), &runs);
    let near = value("band = [8, 11]");
    assert_eq!((near.verdict, near.published.as_str()), (Verdict::Reproduces, "9 Mbit/s"));
    assert!(near.ours.starts_with("10.0") || near.ours.starts_with("10.00"), "{}", near.ours);
    assert_eq!(value("band = [8, 9.5]").verdict, Verdict::Differs);
    // Nothing says how near is near.
    assert_eq!(value("").verdict, Verdict::NotSpecified);
    let open = value("band = [8, 11]\nopen = \"the number of flows\"");
    assert_eq!((open.verdict, open.reason.as_deref()), (Verdict::NotSpecified, Some("the number of flows")));
}

#[test]
fn an_order_holds_as_sure_as_the_seeds_say() {
    let mut all = runs("1", &[("minrtt", &TEN), ("blest+or", &times(1.3)), ("otias", &times(1.1))]);
    all.extend(runs("2", &[("minrtt", &TEN), ("blest+or", &times(1.2)), ("otias", &times(1.15))]));
    let order = |rows: &str, best: &str| judged(&format!("order = {rows}\nbest = \"{best}\""), &all);
    assert_eq!(order(r#"["blest+or", "otias", "minrtt"]"#, "most").verdict, Verdict::Reproduces);
    assert_eq!(order(r#"["minrtt", "otias", "blest+or"]"#, "least").verdict, Verdict::Reproduces);
    let wrong = order(r#"["otias", "blest+or", "minrtt"]"#, "most");
    assert_eq!(wrong.verdict, Verdict::Differs);
    let told = "blest+or, otias, minrtt (2 of 3 pairs as published, the whole order in 0 % of resamples, n = 10)";
    assert_eq!(wrong.ours, told);
    let pairs: Vec<_> = wrong.pairs.iter().map(|pair| (&*pair.better, &*pair.worse, pair.agrees())).collect();
    assert_eq!(pairs, [("otias", "blest+or", false), ("otias", "minrtt", true), ("blest+or", "minrtt", true)]);
}

#[test]
fn the_best_and_the_worst_alone_are_the_direction_of_an_order() {
    let text = HEAD.replace("\"otias\"]", "\"otias\", \"daps\"]");
    let noisy: Vec<f64> = TEN.iter().enumerate().map(|(n, v)| v + if n % 2 == 0 { 0.6 } else { -0.5 }).collect();
    let runs = runs("1", &[("minrtt", &TEN), ("blest+or", &times(2.0)), ("otias", &noisy), ("daps", &times(0.5))]);
    let verdict = |order: &str| {
        let claim =
            format!("{text}[[item.claim]]\ntext = \"c\"\nmetric = \"goodput_bps\"\nbest = \"most\"\norder = {order}\n");
        let item = read(&claim).unwrap().items.remove(0);
        judge(&item.claims, &runs, &item.rows, &[]).remove(0).verdict
    };
    // The difference of minrtt and otias is not significant.
    assert_eq!(verdict(r#"["blest+or", "minrtt", "otias", "daps"]"#), Verdict::DirectionOnly);
    assert_eq!(verdict(r#"["blest+or", "minrtt", "daps", "otias"]"#), Verdict::Differs);
    assert_eq!(verdict(r#"["blest+or", "minrtt", "daps"]"#), Verdict::Reproduces);
}

#[test]
fn a_ratio_of_two_metrics_is_one_of_each_run() {
    let mut all = runs("1", &[("minrtt", &TEN), ("otias", &times(2.0))]);
    for run in &mut all {
        let seconds = if run.scheduler == "otias" { 4.0 } else { 1.0 + run.seed as f64 };
        run.metrics.insert("completion_s".into(), seconds * run.metrics["goodput_bps"]);
    }
    let text = |metric: &str, rest: &str| format!("[[item.claim]]\ntext = \"c\"\nmetric = \"{metric}\"\n{rest}\n");
    let judged = |rest: &str| {
        let item = read(&format!("{HEAD}{}", text("completion_s / goodput_bps", rest))).unwrap().items.remove(0);
        judge(&item.claims, &all, &item.rows, &[]).remove(0)
    };
    // Of each run, then averaged: 1 to 10.
    let value = judged("value = \"minrtt\"\npublished = 5.5\nband = [5.499, 5.501]");
    assert_eq!((value.verdict, value.estimate.unwrap().n), (Verdict::Reproduces, 10));
    assert_eq!(judged("value = \"otias\"\npublished = 4\nband = [3.999, 4.001]").verdict, Verdict::Reproduces);
    let unknown = mistakes(&text("completion_s / goodputbps", "value = \"otias\"\npublished = 4"));
    assert!(unknown[0].1.contains("did you mean `goodput_bps`?"), "{unknown:?}");
    for run in &mut all {
        run.metrics.insert("goodput_bps".into(), 0.0);
    }
    let item =
        read(&format!("{HEAD}{}", text("completion_s / goodput_bps", "value = \"otias\"\npublished = 4"))).unwrap();
    let nothing = judge(&item.items[0].claims, &all, &item.items[0].rows, &[]).remove(0);
    assert_eq!(nothing.reason.as_deref(), Some("no run of otias has completion_s / goodput_bps"));
}

#[test]
fn a_side_may_stand_in_another_cell() {
    let mut all = runs("64KB", &[("minrtt", &TEN)]);
    all.extend(runs("100KB", &[("minrtt", &times(2.0))]));
    let claim = "of = { row = \"minrtt\", at = { x = \"100KB\" } }\nagainst = { row = \"minrtt\", at = { x = \"64KB\" } }\n\
                 published = 100\nband = [50, 150]";
    assert_eq!(judged(claim, &all).verdict, Verdict::Reproduces);
    // Without its cell it is not said which is meant.
    let vague = judged("value = \"minrtt\"\npublished = 10\nband = [1, 20]", &all);
    assert_eq!((vague.verdict, vague.reason.as_deref()), (Verdict::Differs, Some("2 cells are meant, not one")));
}

#[test]
fn gains_are_compared_seed_by_seed() {
    let runs = runs("1", &[("minrtt", &TEN), ("blest+or", &times(1.5)), ("otias", &times(1.2))]);
    let more = |of: &str, against: &str| {
        let side = |row: &str| format!("{{ row = \"{row}\", per = \"minrtt\" }}");
        judged(&format!("of = {}\nagainst = {}\nband = [0, inf]", side(of), side(against)), &runs)
    };
    let judged_so = more("blest+or", "otias");
    assert_eq!(judged_so.verdict, Verdict::Reproduces);
    assert!((judged_so.estimate.unwrap().mean - 25.0).abs() < 0.5, "{judged_so:?}");
    assert_eq!(more("otias", "blest+or").verdict, Verdict::Differs);
    // As a multiple of itself it is one, of which no seed differs.
    let one = judged("value = { row = \"otias\", per = \"otias\" }\npublished = 1\nband = [1, 1]", &runs);
    assert_eq!(one.verdict, Verdict::Reproduces);
    let (_, told) = mistakes(
        "[[item.claim]]\ntext = \"c\"\nmetric = \"goodput_bps\"\nvalue = { row = \"otias\", per = \"minrt\" }\npublished = 1",
    )
    .remove(0);
    assert!(told.contains("did you mean `minrtt`?"), "{told}");
}

#[test]
fn what_is_missing_is_said_and_does_not_reproduce() {
    let runs = runs("1", &[("minrtt", &TEN)]);
    let judged = judged("of = \"otias\"\nagainst = \"minrtt\"\nband = [0, inf]", &runs);
    assert_eq!((judged.verdict, judged.ours.as_str()), (Verdict::Differs, "—"));
    assert_eq!(judged.reason.as_deref(), Some("no run of otias has goodput_bps"));
}

#[test]
fn a_cell_that_was_left_out_is_not_judged() {
    let runs = runs("64KB", &[("minrtt", &TEN), ("otias", &times(1.1))]);
    for claim in [
        "value = \"minrtt\"\npublished = 1\nband = [0, 2]",
        "of = \"otias\"\nagainst = \"minrtt\"\nband = [0, inf]",
        "order = [\"otias\", \"minrtt\"]\nbest = \"most\"",
    ] {
        let judged = judged(&format!("at = {{ x = \"100KB\" }}\n{claim}"), &runs);
        assert_eq!((judged.verdict, judged.reason), (Verdict::NotRun, None), "{claim}");
    }
}

#[test]
fn a_difference_from_nothing_is_said_to_be_none() {
    let runs = runs("1", &[("minrtt", &[0.0; 3]), ("otias", &[0.0; 3]), ("blest+or", &[1.0, 2.0, 3.0])]);
    let of = |row: &str| judged(&format!("of = \"{row}\"\nagainst = \"minrtt\"\nband = [-100, 0]"), &runs);
    assert_eq!((of("otias").verdict, of("otias").reason.as_deref()), (Verdict::Differs, Some("both are zero")));
    assert_eq!(of("blest+or").reason.as_deref(), Some("it is held against zero"));
}

#[test]
fn rows_that_do_the_same_are_told_to_tie() {
    let runs = runs("1", &[("minrtt", &TEN), ("otias", &TEN), ("blest+or", &times(1.2))]);
    let judged = judged("order = [\"blest+or\", \"minrtt\", \"otias\"]\nbest = \"most\"", &runs);
    assert!(judged.ours.starts_with("blest+or, minrtt = otias (2 of 3 pairs"), "{}", judged.ours);
    assert_eq!(judged.verdict, Verdict::Differs);
}

#[test]
fn mistakes_point_at_their_token_with_the_nearest_word() {
    let claim = |rest: &str| format!("[[item.claim]]\ntext = \"c\"\n{rest}");
    let one = |rest: &str| {
        let all = mistakes(&claim(rest));
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    };
    let (token, told) = one("metric = \"goodputbps\"\nvalue = \"minrtt\"\npublished = 1");
    assert!(token.contains("goodputbps") && told.contains("did you mean `goodput_bps`?"), "{token} {told}");
    let (token, told) = one("metric = \"goodput_bps\"\nvalue = \"minrt\"\npublished = 1");
    assert!(token.contains("minrt") && told.contains("did you mean `minrtt`?"), "{token} {told}");
    let (_, told) = one("metric = \"goodput_bps\"\nvalue = \"minrtt\"");
    assert!(told.contains("needs `published`"), "{told}");
    let (_, told) = one("metric = \"goodput_bps\"\nof = \"minrtt\"\nagainst = \"otias\"\nband = [3, 2]");
    assert!(told.contains("empty"), "{told}");
    let (token, told) = one("metric = \"goodput_bps\"\nvalue = \"minrtt\"\npublished = 1\nunit = \"Mbits\"");
    assert!(token.contains("Mbits") && told.contains("Mbit/s"), "{token} {told}");
    let (_, told) = one("metric = \"goodput_bps\"\nof = \"minrtt\"");
    assert!(told.contains("a value, a change or an order"), "{told}");
    let (token, told) = one("metric = \"goodput_bps\"\nvalu = \"minrtt\"");
    assert!(token.contains("valu") && told.contains("unknown field"), "{token} {told}");
}

#[test]
fn a_band_without_end_survives_json() {
    let runs = runs("1", &[("minrtt", &TEN), ("otias", &times(1.1))]);
    let ours = judged("of = 'otias'\nagainst = 'minrtt'\nband = [0, inf]", &runs);
    assert_eq!((ours.verdict, ours.band), (Verdict::Reproduces, Some((0.0, f64::INFINITY))));
    let json = serde_json::to_string(&ours).unwrap();
    assert_eq!(serde_json::from_str::<Judged>(&json).unwrap(), ours);
}

const MODEL: &str = "model = { name = 'increment-efficiency', set = { beta = 2 }, column = 'efficiency' }";

#[test]
fn an_equation_is_held_against_the_number_that_it_is_said_to_give() {
    let of = |gamma: u32, band: &str| {
        let model = format!(
            "{{ name = 'increment-efficiency', set = {{ beta = 2, gamma = {gamma} }}, column = 'efficiency' }}"
        );
        judged(&format!("model = {model}\npublished = 0.65\nband = {band}"), &[])
    };
    let near = of(8, "[0.645, 0.655]");
    assert_eq!((near.verdict, near.ours.as_str()), (Verdict::Differs, "0.640, by the equation"));
    assert_eq!(of(8, "[0.6, 0.7]").verdict, Verdict::Reproduces);
    let (token, told) =
        one_mistake("model = { name = 'increment-eficiency', column = 'efficiency' }\npublished = 1\nband = [0, 1]");
    assert!(token.contains("eficiency") && told.contains("did you mean `increment-efficiency`?"), "{told}");
    let (_, told) = one_mistake(&format!("{}\npublished = 1\nband = [0, 1]", MODEL.replace("beta", "betta")));
    assert!(told.contains("did you mean `beta`?"), "{told}");
    let (_, told) = one_mistake(MODEL);
    assert!(told.contains("a claim with `model` needs `published`"), "{told}");
}

fn one_mistake(claim: &str) -> (String, String) {
    mistakes(&format!("[[item.claim]]\ntext = \"c\"\nmetric = \"goodput_bps\"\n{claim}\n")).remove(0)
}

#[test]
fn means_of_cells_are_fitted_to_what_a_model_gives_for_them() {
    // Efficiency at β = 2: γ = 2, 4, 8 → 0.25, 0.444, 0.64.
    let fit = |values: [f64; 3]| {
        let mut all = Vec::new();
        for (x, value) in ["2", "4", "8"].into_iter().zip(values) {
            all.extend(runs(x, &[("minrtt", &[value, value])]));
        }
        let points = ["2", "4", "8"].map(|x| format!("{{ at = {{ x = '{x}' }}, set = {{ gamma = {x} }} }}")).join(", ");
        judged(&format!("fit = 'minrtt'\n{MODEL}\npoints = [{points}]\npublished = 1\nband = [0.9, 1]"), &all)
    };
    // On a line with it: any multiple does.
    let good = fit([25.0, 400.0 / 9.0, 64.0]);
    assert_eq!((good.verdict, good.ours.as_str()), (Verdict::Reproduces, "1.000, 3 points"));
    assert_eq!(fit([60.0, 10.0, 50.0]).verdict, Verdict::Differs);
    assert_eq!(fit([1.0, 1.0, 1.0]).reason.as_deref(), Some("one side does not vary"));
    let (_, told) = one_mistake(&format!("fit = 'minrtt'\n{MODEL}\npublished = 1\nband = [0.9, 1]"));
    assert!(told.contains("a fit needs 3 `points`"), "{told}");
}

#[test]
fn a_parameter_may_be_measured_in_the_cell() {
    let mut all = Vec::new();
    for (x, gamma) in [("a", 2.0), ("b", 4.0), ("c", 8.0)] {
        let mut of_cell = runs(x, &[("minrtt", &[1.0 / ((1.0 + 2.0 / gamma) * (1.0 + 2.0 / gamma))])]);
        of_cell[0].metrics.insert("head_start_rtt_ratio".into(), gamma);
        all.extend(of_cell);
    }
    let points = ["a", "b", "c"].map(|x| format!("{{ at = {{ x = '{x}' }} }}")).join(", ");
    let fit = judged(
        &format!(
            "fit = 'minrtt'\n{MODEL}\npoints = [{points}]\nmeasured = {{ gamma = 'head_start_rtt_ratio' }}\npublished = 1\nband = [0.999, 1]"
        ),
        &all,
    );
    assert_eq!(fit.verdict, Verdict::Reproduces, "{fit:?}");
}

#[test]
fn cycles_are_those_of_the_time_that_is_named() {
    let mut all = runs("1", &[("minrtt", &[1.0])]);
    // 2 s of anything, then teeth of 5 values at 0.5 s each.
    let tooth = [4.0, 5.0, 6.0, 7.0, 8.0];
    let values = [9.0, 1.0, 9.0, 1.0].into_iter().chain(tooth.into_iter().cycle().take(22)).map(Some).collect();
    all[0].curves.insert("lambda".into(), anabranch_run::Curve { start: 0.0, step: 0.5, values });
    let claim = |statistic: &str, published: f64| {
        let text = format!(
            "{HEAD}[[item.claim]]\ntext = \"c\"\nmetric = \"lambda[2s..60s]\"\ncycle = \"minrtt\"\nstatistic = \"{statistic}\"\npublished = {published}\nband = [{published}, {published}]\n"
        );
        let item = read(&text).unwrap().items.remove(0);
        judge(&item.claims, &all, &item.rows, &[]).remove(0).verdict
    };
    assert_eq!([claim("length", 2.5), claim("fall", 0.5)], [Verdict::Reproduces; 2]);
    assert_eq!(claim("length", 2.0), Verdict::Differs);
}

#[test]
fn variances_are_compared_by_deviations_from_the_median() {
    let wide: Vec<f64> = TEN.iter().map(|value| 100.0 + (value - 10.0) * 3.0).collect();
    let runs = runs("1", &[("minrtt", &TEN), ("otias", &wide)]);
    let spread = judged("of = 'otias'\nagainst = 'minrtt'\nspread = true\nband = [0, inf]", &runs);
    assert!((spread.estimate.unwrap().mean - 200.0).abs() < 1e-6, "{spread:?}");
    assert_eq!(spread.verdict, Verdict::Reproduces);
    // One value nearer to the median is no significant difference of variances.
    let mut nearer = TEN;
    nearer[1] -= 0.01;
    let runs = self::runs("1", &[("minrtt", &TEN), ("otias", &nearer)]);
    let spread = judged("of = 'otias'\nagainst = 'minrtt'\nspread = true\nband = [-inf, 0]", &runs);
    assert_eq!(spread.verdict, Verdict::Differs, "{spread:?}");
}

#[test]
fn a_scatter_plot_has_the_curves_of_its_models() {
    let figure = |over: &str| {
        let models = "models = [{ name = 'increment-efficiency', set = { beta = 2 }, column = 'efficiency' }]";
        let figure = format!(
            "{{ kind = 'scatter', x = 'head_start_rtt_ratio', metric = 'goodput_bps', over = '{over}', range = [2, 8], {models} }}"
        );
        read(&HEAD.replace("[[item]]", &format!("[[item]]\nfigure = [{figure}]")))
    };
    let paper = figure("gamma").unwrap();
    let anabranch_reproduce::Figure::Scatter { models, .. } = &paper.items[0].figures[0] else { panic!("{paper:?}") };
    let (name, points) = &models[0];
    assert_eq!((name.as_str(), points[0], points[100]), ("increment-efficiency (beta = 2)", (2.0, 0.25), (8.0, 0.64)));
    assert_eq!(figure("delta").unwrap_err()[0].message, "increment-efficiency takes no delta = 2");
}
