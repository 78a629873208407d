//! The fixed point of LIA in scenario C: the equation, and a run. `docs/lab/fixed-points.md` derives it, and has all scenarios over several
//! seeds.

use assert_cmd::Command;
use serde_json::Value;

fn anabranch(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = command.args(arguments).write_stdin(input).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Mean goodput per user of a group, as a rate on the wire in Mbit/s; 1400 bytes of payload are `packet` there.
fn rate(run: &Value, group: &str, packet: f64) -> f64 {
    run["metrics"][format!("group.{group}.goodput_mean_bps")].as_f64().unwrap() * packet / 1400.0 / 1e6
}

/// z of z³ + n z² + z = c: √(p1/p2) at the fixed point of LIA in scenario C (Khalili et al., CoNEXT 2012), by bisection.
fn lia_in_c(n: f64, c: f64) -> f64 {
    let (mut low, mut high) = (0.0, c);
    for _ in 0..60 {
        let z: f64 = f64::midpoint(low, high);
        if z * z * z + n * z * z + z > c { high = z } else { low = z }
    }
    low
}

#[test]
fn lia_settles_where_scenario_c_says() {
    for (c1, c2) in [(1.0, 1.0), (2.0, 1.0)] {
        let flags = format!("topology olia-c --n1 10 --n2 10 --c1 {c1}mbit --c2 {c2}mbit --duration 40s --warmup 20s");
        let text = anabranch(&flags.split(' ').collect::<Vec<_>>(), "");
        let results: Value = serde_json::from_str(&anabranch(&["run", "-", "--format", "json"], &text)).unwrap();
        let z = lia_in_c(1.0, c2 / c1);
        let expected = [("two-path", 1480.0, c1 * (1.0 + z * z)), ("one-path", 1452.0, c1 * z * (1.0 + z * z))];
        for (group, packet, expected) in expected {
            let found = rate(&results["runs"][0], group, packet);
            // The band of the page.
            assert!((found / expected - 1.0).abs() <= 0.05, "{c1} {c2} {group}: {found}, not {expected}");
        }
    }
}
