//! Scores, ties, standings, choices and the room, by hand.

use super::*;
use anabranch_run::{RunOutcome, RunRecord, Values};

/// A run of a transfer: goodput in Mbit/s; the oracle of all paths has 20, of path a 10, of b 10.
fn run(cell: [&str; 3], scheduler: &str, seed: u64, mbit: f64) -> RunRecord {
    let ratios = match scheduler.starts_with("single:") {
        true => vec![("oracle_ratio", mbit / 10.0), ("oracle_ratio_of_all", mbit / 20.0)],
        false => vec![("oracle_ratio", mbit / 20.0)],
    };
    let metrics: Values =
        ratios.into_iter().chain([("goodput_bps", mbit * 1e6)]).map(|(k, v)| (k.to_owned(), v)).collect();
    let outcome = RunOutcome { metrics, finished: true, ..RunOutcome::default() };
    let [paths, kind, traffic] = cell;
    let values = [(PATHS, paths), (KIND, kind), (PART, "basic"), (TRAFFIC, traffic)];
    let cell = values.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    RunRecord::new(scheduler, "cubic", seed, cell, outcome)
}

fn cell_of(cell: [&str; 3], rows: &[(&str, [f64; 3])]) -> CellScore {
    let row = |(name, speeds): &(&str, [f64; 3])| {
        (1..).zip(speeds).map(|(seed, mbit)| run(cell, name, seed, *mbit)).collect::<Vec<_>>()
    };
    score::cell(&rows.iter().map(row).collect::<Vec<_>>(), true).unwrap()
}

const TWO: [&str; 3] = ["two", "near/far", "bulk"];
const ROWS: [(&str, [f64; 3]); 5] = [
    ("good", [16.0, 17.0, 18.0]),
    ("same", [16.0, 17.0, 18.0]),
    ("bad", [4.0, 5.0, 5.9]),
    ("single:a", [6.0, 7.0, 8.0]),
    ("single:b", [5.0, 9.0, 4.0]),
];

fn frontier(rows: &[(&str, [f64; 3])]) -> Frontier {
    Frontier::new("cubic", vec![cell_of(TWO, rows)])
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn standings_by_hand() {
    let frontier = frontier(&ROWS);
    let of = |name: &str| frontier.standings.iter().find(|s| s.scheduler == name).unwrap();
    let order: Vec<&str> = frontier.standings.iter().map(|s| s.scheduler.as_str()).collect();
    assert_eq!(order, ["good", "same", "single:best", "bad"]);
    let good = of("good");
    assert!(near(good.ratio.mean, 0.85) && good.ratio.n == 3);
    // t(0.975, 2) = 4.302653 with a deviation of 0.05.
    let half = 4.302_653 * 0.05 / 3f64.sqrt();
    assert!((good.ratio.ci95_high.unwrap() - 0.85 - half).abs() < 1e-6);
    // The two that tie share the first two places.
    assert_eq!((good.rank, of("same").rank, of("bad").rank), (1.5, 1.5, 3.0));
    assert_eq!((good.last, of("bad").last, of("single:best").last), (0, 1, 0));
    // Slower than path a by 2, 2 and 2.1 Mbit/s.
    assert_eq!((good.slower, of("bad").slower), (0, 1));
    // The best path alone, against the oracle of both paths; 7 of the 17 Mbit/s of the best scheduler.
    assert!(near(of("single:best").ratio.mean, 0.35) && near(of("single:best").loss.mean, 10.0 / 17.0));
    assert!(near(of("bad").loss.mean, 1.0 - 14.9 / 51.0));
    let cell = &frontier.cells[0];
    assert_eq!(
        (cell.best_single.as_str(), &cell.paths[..], &cell.kind[..], &cell.part[..]),
        ("a", "two", "near/far", "basic")
    );
    assert!(near(cell.entries[0].against_single, (16.0 / 6.0 + 17.0 / 7.0 + 18.0 / 8.0) / 3.0));
    assert_eq!(frontier.leader().unwrap().scheduler, "good");
}

#[test]
fn what_knows_the_true_rates_has_no_place() {
    let known = ("known-rates+good", [19.0, 19.5, 20.0]);
    let rows: Vec<_> = ROWS[..1].iter().chain([&known]).chain(&ROWS[1..]).copied().collect();
    let (with, without) = (frontier(&rows), frontier(&ROWS));
    let (cell, standings) = (&with.cells[0], &with.standings);
    let own = standings.iter().find(|standing| standing.scheduler == known.0).unwrap();
    assert!(near(own.ratio.mean, 0.975) && own.loss.mean < 0.0 && !own.is_placed());
    assert_eq!((cell.best(), with.leader().unwrap().scheduler.as_str()), (without.cells[0].best(), "good"));
    assert_eq!(with.advice, without.advice);
    assert_eq!(portfolio(&with.cells, 3), portfolio(&without.cells, 3));
    let others: Vec<&Standing> = standings.iter().filter(|standing| standing.scheduler != known.0).collect();
    assert_eq!(others, without.standings.iter().collect::<Vec<_>>());
    assert_eq!(cell.entries.last().unwrap().scheduler, BEST_SINGLE);
}

#[test]
fn what_options_cost_is_not_slower() {
    // Multipath TCP's options take 1.9 % of a path.
    let rows = |of: f64| [("near", [6.0, 7.0, 8.0].map(|mbit| mbit * of)), ROWS[3]];
    let slower = |of| frontier(&rows(of)).standings.iter().map(|standing| standing.slower).sum::<usize>();
    assert_eq!((slower(1452.0 / 1480.0), slower(0.97)), (0, 1));
}

#[test]
fn slower_stands_among_all_schedulers_of_the_cell_or_not_at_all() {
    let luck = |by: [f64; 3]| [6.0 + by[0], 7.0 + by[1], 8.0 + by[2]];
    // t = 5.05 with two degrees of freedom: p = 0.037 alone, 0.074 of two.
    let own = luck([-0.5, -1.0, -0.7]);
    let slower = |rows: &[(&str, [f64; 3])]| frontier(rows).standings.iter().map(|one| one.slower).sum::<usize>();
    assert_eq!(slower(&[("one", own), ROWS[3]]), 1);
    assert_eq!(slower(&[("one", own), ("other", own), ROWS[3]]), 0);
    // One random run each shows nothing; without randomness it shows all.
    let single = |mbit: f64, name| vec![run(TWO, name, 1, mbit)];
    let once = |random| score::cell(&[single(5.0, "one"), single(6.0, "single:a")], random).unwrap().entries[0].slower;
    assert_eq!((once(true), once(false)), (false, true));
}

#[test]
fn where_all_are_alike_none_is_last() {
    let frontier = frontier(&[ROWS[0], ROWS[1], ROWS[3]]);
    assert!(frontier.cells[0].all_alike() && frontier.standings.iter().all(|standing| standing.last == 0));
    assert!(frontier.advice[0].all_alike() && frontier.advice[0].best == ["good", "same"]);
}

#[test]
fn ties_are_what_is_too_small_or_luck() {
    let cell = cell_of(
        TWO,
        &[
            // 17.0, 16.95, 16.9, 16.5, 16.8: the second is 0.3 % lower.
            ("first", [16.0, 17.0, 18.0]),
            ("close", [15.95, 16.95, 17.95]),
            // 0.6 % less, with almost no spread of the difference.
            ("behind", [15.9, 16.899, 17.901]),
            // 3 % less, but better with one of the seeds: p = 0.5.
            ("lucky", [18.0, 15.5, 16.0]),
            ("last", [8.0, 8.5, 9.0]),
            ("tail", [8.0, 8.52, 9.0]),
            ROWS[3],
        ],
    );
    let of = |name: &str| {
        let entry = cell.entry(name).unwrap();
        (entry.rank, entry.tier, entry.last)
    };
    // Ties with `close` and `lucky`, beats three.
    assert_eq!(of("first"), (1.0 + 0.5 * 2.0, 1, false));
    // Ties with all but the last two: `behind` is only 0.3 % lower.
    assert_eq!(of("close"), (1.0 + 0.5 * 3.0, 1, false));
    assert_eq!(of("behind"), (1.0 + 1.0 + 0.5 * 2.0, 2, false));
    assert_eq!(of("lucky"), (1.0 + 0.5 * 3.0, 1, false));
    assert_eq!((of("last"), of("tail")), ((5.5, 3, true), (5.5, 3, true)));
    let names: Vec<&str> = cell.tier(1).iter().map(|entry| entry.scheduler.as_str()).collect();
    assert_eq!(names, ["first", "close", "lucky"]);
    assert!(!cell.all_alike());
    // For every winner, ranks sum to 1 + 2 + … + 6.
    assert!(near(cell.schedulers().map(|entry| entry.rank).sum(), 21.0));
}

/// Three cells: x is 0, 50 and 10 % below the best; y 20, 0 and 0 %; z is in the middle.
fn three() -> Frontier {
    let rows = |x: f64, y: f64, z: f64| [("x", [x; 3]), ("y", [y; 3]), ("z", [z; 3]), ("single:a", [6.0, 7.0, 8.0])];
    let cells = vec![
        cell_of(["one", "near/far", "bulk"], &rows(10.0, 8.0, 9.0)),
        cell_of(["one", "near/far", "frames"], &rows(5.0, 10.0, 8.0)),
        cell_of(["two", "loss", "bulk"], &rows(9.0, 10.0, 9.9)),
    ];
    Frontier::new("cubic", cells)
}

#[test]
fn losses_against_the_best_by_hand() {
    let frontier = three();
    let of = |name: &str| frontier.standings.iter().find(|s| s.scheduler == name).unwrap();
    let (x, z) = (&of("x").loss, &of("z").loss);
    assert!(near(x.mean, 0.2) && near(x.median, 0.1) && near(x.near, 1.0 / 3.0) && near(x.worst, 0.5));
    assert_eq!(x.worst_in, "one, frames");
    assert!(near(z.mean, (0.1 + 0.2 + 0.01) / 3.0) && near(z.near, 1.0 / 3.0));
    assert!(near(of("x").by_traffic["bulk"], 9.5 / 20.0) && near(of("x").by_part["basic"], 8.0 / 20.0));
    // Drawn by path sets: set one alone has a mean loss of 25 %, set two of 10 %.
    let (low, high) = x.over_sets.unwrap();
    assert!(near(low, 0.1) && near(high, 0.25), "{low} {high}");
}

#[test]
fn choices_by_kind_and_application() {
    let frontier = three();
    let choices: Vec<(&str, &str, &[String])> =
        frontier.advice.iter().map(|a| (a.kind.as_str(), a.traffic.as_str(), &a.best[..])).collect();
    let [x, y] = ["x", "y"].map(|name| [name.to_owned()]);
    assert_eq!(choices, [("near/far", "bulk", &x[..]), ("near/far", "frames", &y[..]), ("loss", "bulk", &y[..])]);
    assert!(near(frontier.advice[0].losses["y"], 0.2) && near(frontier.advice[2].losses["single:best"], 0.3));
}

#[test]
fn a_portfolio_takes_what_helps_most() {
    // y is 20 % below the best in one cell of three, x 60 % in sum, z 31 %; x and y together always have the best.
    let chosen = portfolio(&three().cells, 5);
    let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["y", "x", "z"]);
    assert!(near(chosen[0].1, 0.2 / 3.0) && near(chosen[1].1, 0.0));
}

const PATHS_IN_ORDER: &str = r#"
    [[path]]
    name = "a"
    rate = "8mbit"
    delay = "10ms"
    [[path]]
    name = "b"
    rate = "4mbit"
    delay = "20ms"
    price = "3/GB"
    [[path]]
    name = "c"
    rate = "2mbit"
    delay = "30ms"
    backup = true
    [[cross]]
    path = "b"
    kind = "udp"
    rate = "1mbit"
    [[timeline]]
    at = "1s"
    set = "path.c.rate"
    value = "3mbit"
    [[traffic]]
    kind = "bulk"
    size = 1000
"#;

#[test]
fn another_path_comes_first_with_all_that_is_its_own() {
    let scenario = anabranch_scenario::Document::parse("test", PATHS_IN_ORDER).unwrap().cells.remove(0).1;
    assert_eq!(with_first(&scenario, 0), scenario);
    let moved = with_first(&scenario, 2);
    let names: Vec<&str> = moved.topology.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(
        (names, moved.paths.iter().map(|path| path.backup).collect::<Vec<_>>(), moved.cross[0].over.clone()),
        (vec!["c", "a", "b"], vec![true, false, false], anabranch_scenario::Over::Path(2))
    );
    assert!(moved.paths[2].policy.price > 0.0 && moved.paths[1].policy.price == 0.0);
    let changed = moved.network_changes().map(|(_, change)| change).next().unwrap();
    assert!(matches!(changed, anabranch_network::Change::Rate(anabranch_network::Place::Path(0), ..)), "{changed:?}");
    // Back again.
    assert_eq!(with_first(&with_first(&moved, 2), 2), scenario);
    assert_eq!(with_first(&with_first(&scenario, 1), 1), scenario);
}
