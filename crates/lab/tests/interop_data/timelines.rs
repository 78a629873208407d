//! Packet timelines and curves in real time, with a kernel at either end.

use crate::common::alone;
use anabranch_lab::RealTime;
use anabranch_recorders::TimelineRecorder;
use anabranch_run::{CONNECTION, Driver, Options, Plan, Variant};
use anabranch_scenario::{Host, NoFiles, Source, read, scheduler};
use anabranch_units::{Duration, Instant, Range, RangeSet};
use std::sync::Arc;

const SIZE: u64 = 500_000;
const SCENARIO: &str = r#"
name = "two paths"
[connection]
congestion = "cubic"
[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"
loss = "1%"
[[path]]
name = "far"
rate = "4mbit"
delay = "40ms"
[[traffic]]
kind = "bulk"
size = 500000
"#;

#[test]
fn every_byte_is_delivered_by_one_packet_whoever_the_hosts_are() {
    let Some(_alone) = alone() else { return };
    use Host::{Engine, Linux};
    for (sender, receiver) in [(Engine, Linux), (Linux, Engine), (Linux, Linux)] {
        let source = Source { name: "a scenario".into(), text: SCENARIO.into() };
        let (cell, mut scenario) = read(&source, &[], &NoFiles).expect("a valid scenario").cells.remove(0);
        scenario.hosts.sender = sender;
        scenario.hosts.receiver = receiver;
        let name = if sender == Linux { "linux-default" } else { "minrtt" };
        let options = Options {
            schedulers: vec![scheduler("the test", name).expect("a scheduler")],
            real_time: true,
            curves: Some(Duration::from_millis(100)),
            ..Options::default()
        };
        let plan = Plan::new(&[Variant { cell, scenario: Arc::new(scenario) }], &options);
        RealTime.prepare(&plan).expect("this machine can");
        let job = plan.jobs().next().expect("there is a row");
        let mut recorder = TimelineRecorder::new(CONNECTION, Instant::ZERO, usize::MAX);
        let outcome = RealTime.run(&job, &mut recorder).expect("a run that ends in order");

        let mut delivered = RangeSet::new();
        for packet in recorder.finish(Instant::ZERO, Vec::new()).packets {
            assert!(packet.arrived_s.is_none_or(|arrived| arrived > packet.sent_s + [0.010, 0.040][packet.path]));
            if packet.delivered_s.is_some() {
                delivered.insert(Range::new(packet.data_start, packet.data_end));
            }
        }
        assert_eq!(delivered.iter().collect::<Vec<_>>(), [Range::new(0, SIZE)], "{sender:?} to {receiver:?}");
        // The last bin may be shorter than the others.
        let bits: f64 = outcome.curves["goodput_bps"].values.iter().flatten().map(|rate| rate * 0.1).sum();
        assert!(bits > SIZE as f64 * 7.999, "{bits}");
        assert!(outcome.curves.contains_key("path.far.cwnd_packets") && outcome.curves.contains_key("rbd"));
    }
}
