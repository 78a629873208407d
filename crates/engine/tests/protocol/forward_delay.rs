//! Forward delays from timestamps, and which data an acknowledgment is about.

use crate::common::pair::{Fate, Pair};
use crate::common::{at, client_paths, mirror, ms, pattern, setup};
use anabranch_engine::connection::PathSetup;
use anabranch_engine::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_engine::{Settings, TcpSettings};
use anabranch_units::{Duration, Side};
use anabranch_wire::{Options, Packet, Timestamps};
use std::sync::{Arc, Mutex};

/// The paths that a scheduler saw last, and for each acknowledgment its own DATA_ACK, the connection's, and the end of
/// the data that it is about.
#[derive(Debug, Default)]
struct Seen {
    paths: Vec<PathView>,
    acks: Vec<(Option<u64>, u64, u64)>,
}

/// Fills both paths, and has their capacities measured or not.
#[derive(Debug)]
struct Watching(Arc<Mutex<Seen>>, bool);

impl Scheduler for Watching {
    fn schedule(&mut self, round: &mut Round<'_>) {
        for i in 0..round.paths().len() {
            let id = round.paths()[i].id;
            while round.send_next(id) {}
        }
        self.0.lock().unwrap().paths = round.paths().to_vec();
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        if let SchedulerEvent::Ack { acked, .. } = event
            && acked.packets > 0
        {
            self.0.lock().unwrap().acks.push((acked.data_ack, view.data_acked(), acked.data_end));
        }
    }

    fn measures_capacity(&self) -> bool {
        self.1
    }
}

/// A client sends for a second over paths of 10 and 20 ms there and 40 and 15 back; the server's clock is ahead by
/// `offsets` ticks on them.
fn transfer(timestamps: bool, offsets: [u32; 2]) -> Seen {
    measured(timestamps, offsets, false)
}

fn measured(timestamps: bool, offsets: [u32; 2], measures: bool) -> Seen {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let tcp = TcpSettings { timestamps, ..TcpSettings::default() };
    let settings = Settings { tcp, mss: 1000, ..Settings::default() };
    let mut client = setup(settings.clone(), client_paths(2));
    client.scheduler = Box::new(Watching(seen.clone(), measures));
    let mut pair = Pair::with(1, client, move || {
        let paths = client_paths(2).into_iter().map(|p| PathSetup { tuple: mirror(p.tuple), ..p });
        setup(settings.clone(), paths.collect())
    });
    pair.delays = [10, 20, 0, 0].map(Duration::from_millis);
    pair.back = Some([40, 15, 0, 0].map(Duration::from_millis));
    pair.hook = Box::new(move |_, side, path, packet| {
        let offset = offsets[usize::from(path)];
        match packet.segment.options.timestamps() {
            Some(stamps) if offset > 0 => Fate::Become(vec![shifted(packet, side, stamps, offset)]),
            _ => Fate::Pass,
        }
    });
    pair.write(Side::Client, pattern(0, 40_000_000), false);
    pair.run(at(1000));
    core::mem::take(&mut *seen.lock().unwrap())
}

/// The packet as if the server's clock were ahead.
fn shifted(packet: &Packet, side: Side, stamps: Timestamps, ahead: u32) -> Packet {
    let mut packet = packet.clone();
    let old = core::mem::replace(&mut packet.segment.options, Options::new());
    let options = &mut packet.segment.options;
    old.mss().map(|mss| options.set_mss(mss));
    old.window_scale().map(|shift| options.set_window_scale(shift));
    if old.sack_permitted() {
        options.set_sack_permitted();
    }
    let Timestamps { val, ecr } = stamps;
    options.set_timestamps(match side {
        Side::Server => Timestamps { val: val.wrapping_add(ahead), ecr },
        Side::Client if ecr == 0 => stamps,
        Side::Client => Timestamps { val, ecr: ecr.wrapping_sub(ahead) },
    });
    old.mptcp().iter().for_each(|option| assert!(options.push_mptcp(*option)));
    if let Some(dss) = old.dss() {
        options.set_dss(*dss);
    }
    options.set_sack(old.sack());
    packet
}

fn forward(seen: &Seen) -> [Option<Duration>; 2] {
    [0, 1].map(|i| seen.paths[i].fresh_forward_delay(at(1000)))
}

#[test]
fn the_return_path_does_not_enter() {
    let seen = transfer(true, [0, 0]);
    assert!(seen.paths[0].srtt.unwrap() >= ms(50) && seen.paths[1].srtt.unwrap() < ms(50));
    let [Some(first), Some(second)] = forward(&seen) else { panic!("{:?}", forward(&seen)) };
    let difference = second - first;
    assert!(difference >= ms(9) && difference <= ms(11), "{difference}");
}

#[test]
fn an_offset_of_the_clocks_cancels_unless_paths_have_their_own() {
    let same = transfer(true, [3_000_000_000; 2]);
    let [Some(first), Some(second)] = forward(&same) else { panic!("{:?}", forward(&same)) };
    assert!(second - first >= ms(9) && second - first <= ms(11));
    let [first, second] = forward(&transfer(true, [1_000_000_000, 3_000_000_000]));
    assert!(first.is_some() && second.is_none());
    assert_eq!(forward(&transfer(false, [0, 0])), [None, None]);
}

#[test]
fn a_scheduler_that_measures_capacities_has_the_least_delay_and_the_newest_departure() {
    let seen = measured(true, [0, 0], true);
    let known = [0, 1].map(|i| seen.paths[i].capacity.unwrap());
    for (path, known) in seen.paths.iter().zip(known) {
        assert!(known.least_forward().unwrap() <= path.forward_delay.unwrap().relative);
        let sent = known.last_sent().unwrap();
        assert!(sent > at(800) && sent <= at(1000), "{sent:?}");
    }
    let [first, second] = known.map(|known| known.least_forward().unwrap());
    assert!(second - first >= ms(9) && second - first <= ms(11));
    assert!(transfer(true, [0, 0]).paths.iter().all(|path| path.capacity.is_none()));
}

#[test]
fn an_acknowledgment_names_its_data_and_what_it_waits_for() {
    let acks = transfer(true, [0, 0]).acks;
    assert!(acks.iter().all(|(own, all, _)| own.is_some_and(|own| own <= *all)));
    // Data of the quicker path waits for that of the slower one, and the acknowledgment that says so may come after another
    // that acknowledges more.
    assert!(acks.iter().any(|(own, _, end)| own.is_some_and(|own| own < *end)));
    assert!(acks.iter().any(|(own, all, _)| own.is_some_and(|own| own < *all)));
    assert!(acks.iter().all(|(_, _, end)| *end > 0));
}
