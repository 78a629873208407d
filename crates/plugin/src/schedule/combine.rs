//! Schedulers made from others.

use super::{Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Instant, PathId, Rng};
use core::fmt::Debug;

/// First `A`, then `B` on what `A` left: `minrtt` then PR is `minrtt+pr`.
#[derive(Debug, Default)]
pub struct Then<A, B>(pub A, pub B);

impl<A: Scheduler, B: Scheduler> Scheduler for Then<A, B> {
    fn seed(&mut self, rng: Rng) {
        self.1.seed(rng.fork("then"));
        self.0.seed(rng);
    }
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.0.schedule(round);
        self.1.schedule(round);
    }
    fn rescue(&mut self, round: &mut Round<'_>) {
        self.0.rescue(round);
    }
    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        self.0.on_event(event, view);
        self.1.on_event(event, view);
    }
    fn serves_lone_path(&self) -> bool {
        self.0.serves_lone_path() || self.1.serves_lone_path()
    }

    fn waits_for_timeouts(&self) -> bool {
        self.0.waits_for_timeouts() || self.1.waits_for_timeouts()
    }
    fn measures_capacity(&self) -> bool {
        self.0.measures_capacity() || self.1.measures_capacity()
    }
    fn next_wakeup(&self) -> Option<Instant> {
        match (self.0.next_wakeup(), self.1.next_wakeup()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    fn values(&self) -> Option<(&'static str, f64)> {
        self.0.values().or_else(|| self.1.values())
    }
    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        self.0.state(put);
        self.1.state(put);
    }
}

impl Scheduler for Box<dyn Scheduler> {
    fn seed(&mut self, rng: Rng) {
        (**self).seed(rng);
    }
    fn schedule(&mut self, round: &mut Round<'_>) {
        (**self).schedule(round);
    }
    fn rescue(&mut self, round: &mut Round<'_>) {
        (**self).rescue(round);
    }
    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        (**self).on_event(event, view);
    }
    fn serves_lone_path(&self) -> bool {
        (**self).serves_lone_path()
    }

    fn waits_for_timeouts(&self) -> bool {
        (**self).waits_for_timeouts()
    }
    fn measures_capacity(&self) -> bool {
        (**self).measures_capacity()
    }
    fn next_wakeup(&self) -> Option<Instant> {
        (**self).next_wakeup()
    }
    fn give_way_to(&mut self, next: Box<dyn Scheduler>) -> Box<dyn Scheduler> {
        (**self).give_way_to(next)
    }
    fn values(&self) -> Option<(&'static str, f64)> {
        (**self).values()
    }
    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        (**self).state(put);
    }
}

/// A wrapper around the rounds of the scheduler inside it.
pub trait AroundRounds: Debug + Send + Sized + 'static {
    /// In place of [`Scheduler::schedule`].
    fn schedule(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>);

    /// In place of [`Scheduler::rescue`].
    fn rescue(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>);

    /// The wrapper of the scheduler that takes over ([`Scheduler::give_way_to`]).
    fn pass_on(&mut self) -> Self;
}

/// A scheduler with a wrapper around its rounds; everything else is the scheduler's own.
#[derive(Debug)]
pub struct Around<W> {
    /// The wrapper.
    pub wrapper: W,
    /// The scheduler.
    pub inner: Box<dyn Scheduler>,
}

impl<W: AroundRounds> Scheduler for Around<W> {
    fn seed(&mut self, rng: Rng) {
        self.inner.seed(rng);
    }
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.wrapper.schedule(&mut *self.inner, round);
    }
    fn rescue(&mut self, round: &mut Round<'_>) {
        self.wrapper.rescue(&mut *self.inner, round);
    }
    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        self.inner.on_event(event, view);
    }
    fn serves_lone_path(&self) -> bool {
        self.inner.serves_lone_path()
    }
    fn waits_for_timeouts(&self) -> bool {
        self.inner.waits_for_timeouts()
    }
    fn measures_capacity(&self) -> bool {
        self.inner.measures_capacity()
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.inner.next_wakeup()
    }
    fn give_way_to(&mut self, next: Box<dyn Scheduler>) -> Box<dyn Scheduler> {
        let inner = self.inner.give_way_to(next);
        Box::new(Self { wrapper: self.wrapper.pass_on(), inner })
    }
    fn values(&self) -> Option<(&'static str, f64)> {
        self.inner.values()
    }
    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        self.inner.state(put);
    }
}
