//! Changes while the network runs.

use super::{Entrance, Network};
use crate::bottleneck::WayId;
use crate::tail::{Tail, police};
use crate::way::Way;
use crate::{Change, Markable, Place, RadioChange};
use anabranch_trace::Recorder;
use anabranch_units::{Direction, Duration, Instant, Rate};

impl<T: Clone + Markable> Network<T> {
    /// Applies a change. One that does not apply is ignored: the own rate of a path with a shared bottleneck, the rate
    /// of a trace, a burst on a shared medium.
    pub fn apply(&mut self, now: Instant, recorder: &mut dyn Recorder, change: &Change) {
        Direction::BOTH.into_iter().for_each(|direction| self.advance(now, direction, recorder));
        match *change {
            Change::Rate(Place::Path(path), direction, rate) => {
                self.set_path_rate(WayId::new(path, direction).index(), now, recorder, rate);
            }
            Change::Rate(Place::Link(link), direction, rate) => {
                self.set_drain_rate(self.link_drain(link, direction), now, recorder, rate);
            }
            Change::Mtu(path, direction, bytes) => self.entries[WayId::new(path, direction).index()].mtu = Some(bytes),
            Change::Delay(path, direction, delay) => {
                self.set_delay(WayId::new(path, direction).index(), now, recorder, delay);
            }
            Change::Burst(place, direction, burst) => {
                if let Some(drain) = self.drain_at(place, direction, now, recorder) {
                    self.set_drain_burst(drain, now, burst);
                } else if let Some(tail) = self.tail_at(place, direction, now, recorder) {
                    tail.set_burst(burst);
                }
            }
            Change::Police(place, direction, spec) => {
                if let Some(drain) = self.drain_at(place, direction, now, recorder) {
                    police(&mut self.drains[drain].police, now, spec);
                } else if let Some(tail) = self.tail_at(place, direction, now, recorder) {
                    tail.set_police(now, spec);
                }
            }
            Change::Jitter(path, direction, ref jitter) => {
                let way = WayId::new(path, direction).index();
                self.vary(way, now, recorder, |way| way.set_jitter(jitter));
            }
            Change::Radio(path, direction, RadioChange::Wake(wake)) => {
                self.set_wake(WayId::new(path, direction).index(), wake);
            }
            Change::Middleboxes(path, direction, ref boxes) => {
                self.set_boxes(WayId::new(path, direction).index(), boxes);
            }
            Change::Radio(path, direction, layer) => {
                let way = WayId::new(path, direction).index();
                self.vary(way, now, recorder, |way| way.set_radio(layer));
            }
            Change::Loss(path, direction, ref loss) => {
                self.ways[WayId::new(path, direction).index()].set_loss(loss);
            }
            Change::Reorder(path, direction, reorder) => {
                self.ways[WayId::new(path, direction).index()].set_reorder(reorder);
            }
            Change::Behind(link, direction, ref change) => {
                self.change_behind(self.link_drain(link, direction), change);
            }
            Change::Queue(place, direction, limit) => {
                if let Some(drain) = self.drain_at(place, direction, now, recorder) {
                    self.drains[drain].queue.set_limit(limit);
                } else if let Some(tail) = self.tail_at(place, direction, now, recorder) {
                    tail.set_limit(limit);
                }
            }
        }
    }

    fn set_delay(&mut self, way: usize, now: Instant, recorder: &mut dyn Recorder, delay: Duration) {
        self.settle_entrance(way, now, recorder);
        self.ways[way].set_delay(delay);
        match &self.entries[way].entrance {
            Entrance::Own(tail) => {
                self.ways[way].reschedule(tail.departures());
                self.note_way(way);
            }
            Entrance::Drain(drain) => self.note_least_delay(*drain),
        }
        self.note_routes();
        self.note_lookahead();
    }

    /// Changes the variation of a way's delay, for packets that join it from `now` on.
    fn vary(&mut self, way: usize, now: Instant, recorder: &mut dyn Recorder, change: impl FnOnce(&mut Way<T>)) {
        self.settle_entrance(way, now, recorder);
        change(&mut self.ways[way]);
        if let Entrance::Drain(drain) = self.entries[way].entrance {
            self.note_least_delay(drain);
        }
        self.note_routes();
        self.note_lookahead();
    }

    fn set_path_rate(&mut self, way: usize, now: Instant, recorder: &mut dyn Recorder, rate: Rate) {
        if let Entrance::Own(tail) = &mut self.entries[way].entrance {
            tail.settle(now, recorder);
            tail.set_rate(now, rate);
            self.ways[way].reschedule(tail.departures());
            self.note_way(way);
        } else if let Some(drain) = self.own_drain(way) {
            self.set_drain_rate(drain, now, recorder, rate);
        }
    }

    /// The drain of a link, or of a path that has its own, brought up to `now`.
    fn drain_at(
        &mut self,
        place: Place,
        direction: Direction,
        now: Instant,
        recorder: &mut dyn Recorder,
    ) -> Option<usize> {
        let drain = match place {
            Place::Link(link) => self.link_drain(link, direction),
            Place::Path(path) => self.own_drain(WayId::new(path, direction).index())?,
        };
        self.drain(drain, now, recorder);
        Some(drain)
    }

    /// The bottleneck of a path that drops only at the tail, brought up to `now`.
    fn tail_at(
        &mut self,
        place: Place,
        direction: Direction,
        now: Instant,
        recorder: &mut dyn Recorder,
    ) -> Option<&mut Tail> {
        let Place::Path(path) = place else { return None };
        match &mut self.entries[WayId::new(path, direction).index()].entrance {
            Entrance::Own(tail) => {
                tail.settle(now, recorder);
                Some(tail)
            }
            Entrance::Drain(_) => None,
        }
    }

    fn set_drain_burst(&mut self, drain: usize, now: Instant, burst: u64) {
        if self.drains[drain].medium.is_none() {
            self.drains[drain].queue.set_burst(now, burst);
        }
    }

    fn set_drain_rate(&mut self, drain: usize, now: Instant, recorder: &mut dyn Recorder, rate: Rate) {
        self.drain(drain, now, recorder);
        self.drains[drain].queue.set_rate(now, rate);
        self.note(drain);
    }
}
