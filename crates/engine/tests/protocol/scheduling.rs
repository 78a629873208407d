//! The scheduler's seat: another one takes over, and what the operator says of paths reaches it.

use crate::common::pair::{Fate, Pair};
use crate::common::solo::{Build, Solo};
use crate::common::{client_paths, pattern, plain_stamps, setup};
use anabranch_engine::Settings;
use anabranch_engine::congestion::FixedWindows;
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::schedule::{
    Assignment, Capacity, Cause, PathPolicy, PathView, Round, Scheduler, SchedulerEvent, Then, View,
};
use anabranch_trace::{Event, PathState, SchedulerName};
use anabranch_units::{Duration, Instant, PathId, Range, Rng, Side};
use anabranch_wire::Reason;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Binds everything to one path as soon as it is there, whatever its window.
#[derive(Debug)]
struct AllOn(PathId);

impl Scheduler for AllOn {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while round.enqueue_next(self.0) {}
    }
    fn serves_lone_path(&self) -> bool {
        true
    }
}

/// Sends on path 0 alone.
#[derive(Debug)]
struct FirstOnly;

impl Scheduler for FirstOnly {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while round.send_next(PathId(0)) {}
    }
}

/// Sends on the fastest path, and asks to be called a millisecond later.
#[derive(Debug, Default)]
struct Later(Option<Instant>);

impl Scheduler for Later {
    fn schedule(&mut self, round: &mut Round<'_>) {
        crate::common::Fastest.schedule(round);
        self.0 = Some(round.now() + Duration::from_millis(1));
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.0
    }
    fn serves_lone_path(&self) -> bool {
        true
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Loses the paths of a client that sends over two; then lets time pass. [`Pair::run`] fails if time stands still.
fn lose_all_paths(lose: impl Fn(&mut Pair)) {
    let mut client = setup(plain_stamps(), client_paths(2));
    client.scheduler = Box::new(Later::default());
    let mut pair = Pair::with(1, client, server(2));
    pair.write(Side::Client, pattern(0, 20_000_000), true).run(at(300));
    lose(&mut pair);
    pair.run(at(4_000_000));
    assert!(pair.client.closed().is_some());
}

#[test]
fn a_wakeup_that_a_scheduler_asked_for_ends_with_the_last_path() {
    // Both paths time out; both are reset; both are reset for good.
    lose_all_paths(|pair| pair.hook = Box::new(|_, _, _, _| Fate::Drop));
    for transient in [true, false] {
        lose_all_paths(|pair| {
            pair.hook = Box::new(|_, _, _, _| Fate::Drop);
            for path in [0, 1] {
                let reason = Reason { code: 0, transient };
                assert!(pair.act(Side::Client, |c, cx| c.reset_path(cx, PathId(path), reason)));
            }
        });
    }
}

/// Counts payload bytes that leave the client on each path.
fn count_payload(pair: &mut Pair) -> Rc<RefCell<[u64; 4]>> {
    let sent = Rc::new(RefCell::new([0; 4]));
    let seen = sent.clone();
    pair.hook = Box::new(move |_, side, path, packet| {
        if side == Side::Client {
            seen.borrow_mut()[usize::from(path)] += packet.segment.payload.len() as u64;
        }
        Fate::Pass
    });
    sent
}

fn server(paths: u8) -> impl Fn() -> anabranch_engine::connection::Setup + Send {
    move || {
        let known = client_paths(paths).into_iter();
        let mirrored = known.map(|p| PathSetup { tuple: crate::common::mirror(p.tuple), ..p });
        setup(plain_stamps(), mirrored.collect())
    }
}

/// Two paths are up; the client has sent 5000 bytes, and from now on binds everything to the second.
fn bound_to_one() -> Pair {
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    pair.write(Side::Client, pattern(0, 5000), false).run(at(200));
    take_over(&mut pair, "all-on-one", Box::new(AllOn(PathId(1))));
    pair.run(at(201));
    pair
}

fn take_over(pair: &mut Pair, base: &'static str, scheduler: Box<dyn Scheduler>) {
    let name = SchedulerName { base, suffix: "" };
    pair.act(Side::Client, |c, cx| c.set_scheduler(cx, name, scheduler));
    assert!(pair.client.log.saw(Event::Scheduler(name)));
}

#[test]
fn what_the_old_scheduler_bound_is_taken_back() {
    let mut pair = bound_to_one();
    let sent = count_payload(&mut pair);
    pair.write(Side::Client, pattern(5000, 300_000), true).run(at(210));
    let view = pair.client.connection().expect("open").view();
    let queued = view.path(PathId(1)).expect("joined").queued_bytes;
    assert!(queued > 200_000 && view.backlog().is_empty(), "{queued} bytes wait for a window of ten packets");
    let left = sent.borrow()[1];

    take_over(&mut pair, "first", Box::new(FirstOnly));
    pair.run(at(30_000));
    assert_eq!(pair.server.got, pattern(0, 305_000));
    assert_eq!(*sent.borrow(), [300_000 - left, left, 0, 0]);
    assert!(!pair.client.log.saw(Event::Stall));
}

#[test]
fn data_that_is_bound_ahead_of_its_window_says_since_when() {
    let mut pair = bound_to_one();
    pair.write(Side::Client, pattern(5000, 30_000), false).run(at(1000));
    let since = |(_, event): &(Instant, Event)| match event {
        Event::BoundAhead { since } => Some(*since),
        _ => None,
    };
    // A window of ten packets leaves at once, and tells nothing.
    assert_eq!(pair.client.log.0.iter().filter_map(since).collect::<Vec<_>>(), [at(201); 20]);
}

#[test]
fn segments_are_no_larger_than_their_path_carries() {
    let mut paths = client_paths(2);
    paths[1].mss = Some(600);
    let mut pair = Pair::with(1, setup(plain_stamps(), paths), server(2));
    let largest = Rc::new(RefCell::new([0; 2]));
    let seen = largest.clone();
    pair.hook = Box::new(move |_, side, path, packet| {
        let largest = &mut seen.borrow_mut()[usize::from(path)];
        *largest = if side == Side::Client { packet.segment.payload.len().max(*largest) } else { *largest };
        Fate::Pass
    });
    let mut written = 0;
    let mut send = |pair: &mut Pair| {
        *largest.borrow_mut() = [0; 2];
        let until = pair.now + Duration::from_secs(5);
        pair.write(Side::Client, pattern(written, 200_000), false).run(until);
        written += 200_000;
        assert_eq!(pair.server.got, pattern(0, written as usize));
        *largest.borrow()
    };
    pair.run(at(200));
    assert_eq!(send(&mut pair), [1_000, 600]);
    pair.act(Side::Client, |c, _| (c.set_mss(PathId(0), 700), c.set_mss(PathId(1), 5_000)));
    assert_eq!(send(&mut pair), [700, 1_000], "no more than both ends agreed on");
    // A later subflow over the path is as careful.
    let reason = Reason { code: 0, transient: true };
    assert!(pair.act(Side::Client, |c, cx| c.reset_path(cx, PathId(0), reason)));
    let until = pair.now + Duration::from_secs(30);
    pair.run(until);
    assert_eq!(send(&mut pair), [700, 1_000]);
}

/// Sends nothing before that time, at which it asks to be called.
#[derive(Debug)]
struct NotBefore(Instant);

impl Scheduler for NotBefore {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if round.now() >= self.0 {
            crate::common::Fastest.schedule(round);
        }
    }
    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.0)
    }
    fn serves_lone_path(&self) -> bool {
        true
    }
}

#[test]
fn a_scheduler_is_called_when_it_asked_for_it_and_is_not_stalled_until_then() {
    let mut client = setup(plain_stamps(), client_paths(1));
    client.scheduler = Box::new(NotBefore(at(500)));
    let mut pair = Pair::with(1, client, server(1));
    pair.write(Side::Client, pattern(0, 1000), false).run(at(1000));
    let sent = pair.client.log.0.iter().find(|(_, event)| matches!(event, Event::DataSent { .. }));
    assert_eq!(sent.map(|(now, _)| *now), Some(at(500)));
    assert!(!pair.client.log.saw(Event::Stall));
}

#[test]
fn a_message_is_announced_until_the_writer_has_finished() {
    let mut pair = Pair::new(1, plain_stamps(), plain_stamps());
    let messages = |pair: &Pair| pair.client.connection().expect("open").view().messages().collect::<Vec<_>>();
    assert!(pair.act(Side::Client, |c, _| c.begin_message(1000, None)));
    assert_eq!(messages(&pair), [Range::new(0, 1000)]);
    pair.write(Side::Client, pattern(0, 1000), true).run(at(100));
    assert!(!pair.act(Side::Client, |c, _| c.begin_message(1000, None)) && messages(&pair).is_empty());
}

/// Two paths with room, and five segments of 1000 bytes.
fn five_segments() -> Assignment {
    let mut assignment = Assignment::new(false);
    for id in [0, 1] {
        assignment.set_path(PathView::new(PathId(id), 1000));
    }
    assignment.set_window(1 << 20, 1 << 20);
    assignment.set_written(5000);
    assignment
}

fn command<T>(assignment: &mut Assignment, commands: impl FnOnce(&mut Round<'_>) -> T) -> T {
    commands(&mut Round::new(assignment, &mut FixedWindows::default(), Cause::Written))
}

#[test]
fn data_is_queued_behind_lower_data_alone() {
    let (first, second) = (PathId(0), PathId(1));
    let mut assignment = five_segments();
    // Another path takes what is between.
    assert_eq!(command(&mut assignment, |round| [first, second, first].map(|id| round.enqueue_next(id))), [true; 3]);
    assignment.take_back(second);
    assert_eq!(assignment.backlog().first(), Some(Range::new(1000, 2000)));
    assert!(!command(&mut assignment, |round| round.enqueue_next(first)), "behind higher data");
    assert!(command(&mut assignment, |round| round.enqueue_next(second)));
}

#[test]
fn what_the_peer_has_is_cut_off_what_waits() {
    let path = PathId(0);
    let mut assignment = five_segments();
    assert!(command(&mut assignment, |round| round.send_next(path)));
    assignment.on_data_acked(400);
    assert_eq!(assignment.queue(path).map(|queued| queued.range).collect::<Vec<_>>(), [Range::new(400, 1000)]);
    // Behind higher data it is cut when its turn comes.
    let mut assignment = five_segments();
    assert!(command(&mut assignment, |round| round.send_ahead(path, 2000) && round.send_next(path)));
    assignment.on_data_acked(400);
    let taken = [(); 2].map(|()| assignment.take_admissible(path).map(|queued| queued.range));
    assert_eq!(taken, [Some(Range::new(2000, 3000)), Some(Range::new(400, 1000))]);
}

#[test]
fn what_waits_for_a_path_is_counted_by_its_queue_alone() {
    let mut assignment = five_segments();
    let (known, new) = (PathId(0), PathId(2));
    assert!(command(&mut assignment, |round| round.send_next(known)));
    for (id, expected) in [(known, (1, 1000)), (new, (0, 0))] {
        assignment.set_path(PathView { queued: 7, queued_bytes: 7000, ..PathView::new(id, 1000) });
        assert_eq!(assignment.path(id).map(|p| (p.queued, p.queued_bytes)), Some(expected));
    }
}

#[test]
fn a_new_path_needs_no_more_room_than_the_peer_ever_offered() {
    // RFC 9293 §3.8.6.2.1: half of it is enough.
    let mut assignment = Assignment::new(false);
    assignment.set_window(1200, 1200);
    assignment.set_path(PathView::new(PathId(0), 1000));
    assert_eq!(assignment.path(PathId(0)).map(|p| (p.segment, p.worth)), Some((600, 600)));
}

#[test]
fn stranded_data_goes_to_a_path_that_has_a_rank_and_has_not_carried_it() {
    let (lost, other) = (PathId(0), PathId(1));
    for (ranked, rescued) in [(vec![lost], 0), (vec![lost, other], 1)] {
        let mut assignment = five_segments();
        assert!(command(&mut assignment, |round| round.send_next(lost)));
        let sent = assignment.take_admissible(lost).expect("it was bound");
        assignment.on_sent(lost, sent.range);
        assignment.strand(lost);
        assert!(!assignment.rescue().is_empty());
        let rank = |path: &PathView| ranked.iter().position(|id| *id == path.id);
        command(&mut assignment, |round| round.rescue_by(rank));
        assert_eq!((assignment.queue(other).count(), assignment.rescue().is_empty()), (rescued, true), "{ranked:?}");
    }
}

#[test]
fn what_waits_in_a_queue_for_the_peers_window_stays_there() {
    let mut client = setup(plain_stamps(), client_paths(1));
    client.scheduler = Box::new(AllOn(PathId(0)));
    let mut pair = Pair::with(1, client, || setup(Settings { recv_buffer: 60_000, ..plain_stamps() }, Vec::new()));
    pair.server.reads = false;
    pair.write(Side::Client, pattern(0, 300_000), false).run(at(250));
    let view = pair.client.connection().expect("open").view();
    assert!(
        view.outstanding().is_empty() && view.window_edge() == 60_000,
        "all that the window admits was acknowledged"
    );
    assert_eq!((view.backlog().bytes(), view.queue(PathId(0)).map(|q| q.range.len()).sum()), (0, 240_000));
}

/// The first 1000 bytes go to path 0, the last 5000 to path 2, all others to path 1 while its window is open, else to path 0.
#[derive(Debug)]
struct Ahead;

impl Scheduler for Ahead {
    fn schedule(&mut self, round: &mut Round<'_>) {
        while let Some(next) = round.backlog().first() {
            let open = round.path(PathId(1)).is_some_and(|p| !p.is_shut());
            let bound = match next.start {
                46_000.. => round.send_next(PathId(2)),
                1000.. if open => round.enqueue_next(PathId(1)),
                _ => round.send_next(PathId(0)),
            };
            if !bound {
                return;
            }
        }
    }
}

#[test]
fn what_waits_for_a_closed_window_goes_elsewhere_although_a_lost_path_is_tried_again() {
    let mut client = setup(plain_stamps(), client_paths(3));
    client.scheduler = Box::new(Ahead);
    let mut pair = Pair::with(1, client, || setup(plain_stamps(), Vec::new()));
    pair.write(Side::Client, pattern(0, 1000), false).run(at(900));
    pair.hook = Box::new(|_, side, path, p| match (side, path) {
        (_, 2) => Fate::Drop,
        (Side::Server, 1) => {
            let mut p = p.clone();
            p.segment.window = 0;
            Fate::Become(vec![p])
        }
        _ => Fate::Pass,
    });
    pair.write(Side::Client, pattern(1000, 50_000), false).run(at(20_000));
    assert_eq!(pair.server.got.len(), 51_000);
}

#[test]
fn the_policy_and_the_bytes_used_outlive_a_subflow() {
    let mut paths = client_paths(2);
    let policy = PathPolicy { price: 0.5, cap: Some(7), weight: Some(2.0) };
    paths[1].policy = policy;
    let mut pair = Pair::with(1, setup(plain_stamps(), paths), server(2));
    let sent = count_payload(&mut pair);
    pair.write(Side::Client, pattern(0, 2_000_000), false).run(at(400));
    pair.act(Side::Client, |c, cx| assert!(c.reset_path(cx, PathId(1), Reason { code: 0, transient: true })));
    pair.run(at(400) + Duration::from_millis(1500));
    let joined = |(_, e): &&(Instant, Event)| *e == Event::Path(PathState::Established);
    assert_eq!(pair.client.log.0.iter().filter(joined).count(), 3);
    let view = pair.client.connection().expect("open").view();
    for path in view.paths() {
        assert_eq!(path.used_bytes, sent.borrow()[path.id.index()], "path {}", path.id);
    }
    let first_subflow = pair.client.log.0.iter().filter(|(_, e)| matches!(e, Event::DataSent { .. })).count();
    assert!(first_subflow > 100 && view.path(PathId(1)).is_some_and(|p| p.used_bytes > 10_000));
    assert_eq!(view.path(PathId(1)).map(|p| p.policy), Some(policy));
    assert_eq!(view.path(PathId(0)).map(|p| p.policy), Some(PathPolicy::default()));
}

/// Writes down its calls under its name, and what its random stream gives first.
#[derive(Clone, Debug)]
struct Noted {
    name: char,
    lone: bool,
    calls: Arc<Mutex<Vec<(&'static str, char)>>>,
    draws: Arc<Mutex<Vec<u64>>>,
}

impl Noted {
    fn note(&self, call: &'static str) {
        self.calls.lock().expect("no panic").push((call, self.name));
    }
}

impl Scheduler for Noted {
    fn seed(&mut self, mut rng: Rng) {
        self.draws.lock().expect("no panic").push(rng.bits());
    }
    fn schedule(&mut self, _: &mut Round<'_>) {
        self.note("schedule");
    }
    fn rescue(&mut self, _: &mut Round<'_>) {
        self.note("rescue");
    }
    fn serves_lone_path(&self) -> bool {
        self.lone
    }
}

#[test]
fn of_two_combined_schedulers_each_is_called_and_the_first_rescues() {
    let first = Noted { name: 'a', lone: false, calls: Arc::default(), draws: Arc::default() };
    let second = Noted { name: 'b', ..first.clone() };
    let boxed = |scheduler: &Noted, lone| -> Box<dyn Scheduler> { Box::new(Noted { lone, ..scheduler.clone() }) };
    let both = |lone: [bool; 2]| Then(boxed(&first, lone[0]), boxed(&second, lone[1]));

    let mut then = both([false, false]);
    then.seed(Rng::stream(1, "scheduler"));
    let draws = first.draws.lock().expect("no panic").clone();
    assert!(draws.len() == 2 && draws[0] != draws[1], "{draws:?}: each has a stream of its own");
    let (mut assignment, mut windows) = (Assignment::new(false), FixedWindows::default());
    let mut round = Round::new(&mut assignment, &mut windows, Cause::Written);
    then.rescue(&mut round);
    then.schedule(&mut round);
    assert_eq!(*first.calls.lock().expect("no panic"), [("rescue", 'a'), ("schedule", 'a'), ("schedule", 'b')]);
    let lone = [[false, false], [true, false], [false, true]].map(|lone| both(lone).serves_lone_path());
    assert_eq!(lone, [false, true, true]);
}

#[test]
fn the_view_counts_the_paths_that_are_known_before_they_are_joined() {
    let pair = Pair::new(3, plain_stamps(), plain_stamps());
    let view = pair.client.connection().expect("open").view();
    assert_eq!((view.paths().len(), view.known_paths()), (0, 3));
}

/// Has the capacities of its paths measured, and notes what is known of a path when it comes.
#[derive(Debug, Default)]
struct Measuring(Arc<Mutex<Vec<Known>>>);

/// A path, and its capacity.
type Known = (PathId, Option<Capacity>);

impl Scheduler for Measuring {
    fn schedule(&mut self, round: &mut Round<'_>) {
        crate::common::Fastest.schedule(round);
    }
    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        if let SchedulerEvent::PathUp { path } = *event {
            self.0.lock().expect("no panic").push((path, view.path(path).and_then(|path| path.capacity)));
        }
    }
    fn measures_capacity(&self) -> bool {
        true
    }
}

/// The capacity of each path of the client, as far as it is known.
fn capacities(pair: &Pair) -> Vec<Option<Capacity>> {
    pair.client.connection().expect("open").view().paths().iter().map(|path| path.capacity).collect()
}

#[test]
fn capacities_are_measured_while_a_scheduler_that_reads_them_has_the_seat() {
    let mut pair = Pair::new(2, plain_stamps(), plain_stamps());
    pair.write(Side::Client, pattern(0, 50_000), false).run(at(200));
    assert_eq!(capacities(&pair), [None, None]);
    take_over(&mut pair, "measuring", Box::new(Measuring::default()));
    pair.write(Side::Client, pattern(50_000, 200_000), false).run(at(400));
    let measured = capacities(&pair);
    assert!(measured.iter().all(|known| known.is_some_and(|known| known.last_sent() > Some(at(200)))), "{measured:?}");
    take_over(&mut pair, "first", Box::new(FirstOnly));
    assert_eq!(capacities(&pair), [None, None]);
}

#[test]
fn nothing_is_known_of_a_path_that_delivers_again_after_a_silence() {
    let mut client = setup(plain_stamps(), client_paths(2));
    let up = Arc::new(Mutex::new(Vec::new()));
    client.scheduler = Box::new(Measuring(up.clone()));
    let mut pair = Pair::with(1, client, server(2));
    pair.write(Side::Client, pattern(0, 4_000_000), false).run(at(300));
    up.lock().expect("no panic").clear();
    pair.hook = Box::new(|now, _, path, _| if path == 1 && now < at(900) { Fate::Drop } else { Fate::Pass });
    pair.run(at(899));
    assert!(capacities(&pair)[1].is_some_and(|known| known != Capacity::default()));
    pair.run(at(5000));
    assert_eq!(*up.lock().expect("no panic"), [(PathId(1), Some(Capacity::default()))]);
}

/// Sends on the fastest path, and tells the window that schedulers read (`M` of BLEST and CP).
#[derive(Debug)]
struct Looks(Arc<AtomicU64>);

impl Scheduler for Looks {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.0.store(round.send_window(), Ordering::Relaxed);
        while let Some(id) = round.fastest_eligible().map(|p| p.id) {
            if !round.send_next(id) {
                return;
            }
        }
    }
}

#[test]
fn a_data_ack_that_another_path_overtook_does_not_set_the_window() {
    // RFC 9293 §3.10.7.4 at the data level (RFC 8684 §3.3.4): the window is that of the newest DATA_ACK. ACKs of a slow path
    // are overtaken by those of a fast one all the time. (The edge does stay; the size that schedulers read does not.)
    let seen = Arc::new(AtomicU64::new(0));
    let shared = seen.clone();
    let mut h = Solo::server_with(move || Setup {
        scheduler: Box::new(Looks(shared.clone())),
        ..setup(plain_stamps(), Vec::new())
    })
    .opened();
    h.join(1);
    h.write(&[1; 3000]);
    h.send(h.seg(1, 3001).window(40_000).dss(h.data_ack(3000)));
    h.write(&[1; 1000]);
    let newest = seen.load(Ordering::Relaxed);
    h.send_on(1, h.seg_on(1, 1, 1).window(2000).dss(h.data_ack(0)));
    h.write(&[1; 1000]);
    assert_eq!(
        seen.load(Ordering::Relaxed),
        newest,
        "the window of a DATA_ACK of 3000 bytes, not of the older one of 0"
    );
}
