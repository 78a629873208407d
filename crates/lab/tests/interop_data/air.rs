//! Shared air with a kernel at one end or at both: packets of kernels take their turns as simulated ones do. The machine may be busy, so
//! rates have upper bounds, which theory gives.

use crate::common::alone;
use crate::runs::{WITH_A_KERNEL, run};
use anabranch_lab::RealTime;
use anabranch_run::Serial;

const SCENARIO: &str = r#"
name = "air"
duration = "3s"
warmup = "0s"
[connection]
congestion = "cubic"
[[path]]
name = "wifi"
rate = "10mbit"
delay = "5ms"
"#;

/// Goodput in Mbit/s.
fn goodput(keys: &str, (sender, receiver, scheduler): (&str, &str, &str)) -> f64 {
    let hosts = [("hosts.sender", sender), ("hosts.receiver", receiver)];
    let results = run(&RealTime, &Serial, &format!("{SCENARIO}{keys}"), &hosts, &[scheduler], true);
    results.runs.to_vec()[0].metrics["goodput_bps"] / 1e6
}

#[test]
fn each_packet_of_a_kernel_costs_a_turn() {
    let Some(_alone) = alone() else { return };
    // A turn of 1 ms before each packet: at most 1000 packets in 2.2 s without a single acknowledgment.
    let keys = "medium = 'air'\n[[medium]]\nname = 'air'\noverhead = '1ms'\npackets = 1\n";
    for hosts in WITH_A_KERNEL {
        let (free, turns) = (goodput("", hosts), goodput(keys, hosts));
        assert!(turns > 0.5 && turns < 5.5 && turns < free, "{hosts:?}: {turns} Mbit/s, without turns {free}");
    }
}

#[test]
fn a_station_beside_a_kernel_has_its_turns() {
    let Some(_alone) = alone() else { return };
    // The neighbour always sends, at half of the rate: two of three units of airtime are its own.
    let keys = "medium = 'air'\nqueue = '60KB'\n[[link]]\nname = 'near'\nrate = '5mbit'\nmedium = 'air'\n[[cross]]\nkind = 'udp'\nlink = \
        'near'\nrate = '5mbit'\n[[medium]]\nname = 'air'\n";
    for hosts in WITH_A_KERNEL {
        let shared = goodput(keys, hosts);
        assert!(shared > 0.2 && shared < 4.5, "{hosts:?}: {shared} Mbit/s");
    }
}

#[test]
fn both_directions_of_a_path_between_kernels_may_divide_it() {
    let Some(_alone) = alone() else { return };
    for hosts in WITH_A_KERNEL {
        let shared = goodput("shared = true\n", hosts);
        assert!(shared > 0.5 && shared < 9.7, "{hosts:?}: {shared} Mbit/s");
    }
}
