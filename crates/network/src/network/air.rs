//! Bottlenecks that divide a medium: its turns.

use super::Network;
use crate::bottleneck::WayId;
use crate::medium::Medium;
use crate::{Markable, MediumSpec};
use anabranch_trace::Recorder;
use anabranch_units::{Direction, Instant};
use std::sync::Arc;

impl<T: Clone + Markable> Network<T> {
    /// Index of the medium of this name, on which `drain` is a station.
    pub(super) fn medium_of(&mut self, spec: &Arc<MediumSpec>, drain: usize) -> usize {
        let known = self.media.iter().position(|medium| medium.spec.name == spec.name);
        let medium = known.unwrap_or_else(|| {
            self.media.push(Medium::new(spec.clone()));
            self.media.len() - 1
        });
        debug_assert_eq!(self.media[medium].spec, *spec, "one name, one medium");
        self.media[medium].stations.push(drain);
        medium
    }

    /// Brings up to `now` what precedes a packet that is sent then in a direction: packets between links, and those that waited for
    /// sleeping devices or in middleboxes, these in order over both directions, for they divide media.
    #[inline(always)]
    pub(super) fn rouse(&mut self, now: Instant, direction: Direction, recorder: &mut dyn Recorder) {
        if !self.media.is_empty() {
            self.rouse_fronts(now, recorder);
        }
        if self.routes.is_some() {
            self.advance(self.until(now, direction), direction, recorder);
        }
    }

    #[cold]
    fn rouse_fronts(&mut self, now: Instant, recorder: &mut dyn Recorder) {
        while let Some(way) = self.front.as_ref().and_then(|front| front.first(now)) {
            self.act(WayId::of(way), recorder);
        }
    }

    /// Brings all stations of a medium up to `now`.
    #[cold]
    pub(super) fn proceed(&mut self, medium: usize, now: Instant, recorder: &mut dyn Recorder) {
        while let Some((at, drain)) = self.next_on(medium).filter(|(at, _)| *at <= now) {
            if let Some((at, packet)) = self.drains[drain].queue.depart(at, recorder) {
                self.travel(at, packet);
            }
            self.pass_on(medium, at);
        }
    }

    /// The station on which something happens next.
    fn next_on(&self, medium: usize) -> Option<(Instant, usize)> {
        let stations = self.media[medium].stations.iter();
        let acting =
            stations.map(|station| (&self.drains[*station].queue, *station)).filter(|(queue, _)| !queue.waits());
        acting.map(|(queue, station)| (queue.departs(), station)).min().filter(|(at, _)| *at < Instant::MAX)
    }

    /// The next station sends, if the medium is free; the others know how long they wait.
    pub(super) fn pass_on(&mut self, medium: usize, now: Instant) {
        let (drains, air) = (&mut self.drains, &mut self.media[medium]);
        let mut sends = air.stations.iter().copied().find(|station| drains[*station].queue.sends());
        if sends.is_none()
            && let Some((station, overhead)) = air.next(|station| drains[station].queue.waits())
        {
            drains[station].queue.send(now, overhead);
            sends = Some(station);
        }
        let free = sends.map_or(Instant::MAX, |station| drains[station].queue.departs());
        for place in 0..self.media[medium].stations.len() {
            let station = self.media[medium].stations[place];
            let queue = &mut self.drains[station].queue;
            if queue.waits() {
                queue.wait_until(free);
            }
            self.note(station);
        }
    }
}
