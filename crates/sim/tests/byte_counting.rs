//! RFC 3465's limit L of packets per acknowledgment, in whole transfers.

mod common;

use anabranch_engine::{AckCounting, InitialThreshold, TcpSettings};
use anabranch_sim::Halt;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, SeqNumber, Side};
use anabranch_wire::{Flags, Packet};
use common::{Transfer, path};

/// An acknowledgment that the sender received, and the window after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    packets: u32,
    cwnd: u32,
    ssthresh: u32,
}

/// The sender's acknowledgments in order, without those during a loss repair.
#[derive(Debug, Default)]
struct Steps {
    last: Option<SeqNumber>,
    packets: u32,
    steps: Vec<Step>,
}

impl Recorder for Steps {
    fn record(&mut self, _now: Instant, origin: Origin, event: &Event) {
        if let Event::Window(w) = event
            && origin.host == Some(Side::Server)
            && self.packets > 0
        {
            self.steps.push(Step { packets: self.packets, cwnd: w.cwnd, ssthresh: w.ssthresh });
            self.packets = 0;
        }
    }

    fn packet(&mut self, _now: Instant, host: Side, sent: bool, _path: PathId, packet: &Packet) {
        let segment = &packet.segment;
        if host == Side::Server && !sent && segment.flags.has(Flags::ACK) {
            let advance = self.last.map_or(0, |last| segment.ack.0.wrapping_sub(last.0));
            self.last = Some(segment.ack);
            self.packets = if segment.options.sack().is_empty() { advance / 1400 } else { 0 };
        }
    }
}

/// The acknowledgments of Reno's sender over a path of 50 Mbit/s and 20 ms, which holds 167 packets and a queue of 100:
/// slow start, one overshoot, and congestion avoidance.
fn reno(abc_limit: u32) -> Vec<Step> {
    reno_with(|tcp| tcp.abc_limit = abc_limit)
}

/// The same with other settings.
fn reno_with(change: impl FnOnce(&mut TcpSettings)) -> Vec<Step> {
    let mut t = Transfer::new(vec![path("a", 50_000, 20, 100)]);
    t.congestion = "reno".into();
    t.settings.mptcp = false;
    t.settings.tcp.quick_acks = 0;
    change(&mut t.settings.tcp);
    let mut seen = Steps::default();
    assert_eq!(t.world().run(Instant::from_millis(8_000), &mut seen), Ok(Halt::Time));
    seen.steps
}

/// The pairs of neighbours in a part of `steps`.
fn pairs<'a>(steps: &'a [Step], part: impl Fn(&Step) -> bool + 'a) -> impl Iterator<Item = (Step, Step)> + 'a {
    steps.windows(2).map(|two| (two[0], two[1])).filter(move |(a, b)| part(a) && part(b))
}

#[test]
fn packets_count_in_slow_start_and_acknowledgments_in_avoidance() {
    let steps = reno_with(|tcp| tcp.ack_counting = AckCounting::AcksInAvoidance);
    let starting = |s: &Step| s.ssthresh == u32::MAX && s.cwnd < 200 && s.packets == 2;
    let started: Vec<_> = pairs(&steps, starting).collect();
    assert!(started.len() > 50 && started.iter().all(|(a, b)| b.cwnd == a.cwnd + 2), "{started:?}");
    // In avoidance one step takes as many acknowledgments as the window has packets; each covers two.
    let avoiding = |s: &Step| s.ssthresh != u32::MAX && s.cwnd > s.ssthresh;
    let rises =
        steps.chunk_by(|a, b| a.cwnd == b.cwnd).filter(|rise| rise.iter().all(|s| avoiding(s) && s.packets == 2));
    let lengths: Vec<_> = rises.map(|rise| (rise.len() as u32, rise[0].cwnd)).collect();
    // The first and the last of a series are incomplete.
    let whole = lengths.windows(3).filter(|three| three[1].1 == three[0].1 + 1 && three[2].1 == three[1].1 + 1);
    let whole: Vec<_> = whole.map(|three| three[1]).collect();
    assert!(whole.len() > 20 && whole.iter().all(|(acks, cwnd)| acks.abs_diff(*cwnd) <= 1), "{lengths:?}");
}

#[test]
fn slow_start_ends_at_the_initial_threshold() {
    // 65,535 bytes are 46.8 packets of 1400.
    for (threshold, packets) in [(InitialThreshold::Bytes(65_535), 47), (InitialThreshold::Packets(30), 30)] {
        let steps = reno_with(|tcp| tcp.initial_ssthresh = Some(threshold));
        assert_eq!(steps[0].ssthresh, packets);
        let reached = steps.iter().position(|s| s.cwnd == packets).unwrap();
        let (before, after) = steps.split_at(reached);
        assert!(before.iter().all(|s| s.cwnd < packets) && before.len() < packets as usize, "{}", before.len());
        // One packet per window from there on.
        let next = after.iter().position(|s| s.cwnd > packets).unwrap();
        assert!((next as u32).abs_diff(packets / 2) <= 1, "{next} acknowledgments of two at {packets}");
    }
}

#[test]
fn slow_start_at_the_threshold_passes_it_by_one_packet() {
    let steps = reno_with(|tcp| {
        tcp.initial_ssthresh = Some(InitialThreshold::Packets(30));
        tcp.slow_start_at_threshold = true;
    });
    let first: Vec<u32> = steps.iter().map(|s| s.cwnd).take_while(|cwnd| *cwnd <= 31).collect();
    let at = |cwnd: u32| first.iter().filter(|own| **own == cwnd).count();
    assert!(at(30) <= 1 && at(31).abs_diff(15) <= 1, "{first:?}");
}

#[test]
fn a_delayed_acknowledgment_of_two_segments_grows_slow_start_by_the_limit() {
    for (limit, growth) in [(u32::MAX, 2), (1, 1), (2, 2)] {
        let steps = reno(limit);
        let starting = |s: &Step| s.ssthresh == u32::MAX && s.cwnd < 200;
        let delayed: Vec<_> = pairs(&steps, starting).filter(|(_, b)| b.packets == 2).collect();
        assert!(delayed.len() > 50, "{limit}: {} of {}", delayed.len(), steps.len());
        for (before, after) in delayed {
            assert_eq!(after.cwnd - before.cwnd, growth, "{limit}: {before:?} {after:?}");
        }
    }
}

#[test]
fn congestion_avoidance_takes_as_many_acknowledgments_as_the_limit_asks() {
    // From one whole window to the next: w acknowledgments that count one packet each, or w/2 that count two.
    for (limit, each) in [(u32::MAX, 2), (1, 1), (2, 2)] {
        let steps = reno(limit);
        let avoiding = |s: &Step| s.ssthresh != u32::MAX && s.cwnd >= s.ssthresh;
        let grown: Vec<_> = (1..steps.len()).filter(|&n| steps[n].cwnd == steps[n - 1].cwnd + 1).collect();
        let mut counted = 0;
        for two in grown.windows(2) {
            let rise = &steps[two[0]..two[1]];
            if !rise.iter().all(avoiding) || rise[1..].iter().any(|s| s.packets != 2 || s.cwnd != rise[0].cwnd) {
                continue;
            }
            counted += 1;
            let (needed, got) = (rise[0].cwnd / each, rise.len() as u32);
            assert!(got.abs_diff(needed) <= 1, "{limit}: {got} acknowledgments at {}", rise[0].cwnd);
        }
        assert!(counted > 20, "{limit}: {counted} increases");
    }
}
