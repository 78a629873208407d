//! Paths that fall silent while others deliver: early rescue, probes, return.

use crate::common::pair::{Fate, Pair};
use crate::common::{at, pattern, plain_stamps};
use anabranch_engine::Settings;
use anabranch_trace::{Event, PathState, SendKind};
use anabranch_units::{Duration, Instant, Side};
use std::cell::RefCell;
use std::rc::Rc;

/// The segments of a client: when, over which path, payload bytes.
type Sent = Rc<RefCell<Vec<(Instant, u8, usize)>>>;

/// A client writes for a long time over paths of 20 and 40 ms; path 0 is silent between the two times.
fn transfer(settings: Settings, silent: (u64, u64)) -> (Pair, Sent) {
    let settings = Settings { recv_buffer: 60_000, ..settings };
    let mut pair = Pair::new(2, settings.clone(), settings);
    let sent = Sent::default();
    let log = sent.clone();
    pair.hook = Box::new(move |now, side, path, p| {
        if side == Side::Client {
            log.borrow_mut().push((now, path, p.segment.payload.len()));
        }
        let lost = path == 0 && now >= at(silent.0) && now < at(silent.1);
        if lost { Fate::Drop } else { Fate::Pass }
    });
    pair.write(Side::Client, pattern(0, 40_000_000), false);
    (pair, sent)
}

fn first(pair: &Pair, after: u64, what: impl Fn(&Event) -> bool) -> Option<Instant> {
    pair.client.log.0.iter().find(|(now, e)| *now >= at(after) && what(e)).map(|(now, _)| *now)
}

fn is_rescue(e: &Event) -> bool {
    matches!(e, Event::DataSent { kind: SendKind::Rescue, .. })
}

/// The longest time without anything new at the server.
fn outage(pair: &Pair) -> Duration {
    let news = |e: &Event| matches!(e, Event::Delivered(_));
    let times: Vec<_> = pair.server.log.0.iter().filter(|(_, e)| news(e)).map(|(now, _)| *now).collect();
    times.windows(2).map(|w| w[1].since(w[0])).max().expect("something was delivered")
}

#[test]
fn what_a_silent_path_carries_is_rescued_before_its_timeout() {
    let (mut pair, _) = transfer(plain_stamps(), (500, 60_000));
    pair.run(at(2_000));
    let rescued = first(&pair, 0, is_rescue).expect("a rescue");
    // The last acknowledgment left at 500 ms at most; then 50 ms are more than twice the round trip, and the other path,
    // with an acknowledgment every 40 ms, must have delivered meanwhile.
    assert!(rescued > at(540) && rescued <= at(611), "{rescued}");
    let timeout = first(&pair, 0, |e| matches!(e, Event::Timeout { .. })).expect("a timeout");
    assert!(timeout >= at(700), "{timeout}");
    assert!(outage(&pair) <= Duration::from_millis(150), "{}", outage(&pair));
    // As before where the application wants that.
    let (mut pair, _) = transfer(Settings { early_rescue: false, ..plain_stamps() }, (500, 60_000));
    pair.run(at(2_000));
    assert!(first(&pair, 0, is_rescue) >= first(&pair, 0, |e| matches!(e, Event::Timeout { .. })));
    assert!(outage(&pair) >= Duration::from_millis(200), "{}", outage(&pair));
}

#[test]
fn a_failing_path_is_probed_with_small_segments_and_used_as_soon_as_it_answers() {
    let (mut pair, sent) = transfer(plain_stamps(), (500, 10_500));
    pair.run(at(12_000));
    let failed = first(&pair, 0, |e| *e == Event::Path(PathState::Failing)).expect("it fails");
    let probes: Vec<_> =
        pair.client.log.0.iter().filter(|(_, e)| *e == Event::PathProbe).map(|(now, _)| *now).collect();
    // Every half second, then every sixteenth of the silence.
    assert_eq!(probes[0], failed + Duration::from_millis(500));
    assert!((18..=20).contains(&probes.len()), "{probes:?}");
    assert!(probes.windows(2).all(|w| (500..=630).contains(&w[1].since(w[0]).as_millis())), "{probes:?}");
    // Data goes out as often as RFC 6298 lets it: in ten seconds six times, the last of them 2 s apart.
    let sent = sent.borrow();
    let down = |(now, path, len): &&(Instant, u8, usize)| *path == 0 && *len > 0 && *now > at(800) && *now < at(10_500);
    let mut again: Vec<_> = sent.iter().filter(down).map(|(now, ..)| *now).collect();
    again.dedup();
    assert!(again.len() <= 6, "{again:?}");
    // Probe, answer, data again: new data two round trips after the first probe that gets through.
    let back = first(&pair, 10_500, |e| *e == Event::Path(PathState::Established)).expect("it returns");
    assert!(back <= at(10_500 + 630 + 2 * 20 + 1), "{back}");
    let flowing = sent.iter().filter(|(now, path, len)| *path == 0 && *len > 0 && *now > back).count();
    assert!(flowing > 100, "{flowing}");
    assert!(!pair.client.log.saw(Event::Stall));
}

#[test]
fn a_path_that_only_slowed_down_is_used_again_at_once() {
    let (mut pair, _) = transfer(plain_stamps(), (60_000, 60_000));
    pair.run(at(500));
    // From 20 to 300 ms.
    pair.delays[0] = Duration::from_millis(150);
    pair.run(at(1_500));
    let failed = first(&pair, 0, |e| *e == Event::Path(PathState::Failing)).expect("it seems to fail");
    let back = first(&pair, 500, |e| *e == Event::Path(PathState::Established)).expect("it does not");
    assert!(back.since(failed) <= Duration::from_millis(120), "{failed} to {back}");
    assert!(!pair.client.log.0.iter().any(|(_, e)| matches!(e, Event::Timeout { .. } | Event::Lost { .. })));
    // Its data had arrived, only its acknowledgments were late: the other path's DATA_ACKs tell, and nothing is repeated.
    assert!(!pair.client.log.0.iter().any(|(_, e)| is_rescue(e)));
}

#[test]
fn silence_of_all_paths_is_left_to_their_timeouts() {
    let (mut pair, _) = transfer(plain_stamps(), (60_000, 60_000));
    pair.run(at(500));
    pair.hook = Box::new(|_, _, _, _| Fate::Drop);
    pair.run(at(690));
    assert_eq!(first(&pair, 0, |e| *e == Event::Path(PathState::Failing)), None);
}
