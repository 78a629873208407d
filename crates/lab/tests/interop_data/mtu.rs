//! A path that carries less, with a kernel at either end: it obeys its interface, and a router's message.

use crate::common::alone;
use crate::runs::{WITH_A_KERNEL, run};
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = r#"
name = "one path carries 1280 bytes"
duration = "1s"
[connection]
congestion = "cubic"
[[path]]
name = "wide"
rate = "10mbit"
delay = "10ms"
[[path]]
name = "narrow"
rate = "10mbit"
delay = "20ms"
mtu = 1280
mtu_signal = "interface"
"#;

#[test]
fn a_narrow_path_carries_its_part() {
    let Some(_alone) = alone() else { return };
    for (ip, signals) in [("4", &["interface", "icmp", "none"][..]), ("6", &["icmp"])] {
        for signal in signals {
            for (sender, receiver, scheduler) in WITH_A_KERNEL {
                let text = SCENARIO.replace("\"interface\"", &format!("\"{signal}\""));
                let hosts = [("hosts.sender", sender), ("hosts.receiver", receiver), ("hosts.ip", ip)];
                let results = run(&RealTime, &Serial, &text, &hosts, &[scheduler], true);
                let runs = results.runs.to_vec();
                let share = runs[0].paths["narrow"].get("share").copied().unwrap_or(0.0);
                println!("IPv{ip}, {signal}, {sender} to {receiver}: {share}");
                match *signal {
                    "none" => assert!(share < 0.1, "IPv{ip}, {sender} to {receiver}: {share}"),
                    _ => assert!(share > 0.3, "IPv{ip}, {signal}, {sender} to {receiver}: {share}"),
                }
            }
        }
    }
}
