//! The boxes of a network: in what order a segment meets those of its path.

use super::{Carried, Middlebox, MiddleboxSpec, Passed};
use anabranch_units::{Direction, Instant};
use std::collections::VecDeque;

/// Segments that leave the boxes of a path, in order, and packets that they dropped.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are segments")]
pub(crate) enum Left {
    /// A segment enters this direction.
    Goes(Direction, Carried),
    /// A packet of so many bytes of this direction was dropped.
    Dropped(Direction, u32),
}

/// A segment before its next box. A direction's chain is its own boxes in their order, then those of the other direction backwards.
#[derive(Debug)]
struct Step {
    direction: Direction,
    /// Boxes that it has passed.
    passed: usize,
    carried: Carried,
}

/// The boxes of all ways: each path's down, then up.
#[derive(Debug)]
pub(crate) struct Boxes {
    ways: Vec<Vec<Box<dyn Middlebox>>>,
}

impl Boxes {
    /// None on so many ways.
    pub fn new(ways: usize) -> Self {
        Self { ways: core::iter::repeat_with(Vec::new).take(ways).collect() }
    }

    /// Sets the boxes of a way: new ones, which have seen no segment.
    pub fn set(&mut self, way: usize, specs: &[MiddleboxSpec]) {
        self.ways[way] = specs.iter().map(|spec| spec.build()).collect();
    }

    /// Whether a path has boxes.
    pub fn any(&self, path: usize) -> bool {
        self.ways[2 * path..2 * path + 2].iter().any(|boxes| !boxes.is_empty())
    }

    /// When the first box of a way acts of its own accord; [`Instant::MAX`] for never.
    pub fn due(&self, way: usize) -> Instant {
        self.ways[way].iter().map(|of| of.due()).min().unwrap_or(Instant::MAX)
    }

    /// When the first box of a direction acts of its own accord.
    pub fn next(&self, direction: Direction) -> Instant {
        (direction as usize..self.ways.len()).step_by(2).map(|way| self.due(way)).min().unwrap_or(Instant::MAX)
    }

    /// A segment comes to the boxes of a path.
    pub fn pass(&mut self, now: Instant, path: usize, direction: Direction, carried: Carried) -> Vec<Left> {
        self.run(now, path, VecDeque::from([Step { direction, passed: 0, carried }]), Vec::new())
    }

    /// The first box of a way that is due acts.
    pub fn wake(&mut self, path: usize, direction: Direction) -> Vec<Left> {
        let boxes = &mut self.ways[2 * path + direction as usize];
        let Some((place, now)) = boxes.iter().map(|of| of.due()).enumerate().min_by_key(|(_, due)| *due) else {
            return Vec::new();
        };
        let mut passed = Passed::default();
        boxes[place].wake(now, &mut passed);
        let (mut steps, mut left) = (VecDeque::new(), Vec::new());
        self.go_on(path, (direction, place), direction, passed, &mut steps, &mut left);
        self.run(now, path, steps, left)
    }

    /// Takes each segment through the boxes that it has not passed yet.
    fn run(&mut self, now: Instant, path: usize, mut steps: VecDeque<Step>, mut left: Vec<Left>) -> Vec<Left> {
        while let Some(Step { direction, passed, carried }) = steps.pop_front() {
            let reverse = direction.reverse();
            let (own, other) = (self.len(path, direction), self.len(path, reverse));
            let mut through = Passed::default();
            let at = if passed < own {
                self.ways[2 * path + direction as usize][passed].along(now, carried, &mut through);
                (direction, passed)
            } else if passed < own + other {
                let place = own + other - 1 - passed;
                self.ways[2 * path + reverse as usize][place].against(now, carried, &mut through);
                (reverse, place)
            } else {
                left.push(Left::Goes(direction, carried));
                continue;
            };
            self.go_on(path, at, direction, through, &mut steps, &mut left);
        }
        left
    }

    /// Segments that leave the box at a place of a direction continue from there. `dropped` packets are of direction `of`.
    fn go_on(
        &self,
        path: usize,
        (along, place): (Direction, usize),
        of: Direction,
        passed: Passed,
        steps: &mut VecDeque<Step>,
        left: &mut Vec<Left>,
    ) {
        left.extend(passed.dropped.into_iter().map(|size| Left::Dropped(of, size)));
        let step = |direction, passed| move |carried| Step { direction, passed, carried };
        let (own, other) = (self.len(path, along), self.len(path, along.reverse()));
        steps.extend(passed.along.into_iter().map(step(along, place + 1)));
        steps.extend(passed.against.into_iter().map(step(along.reverse(), other + own - place)));
    }

    fn len(&self, path: usize, direction: Direction) -> usize {
        self.ways[2 * path + direction as usize].len()
    }
}
