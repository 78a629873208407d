//! Golden traces: two paths, everything written at time zero, 16 or 64 packets.

mod toy;

use anabranch_units::Instant;
use std::collections::BTreeSet;
use toy::{BOUNDLESS, MSS, Sent, Toy, ToyPath};

/// `1-4,9-16`: the numbers of a path's packets.
fn numbers(sent: &[Sent], path: u8) -> String {
    let numbers: BTreeSet<u64> = sent.iter().filter(|s| s.path == path).map(|s| s.number).collect();
    let starts = numbers.iter().filter(|n| !numbers.contains(&(**n - 1)));
    let runs = starts.map(|first| {
        let last = (*first..).take_while(|n| numbers.contains(n)).last().unwrap();
        if last == *first { first.to_string() } else { format!("{first}-{last}") }
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Last arrival in ms, sum and maximum of the reorder buffer's occupancy after each arrival.
fn reordering(sent: &[Sent]) -> (u64, usize, usize) {
    let mut arrivals: Vec<_> = sent.iter().map(|s| (s.arrives, s.path, s.at, s.number)).collect();
    arrivals.sort();
    let (mut expected, mut buffer, mut sum, mut max) = (1, BTreeSet::new(), 0, 0);
    for (_, _, _, number) in &arrivals {
        buffer.insert(*number);
        while buffer.remove(&expected) {
            expected += 1;
        }
        sum += buffer.len();
        max = max.max(buffer.len());
    }
    (arrivals.last().unwrap().0, sum, max)
}

struct Case {
    scheduler: &'static str,
    /// The window shown to BLEST; never a limit.
    window: u64,
    on: [&'static str; 2],
    last_arrival: u64,
    mean: &'static str,
    max: usize,
}

const fn case(
    scheduler: &'static str,
    window: u64,
    on: [&'static str; 2],
    last_arrival: u64,
    mean: &'static str,
    max: usize,
) -> Case {
    Case { scheduler, window, on, last_arrival, mean, max }
}

fn check(delays: [u64; 2], window: u32, packets: u64, cases: &[Case]) {
    for case in cases {
        // The traces hold λ and windows constant.
        let parameters: &[_] = match case.scheduler {
            "blest" => &[("delta".into(), 0.0)],
            "fps" | "f2pdps" => &[("growth".into(), 0.0)],
            "ecf-linux" => &[("sigma_factor".into(), 0.0), ("sigma_min".into(), 0.0)],
            _ => &[],
        };
        let scheduler = anabranch_schedulers::build(case.scheduler, parameters).unwrap();
        let paths = delays.map(|delay| ToyPath::new(delay, window));
        let mut toy = Toy::new(scheduler, &paths, case.window * MSS, BOUNDLESS);
        toy.run(&[(0, packets)], Instant::MAX);
        let (last, sum, max) = reordering(&toy.sent);
        let mean = format!("{:.4}", sum as f64 / packets as f64);
        let name = format!("{} M={}", case.scheduler, case.window);
        assert_eq!(toy.sent.len() as u64, packets, "{name}");
        assert_eq!([numbers(&toy.sent, 0), numbers(&toy.sent, 1)], case.on, "{name}");
        assert_eq!((last, mean.as_str(), max), (case.last_arrival, case.mean, case.max), "{name}");
    }
}

/// A window that never blocks BLEST.
const LARGE: u64 = 1 << 20;

#[test]
fn delays_10_and_30_windows_of_4() {
    let (greedy, in_order) = (["1-4,9-16", "5-8"], ["1-8,13-16", "9-12"]);
    let cases = [
        case("fifo", LARGE, greedy, 50, "1.3750", 4),
        case("minrtt", LARGE, greedy, 50, "1.3750", 4),
        case("minrtt+pr", LARGE, greedy, 50, "1.3750", 4),
        case("roundrobin", LARGE, ["1,3,5,7,9-16", "2,4,6,8"], 50, "2.6875", 7),
        case("daps", LARGE, ["1-12", "13-16"], 50, "1.3750", 4),
        case("daps-ack", LARGE, in_order, 50, "0.0000", 0),
        case("daps2", LARGE, ["1-3,8-16", "4-7"], 50, "1.8750", 5),
        case("otias-module", LARGE, in_order, 50, "0.0000", 0),
        case("fps", LARGE, in_order, 50, "0.0000", 0),
        case("f2pdps", LARGE, in_order, 50, "0.0000", 0),
        case("fdps", LARGE, in_order, 50, "0.0000", 0),
        case("fdps-star", LARGE, in_order, 50, "0.0000", 0),
        case("kim2012", LARGE, in_order, 50, "0.0000", 0),
        case("blest", 20, greedy, 50, "1.3750", 4),
        case("blest", 14, ["1-16", ""], 70, "0.0000", 0),
        case("ecf-linux", LARGE, greedy, 50, "1.3750", 4),
        case("stms", LARGE, in_order, 50, "0.0000", 0),
    ];
    check([10, 30], 4, 16, &cases);
}

#[test]
fn delays_10_and_50_windows_of_10() {
    let (greedy, in_order) = (["1-10,21-64", "11-20"], ["1-30,41-64", "31-40"]);
    let odd_even = ["1,3,5,7,9,11,13,15,17,19,21-60,62,64", "2,4,6,8,10,12,14,16,18,20,61,63"];
    let cases = [
        case("minrtt", LARGE, greedy, 110, "6.0938", 20),
        case("roundrobin", LARGE, odd_even, 150, "10.2344", 29),
        case("daps", LARGE, ["1-50,61-64", "51-60"], 110, "3.8281", 10),
        case("daps-ack", LARGE, in_order, 110, "0.0000", 0),
        case("daps2", LARGE, ["1-5,16-64", "6-15"], 110, "8.5938", 25),
        case("otias-module", LARGE, in_order, 110, "0.0000", 0),
        case("fps", LARGE, in_order, 110, "0.0000", 0),
        case("f2pdps", LARGE, in_order, 110, "0.0000", 0),
        case("fdps", LARGE, in_order, 110, "0.0000", 0),
        case("fdps-star", LARGE, in_order, 110, "0.0000", 0),
        case("kim2012", LARGE, in_order, 110, "0.0000", 0),
        case("blest", 80, greedy, 110, "6.0938", 20),
        case("blest", 60, ["1-64", ""], 130, "0.0000", 0),
        case("ecf-linux", LARGE, greedy, 110, "6.0938", 20),
        case("stms", LARGE, in_order, 110, "0.0000", 0),
    ];
    check([10, 50], 10, 64, &cases);
}
