//! The applications of a host, found by their connections and by when they want to be called. No packet and no alarm makes a search
//! pass over all of them.

use anabranch_engine::endpoint::Handle;
use anabranch_units::Instant;
use anabranch_workload::Workload;
use core::ops::{Index, IndexMut};
use std::collections::BTreeSet;

/// An application whose connection exists or has existed.
#[derive(Debug)]
pub(crate) struct Application {
    pub handle: Handle,
    pub workload: Box<dyn Workload>,
    pub established: bool,
    /// When the workload wants to be called, by its answer to the last call; `MAX` for never.
    pub wakeup: Instant,
}

/// The applications of a host. Their places change only when one leaves: the last takes its place.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    list: Vec<Application>,
    /// Places by [`Handle::index`]: that of the application whose connection came last to this index. It stays when that leaves.
    places: Vec<usize>,
    /// Every wake-up that is not `MAX`.
    wakeups: BTreeSet<(Instant, Handle)>,
    /// All below this place are done, which nothing undoes.
    done: usize,
}

impl Applications {
    /// Adds an application with its connection.
    pub fn push(&mut self, handle: Handle, workload: Box<dyn Workload>) {
        let place = self.list.len();
        self.list.push(Application { handle, workload, established: false, wakeup: Instant::MAX });
        if self.places.len() <= handle.index() {
            self.places.resize(handle.index() + 1, usize::MAX);
        }
        self.places[handle.index()] = place;
        self.note(place);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if all are done.
    pub fn are_done(&mut self) -> bool {
        while self.list.get(self.done).is_some_and(|application| application.workload.is_done()) {
            self.done += 1;
        }
        self.done == self.list.len()
    }

    /// True if a connection's application is here and not served yet.
    pub fn is_unserved(&self, handle: Handle) -> bool {
        self.find(handle).is_some_and(|place| !self.list[place].workload.is_served())
    }

    /// All of them, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Application> {
        self.list.iter()
    }

    /// The place of a connection's application.
    #[inline]
    pub fn find(&self, handle: Handle) -> Option<usize> {
        let place = *self.places.get(handle.index())?;
        self.list.get(place).is_some_and(|application| application.handle == handle).then_some(place)
    }

    /// Reads again, after a call, when a workload wants to be called.
    #[inline(always)]
    pub fn note(&mut self, place: usize) {
        let application = &self.list[place];
        let next = application.workload.next_wakeup().unwrap_or(Instant::MAX);
        if application.wakeup != next {
            self.set_wakeup(place, next);
        }
    }

    #[inline(never)]
    fn set_wakeup(&mut self, place: usize, at: Instant) {
        let Application { handle, wakeup, .. } = &mut self.list[place];
        self.wakeups.remove(&(*wakeup, *handle));
        *wakeup = at;
        if at < Instant::MAX {
            self.wakeups.insert((at, *handle));
        }
    }

    /// The first wake-up, and whose it is.
    #[inline]
    pub fn first_wakeup(&self) -> Option<(Instant, Handle)> {
        self.wakeups.first().copied()
    }

    /// Forgets the first wake-up, which can no longer take place.
    pub fn drop_wakeup(&mut self) {
        self.wakeups.pop_first();
    }

    /// Places of those whose wake-ups have come at `now`.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = usize> {
        let come = self.wakeups.iter().take_while(move |(at, _)| *at <= now);
        come.filter_map(|(_, handle)| self.find(*handle))
    }

    /// Removes an application.
    pub fn swap_remove(&mut self, place: usize) {
        let gone = self.list.swap_remove(place);
        self.wakeups.remove(&(gone.wakeup, gone.handle));
        self.done = self.done.min(place);
        let last = self.list.len();
        if let Some(moved) = self.list.get(place).map(|moved| moved.handle.index())
            && self.places[moved] == last
        {
            self.places[moved] = place;
        }
    }
}

impl Index<usize> for Applications {
    type Output = Application;
    fn index(&self, place: usize) -> &Application {
        &self.list[place]
    }
}

impl IndexMut<usize> for Applications {
    fn index_mut(&mut self, place: usize) -> &mut Application {
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::paths_between;
    use anabranch_engine::connection::Setup;
    use anabranch_engine::endpoint::Endpoint;
    use anabranch_engine::{Cx, Settings};
    use anabranch_units::{ConnId, PathId, Rng, Side};
    use anabranch_workload::{Fault, Stream};

    /// Gives fixed answers.
    #[derive(Debug, Default)]
    struct Fixed {
        wakeup: Option<Instant>,
        done: bool,
    }

    impl Workload for Fixed {
        fn on_readable(&mut self, _now: Instant, _io: &mut dyn Stream) {}
        fn next_wakeup(&self) -> Option<Instant> {
            self.wakeup
        }
        fn is_done(&self) -> bool {
            self.done
        }
        fn fault(&self) -> Option<Fault> {
            None
        }
    }

    fn handles(count: u32) -> Vec<Handle> {
        let (mut endpoint, mut rng) = (Endpoint::default(), Rng::stream(1, "applications"));
        let mut connect = |n: u32| {
            let setup = Setup {
                id: ConnId(n),
                settings: Settings::default(),
                scheduler: anabranch_schedulers::build("minrtt", &[]).expect("a known scheduler"),
                congestion: anabranch_congestion::build("reno", &[]).expect("a known congestion control"),
                paths: paths_between(false, n, Side::Client, &[(PathId(0), false)]),
                announce: Vec::new(),
                accept_announced: false,
            };
            endpoint.connect(&mut Cx { now: Instant::ZERO, recorder: &mut (), rng: &mut rng }, setup)
        };
        (0..count).map(&mut connect).collect()
    }

    fn with(answers: impl IntoIterator<Item = Fixed>) -> (Applications, Vec<Handle>) {
        let answers: Vec<Fixed> = answers.into_iter().collect();
        let (mut applications, handles) = (Applications::default(), handles(answers.len() as u32));
        for (handle, answer) in handles.iter().zip(answers) {
            applications.push(*handle, Box::new(answer));
        }
        (applications, handles)
    }

    #[test]
    fn an_application_is_found_after_others_have_left() {
        let (mut applications, handles) = with((0..4).map(|_| Fixed::default()));
        applications.swap_remove(1);
        let found = |applications: &Applications| handles.iter().map(|h| applications.find(*h)).collect::<Vec<_>>();
        assert_eq!(found(&applications), [Some(0), None, Some(2), Some(1)]);
        applications.swap_remove(2);
        applications.swap_remove(0);
        assert_eq!(found(&applications), [None, None, None, Some(0)]);
        assert_eq!(applications.len(), 1);
    }

    #[test]
    fn wake_ups_come_in_order_and_leave_with_their_application() {
        let at = Instant::from_millis;
        let wakeups = [Some(at(30)), None, Some(at(10)), Some(at(20))];
        let (mut applications, handles) = with(wakeups.map(|wakeup| Fixed { wakeup, done: false }));
        assert_eq!(applications.first_wakeup(), Some((at(10), handles[2])));
        assert_eq!(applications.due(at(20)).collect::<Vec<_>>(), [2, 3]);
        // The answer changes: to later, and to never.
        applications[2].workload = Box::new(Fixed { wakeup: Some(at(40)), done: false });
        applications.note(2);
        assert_eq!(applications.first_wakeup(), Some((at(20), handles[3])));
        applications[3].workload = Box::new(Fixed::default());
        applications.note(3);
        assert_eq!(applications.due(at(39)).collect::<Vec<_>>(), [0]);
        applications.swap_remove(0);
        assert_eq!(applications.first_wakeup(), Some((at(40), handles[2])));
        applications.drop_wakeup();
        assert_eq!(applications.first_wakeup(), None);
    }

    #[test]
    fn all_are_done_when_the_last_is_wherever_it_moved() {
        let (mut applications, _) = with([true, true, true, false].map(|done| Fixed { wakeup: None, done }));
        assert!(!applications.are_done());
        applications.swap_remove(0);
        assert!(!applications.are_done());
        applications[0].workload = Box::new(Fixed { wakeup: None, done: true });
        assert!(applications.are_done());
    }
}
