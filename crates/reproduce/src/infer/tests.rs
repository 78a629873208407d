//! The inference where the answer is known in closed form: rate and delay from the times of two transfers.

use super::*;
use crate::item_row::ItemRow;
use crate::read::Mistake;
use anabranch_scenario::{NoFiles, Override, Source};

/// A transfer takes two round trips, for the handshake and the request, and the time of its bytes.
const TESTBED: &str = r#"
[unsaid.delay]
key   = "path.a.delay"
range = ["5ms", "100ms"]
why   = "not stated"

[unsaid.rate]
key   = "path.a.rate"
range = ["1mbit", "100mbit"]
scale = "log"
why   = "not stated"

[unsaid.era]
key  = "tcp.era"
list = ["linux-3.11", "linux-3.14"]
why  = "not stated; it moves nothing here"
"#;

fn unknowns(text: &str) -> Vec<Unknown> {
    read_unsaid(text).unwrap_or_else(|wrong| panic!("{wrong:?}")).unknowns
}

/// The number of the value of an unknown, without its unit.
fn number(unknown: &Unknown, position: f64) -> f64 {
    let text = unknown.prior.text(position);
    text.trim_end_matches(char::is_alphabetic).parse().expect("it is a number")
}

/// Seconds that each of some sizes takes.
fn times(unknowns: &[Unknown], position: &[f64], bits: &[f64]) -> Vec<Option<f64>> {
    let (delay, rate) = (number(&unknowns[0], position[0]) / 1e3, number(&unknowns[1], position[1]) * 1e6);
    bits.iter().map(|bits| Some(4.0 * delay + bits / rate)).collect()
}

/// A thousand draws with the times of these sizes.
fn library(unknowns: &[Unknown], bits: &[f64]) -> Library {
    let positions = draw(&Region::whole(unknowns.len()), 0, 1000, 7);
    Library { ours: positions.iter().map(|position| times(unknowns, position, bits)).collect(), positions }
}

/// A page and a download.
const BOTH: [f64; 2] = [1e4, 4e7];

fn posterior_of(unknowns: &[Unknown], library: &Library, published: &[f64]) -> Vec<Posterior> {
    let ruler = Ruler::of(published, library);
    let kept = Kept::nearest(&ruler.distances(library), 100).expect("some are nearer");
    posteriors(unknowns, library, 1000, &kept.draws)
}

#[test]
fn two_times_fix_rate_and_delay_and_nothing_else() {
    let unknowns = unknowns(TESTBED);
    let library = library(&unknowns, &BOTH);
    // 40 ms and 20 Mbit/s.
    let published = [0.16 + 1e4 / 20e6, 0.16 + 2.0];
    let [delay, rate, era] = &posterior_of(&unknowns, &library, &published)[..] else { panic!("three unknowns") };
    let near = |text: &str, value: f64| {
        let found: f64 = text.trim_end_matches(char::is_alphabetic).parse().expect("it is a number");
        assert!((found / value - 1.0).abs() < 0.25, "{text} is not near {value}");
    };
    near(&delay.median, 40.0);
    near(&rate.median, 20.0);
    assert!(delay.fixed > 0.5 && rate.fixed > 0.5, "{delay:?} {rate:?}");
    assert!(era.fixed < 0.05 && era.moves < MOVES, "{era:?}");
    assert!(delay.moves > 0.5 && rate.moves > 0.5, "{} {}", delay.moves, rate.moves);
}

/// A page alone, whose time is 4 d: of d, which is uniform from 5 to 100 ms, a tenth of all draws is kept, and they lie within a
/// factor c of the truth. So 50 (c − 1/c) = 9.5, c = 1.0995.
#[test]
fn kept_draws_are_those_that_the_closed_form_gives() {
    let unknowns = unknowns(TESTBED);
    let library = library(&unknowns, &[0.0]);
    let ruler = Ruler::of(&[0.2], &library);
    let kept = Kept::nearest(&ruler.distances(&library), 100).expect("some are nearer");
    let delays: Vec<f64> = kept.draws.iter().map(|&n| number(&unknowns[0], library.positions[n][0])).collect();
    let (low, high) = (delays.iter().copied().fold(f64::MAX, f64::min), delays.iter().copied().fold(0.0, f64::max));
    assert!((low - 50.0 / 1.0995).abs() < 0.3 && (high - 50.0 * 1.0995).abs() < 0.3, "{low} {high}");
    let (from, to) = central(&delays).expect("there are some");
    // The middle 95 % of an even spread.
    assert!((from - (low + 0.025 * 9.5)).abs() < 0.3 && (to - (high - 0.025 * 9.5)).abs() < 0.3, "{from} {to}");
}

#[test]
fn intervals_hold_what_they_promise() {
    let unknowns = unknowns(TESTBED);
    let library = library(&unknowns, &BOTH);
    let published = [0.2, 2.0];
    let found = posterior_of(&unknowns, &library, &published);
    let calibration = calibrate(&Ruler::of(&published, &library), &library, &found, 100, 200);
    assert_eq!(calibration.draws, 200);
    assert!((0.92..=0.98).contains(&calibration.coverage), "{calibration:?}");
    for unknown in calibration.by_unknown.iter().filter(|unknown| unknown.moves) {
        assert!(unknown.coverage >= 0.88, "{unknown:?}");
    }
    assert_eq!(calibration.by_unknown.iter().filter(|unknown| unknown.moves).count(), 2);
}

/// The draws that are taken as published are not what they seem.
#[test]
fn calibration_fails_where_the_model_is_wrong() {
    let unknowns = unknowns(TESTBED);
    let mut library = library(&unknowns, &BOTH);
    let published = [0.2, 2.0];
    let found = posterior_of(&unknowns, &library, &published);
    for n in (0..1000).step_by(50) {
        let delay = &mut library.positions[n][0];
        *delay = (*delay + 0.4) % 1.0;
    }
    let calibration = calibrate(&Ruler::of(&published, &library), &library, &found, 100, 20);
    assert!(calibration.by_unknown[0].coverage < 0.5 && calibration.coverage < 0.92, "{calibration:?}");
}

#[test]
fn a_second_round_lies_around_the_first_and_brings_draws_nearer() {
    let unknowns = unknowns(TESTBED);
    let mut library = library(&unknowns, &BOTH);
    let ruler = Ruler::of(&[0.1605, 2.16], &library);
    let first = Kept::nearest(&ruler.distances(&library), 100).expect("some are nearer");
    let kept: Vec<&Position> = first.draws.iter().map(|&n| &library.positions[n]).collect();
    let region = Region::around(&unknowns, &kept);
    let further = draw(&region, 1000, 1000, 7);
    for position in &further {
        assert!(position.iter().zip(&region.bounds).all(|(p, (low, high))| (*low..=*high).contains(p)));
        library.ours.push(times(&unknowns, position, &BOTH));
    }
    library.positions.extend(further);
    let second = Kept::nearest(&ruler.distances(&library), 100).expect("some are nearer");
    assert!(second.tolerance < first.tolerance / 2.0, "{} {}", first.tolerance, second.tolerance);
    // A list's value is never cut.
    assert_eq!(region.bounds[2], (0.0, 1.0));
}

#[test]
fn draws_are_even_and_the_same_each_time() {
    let all = draw(&Region::whole(3), 0, 1024, 3);
    assert_eq!(all, draw(&Region::whole(3), 0, 1024, 3));
    assert_ne!(all, draw(&Region::whole(3), 0, 1024, 4));
    assert_eq!(all[100..200], draw(&Region::whole(3), 100, 100, 3)[..]);
    for dimension in 0..3 {
        let mut tenths = [0; 16];
        all.iter().for_each(|position| tenths[(position[dimension] * 16.0) as usize] += 1);
        assert_eq!(tenths, [64; 16]);
    }
}

#[test]
fn draws_that_are_equally_far_are_refused() {
    assert_eq!(Kept::nearest(&[Some(1.0), Some(1.0), None], 1), Err(NoneNearer::EquallyFar));
    assert_eq!(Kept::nearest(&[None, None], 1), Err(NoneNearer::NoValues));
    let library = Library { positions: vec![vec![0.1], vec![0.6]], ours: vec![vec![Some(2.0)], vec![Some(2.0)]] };
    let ruler = Ruler::of(&[3.0], &library);
    assert_eq!(Kept::nearest(&ruler.distances(&library), 1), Err(NoneNearer::NoValues));
}

#[test]
fn a_run_without_a_value_is_never_kept_and_zero_is_far_but_not_infinitely() {
    let ours = vec![vec![Some(0.0)], vec![None], vec![Some(9.0)], vec![Some(10.0)], vec![Some(30.0)]];
    let library = Library { positions: vec![vec![0.5]; 5], ours };
    let distances = Ruler::of(&[10.0], &library).distances(&library);
    assert!(distances[0].is_some_and(f64::is_finite) && distances[1].is_none());
    assert_eq!(Kept::nearest(&distances, 5).expect("some are nearer").draws, [3, 2, 4, 0]);
}

const PATH: &str = "duration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";

/// The unknowns in a scenario with the path `a`, and in one with `b`.
fn fitted(text: &str) -> Result<Vec<Fitted>, Vec<Mistake>> {
    let read = |path: &'static str| {
        move |set: &[Override]| {
            let text = PATH.replace("\"a\"", &format!("\"{path}\""));
            let source = Source { name: path.into(), text };
            anabranch_scenario::read(&source, set, &NoFiles).map(|_| ())
        }
    };
    let rows = ItemRow::all(vec![anabranch_scenario::scheduler("test", "fifo(queue=3)").expect("it is one")]);
    let subject = |item, rows, read| Subject { item, rows, read };
    let (a, b) = (read("a"), read("b"));
    fit(&read_unsaid(text)?.unknowns, &[subject("testbed", &rows[..], &a), subject("other", &[], &b)])
}

#[test]
fn settings_are_those_of_the_keys_that_a_scenario_has() {
    let text = TESTBED.replace("key   = \"path.a.delay\"", "key = [\"path.a.delay\", \"path.b.delay\"]");
    let fitted = fitted(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let set = |n: usize| -> Vec<String> {
        fitted[n].settings(&unknowns(&text), &[0.0, 0.5, 0.9]).iter().map(ToString::to_string).collect()
    };
    assert_eq!(set(0), ["path.a.delay=5ms", "path.a.rate=10mbit", "tcp.era=linux-3.14"]);
    assert_eq!(set(1), ["path.b.delay=5ms", "tcp.era=linux-3.14"]);
}

#[test]
fn an_unknown_sets_a_parameter_of_a_scheduler() {
    let text = "[unsaid.x]\nwhy = \"w\"\nkey = \"row.fifo.ns2_binding\"\nlist = [false, true]\n";
    let fitted = fitted(text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert_eq!(fitted[1].settings(&unknowns(text), &[0.9]), []);
    let row = &ItemRow::all(vec![anabranch_scenario::scheduler("test", "fifo(queue=3)").expect("it is one")])[0];
    let set = row.with(&fitted[0].settings(&unknowns(text), &[0.9])).expect("it can be");
    assert_eq!((set.name.as_str(), set.label().as_str()), ("fifo", "fifo(queue=3,ns2_binding=true)"));
}

/// Text, then what is said and the token at which it is said.
#[test]
fn mistakes_are_said_with_their_place() {
    let entry = |entry: &str| format!("[unsaid.x]\nwhy = \"w\"\n{entry}\n");
    let cases = [
        (
            entry("key = \"path.wlan.delay\"\nlist = [\"1ms\", \"2ms\"]"),
            "no scenario has the key `path.wlan.delay`",
            "[\"1ms\", \"2ms\"]",
        ),
        (entry("key = \"path.a.loss\"\nrange = [\"1%\", \"120%\"]"), "120% cannot be", "[\"1%\", \"120%\"]"),
        (
            entry("key = \"path.a.delay\"\nrange = [\"1ms\", \"2s\"]"),
            "two numbers with the same unit",
            "[\"1ms\", \"2s\"]",
        ),
        (entry("key = \"path.a.delay\"\nrange = [\"9ms\", \"2ms\"]"), "below the second", "[\"9ms\", \"2ms\"]"),
        (
            entry("key = \"path.a.delay\"\nrange = [\"0ms\", \"2ms\"]\nscale = \"log\""),
            "begins above zero",
            "[\"0ms\", \"2ms\"]",
        ),
        (entry("key = \"path.a.delay\"\nrange = [\"1ms\", \"2ms\"]\nscale = \"lgo\""), "`lgo` is no scale", "\"lgo\""),
        (entry("key = \"path.a.delay\"\nlist = [\"1ms\"]"), "leaves nothing open", "[\"1ms\"]"),
        (
            entry("key = \"row.fido.queue\"\nlist = [1, 2]"),
            "no scenario has the key `row.fido.queue`: `fido` is no row",
            "[1, 2]",
        ),
        (entry("key = \"row.fifo.quue\"\nlist = [1, 2]"), "1 cannot be", "[1, 2]"),
        (entry("key = \"row.fifo.queue\"\nrange = [1, 200000]"), "200000 cannot be", "[1, 200000]"),
        (
            "[stated]\n\"row.fifo\" = \"section 2\"\n".to_owned() + &entry("key = \"row.fifo.queue\"\nlist = [1, 2]"),
            "contradicts the source, which states `row.fifo`: section 2",
            "[1, 2]",
        ),
        (entry("key = \"path.a.delay\""), "needs one prior", "x"),
        (entry("list = [1, 2]"), "needs one prior", "x"),
        ("[unsaid.x]\nwhy = \" \"\nkey = \"mss\"\nlist = [1000, 1400]\n".into(), "does not say why", "x"),
        ("draws = 0\n".to_owned() + &entry("key = \"mss\"\nlist = [1000, 1400]"), "`draws` is from 1", "0"),
        (
            "[stated]\n\"path.a\" = \"section 4\"\n".to_owned()
                + &entry("key = \"path.a.delay\"\nlist = [\"1ms\", \"2ms\"]"),
            "contradicts the source, which states `path.a`: section 4",
            "[\"1ms\", \"2ms\"]",
        ),
        ("[unsaid]\n".into(), "nothing is unknown", ""),
        (
            entry("key = \"mss\"\nlist = [1000, 1400]\nitems = [\"testbad\"]"),
            "there is no item `testbad`",
            "[1000, 1400]",
        ),
        (
            "scenario = \"a.toml\"\n".to_owned() + &entry("key = \"mss\"\nlist = [1000, 1400]"),
            "stand in its claims.toml",
            "\"a.toml\"",
        ),
    ];
    for (text, message, token) in cases {
        let wrong = fitted(&text).expect_err(&text);
        let [Mistake { at, message: said, .. }] = &wrong[..] else { panic!("{text}: {wrong:?}") };
        assert!(said.contains(message), "{text}: {said}");
        assert_eq!(&text[at.clone()], token, "{text}: {said}");
    }
}

#[test]
fn a_file_of_its_own_names_scenario_and_measurements() {
    let unknown = "[unsaid.x]\nkey = \"mss\"\nlist = [1000, 1400]\nwhy = \"w\"\n";
    let anchor = "[[anchor]]\nmetric = \"goodput_bps\"\nof = \"single:a\"\nmeasured = 0.9\nunit = \"Mbit/s\"\n";
    let text = format!("scenario = \"a.toml\"\n{unknown}{anchor}");
    let measured = read_measured(&text).expect("it is right").measured.expect("it is there");
    assert_eq!((measured.rows.len(), measured.anchors.len(), measured.anchors[0].unit.scale), (0, 1, 1e6));
    for (text, message) in [
        (format!("scenario = \"a.toml\"\n{unknown}"), "there is no anchor"),
        (format!("{unknown}{anchor}"), "`scenario` is missing"),
        (text.replace("goodput_bps", "goodput"), "`goodput` is no metric"),
        (text.replace("0.9", "0.0"), "above zero"),
        (text.replace("single:a", "minrt"), "`minrt` is no scheduler"),
    ] {
        let wrong = read_measured(&text).expect_err(&text);
        assert!(wrong.iter().any(|mistake| mistake.message.contains(message)), "{text}: {wrong:?}");
    }
}

#[test]
fn a_search_says_that_no_unknown_moves_a_baseline() {
    let extent = Extent { draws: 2, keep: 1, repeat: 1, rounds: 2, seed: 1 };
    let positions = || vec![vec![0.1], vec![0.6]];
    let add =
        |ours: [Option<f64>; 2]| Search::new(extent, vec![3.0]).add(positions(), ours.map(|ours| vec![ours]).to_vec());
    assert_eq!(add([Some(2.0), Some(2.0)]), Err(NoneNearer::EquallyFar));
    assert_eq!(add([None, None]), Err(NoneNearer::NoValues));
    // A baseline without any value is not passed over for one that has some.
    let mut two = Search::new(extent, vec![3.0, 1.0]);
    let ours = vec![vec![Some(2.0), None], vec![Some(4.0), None]];
    assert_eq!(two.add(positions(), ours), Err(NoneNearer::NoValues));
    assert_eq!(add([Some(2.0), Some(4.0)]), Ok(()));
}
