//! The way to a bottleneck: past the middleboxes, and past a device that may sleep.

use super::{Entering, Network};
use crate::bottleneck::WayId;
use crate::middle::Left;
use crate::{Carried, Markable};
use anabranch_trace::{DropCause, LinkEvent, Recorder};
use anabranch_units::{Direction, Instant};

impl<T: Clone + Markable> Network<T> {
    /// A packet comes to what stands before the bottleneck of a way.
    #[cold]
    #[inline(never)]
    pub(super) fn pass(&mut self, now: Instant, recorder: &mut dyn Recorder, way: WayId, entering: Entering<T>) {
        let boxes = self.front.as_mut().map(|front| &mut front.boxes).filter(|boxes| boxes.any(way.path()));
        let seen = entering.item.as_ref().and_then(Markable::segment);
        let (Some(boxes), Some(seen)) = (boxes, seen) else { return self.come(now, recorder, way, entering) };
        let left = boxes.pass(now, way.path(), way.direction(), seen.clone());
        self.note_fronts(way.path());
        // A segment that the boxes leave unchanged stays the item that it was.
        if left == [Left::Goes(way.direction(), seen)] {
            return self.come(now, recorder, way, entering);
        }
        self.leave(now, recorder, way.path(), left);
    }

    /// The part before the bottleneck of a way acts of its own accord.
    #[cold]
    #[inline(never)]
    pub(super) fn act(&mut self, way: WayId, recorder: &mut dyn Recorder) {
        let Some(front) = &mut self.front else { return };
        let at = front.boxes.due(way.index());
        if at <= front.rooms.next(way.index()).due() && at != Instant::MAX {
            let left = front.boxes.wake(way.path(), way.direction());
            self.note_fronts(way.path());
            Direction::BOTH.into_iter().for_each(|way| self.advance(at, way, recorder));
            return self.leave(at, recorder, way.path(), left);
        }
        let left = front.rooms.leave(way.index());
        self.note_front(way.index());
        if let Some((at, entering)) = left {
            self.advance(at, way.direction(), recorder);
            self.enter(at, recorder, way, entering);
        }
    }

    /// Segments that left the boxes of a path continue; dropped packets are recorded.
    fn leave(&mut self, now: Instant, recorder: &mut dyn Recorder, path: usize, left: Vec<Left>) {
        for left in left {
            match left {
                Left::Goes(direction, carried) => {
                    let entering = made(carried);
                    self.come(now, recorder, WayId::new(path, direction), entering);
                }
                Left::Dropped(direction, size) => {
                    let what = LinkEvent::Dropped(DropCause::Middlebox);
                    WayId::new(path, direction).record(recorder, now, size, what);
                }
            }
        }
    }

    /// A packet comes to a device, which may sleep.
    fn come(&mut self, now: Instant, recorder: &mut dyn Recorder, way: WayId, entering: Entering<T>) {
        let Some(front) = &mut self.front else { return };
        match front.rooms.enter(now, way.index(), entering) {
            Some(entering) => self.enter(now, recorder, way, entering),
            None => self.note_front(way.index()),
        }
    }

    /// The next action of a way of its own accord may have changed.
    pub(super) fn note_front(&mut self, way: usize) {
        if let Some(front) = &self.front {
            let (id, before) = (WayId::of(way), self.front_slot());
            self.agendas[id.direction() as usize].set(before + id.path(), front.next(way));
        }
    }

    fn note_fronts(&mut self, path: usize) {
        Direction::BOTH.into_iter().for_each(|way| self.note_front(WayId::new(path, way).index()));
    }
}

/// A packet that a middlebox changed or made.
fn made<T: Markable>(carried: Carried) -> Entering<T> {
    let size = carried.packet.len() as u32;
    Entering { size, item: T::of(carried), flow: 0 }
}
