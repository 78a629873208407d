//! The subflows of a connection, each with its window and the algorithm's state.

use crate::window::WindowState;
use anabranch_plugin::congestion::Window;
use anabranch_plugin::schedule::PathView;
use anabranch_units::PathId;

/// One subflow.
#[derive(Clone, Debug)]
pub struct Flow<T> {
    /// Path of the flow.
    pub id: PathId,
    /// Window of the flow.
    pub window: WindowState,
    /// The algorithm's state.
    pub state: T,
}

/// The subflows that joined, in the order of their paths.
#[derive(Clone, Debug)]
pub struct Flows<T>(Vec<Flow<T>>);

impl<T> Default for Flows<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Flows<T> {
    /// Adds a subflow; a known one is replaced.
    pub fn join(&mut self, id: PathId, initial_window: u32, state: T) {
        self.leave(id);
        let at = self.0.partition_point(|f| f.id < id);
        // There are few, and they seldom come: no room for more than there are.
        self.0.reserve_exact(1);
        self.0.insert(at, Flow { id, window: WindowState::new(initial_window), state });
    }

    /// Removes a subflow, and gives its memory back.
    pub fn leave(&mut self, id: PathId) {
        self.0.retain(|f| f.id != id);
        self.0.shrink_to_fit();
    }

    /// Slow start on path `id` ends at `ssthresh` packets at the latest.
    pub fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        if let Some(flow) = self.get_mut(id) {
            flow.window.set_threshold(ssthresh);
        }
    }

    /// Path `id` used no more than `used` packets of its window.
    pub fn give_back(&mut self, id: PathId, used: u32) {
        if let Some(flow) = self.get_mut(id) {
            flow.window.give_back(used);
        }
    }

    /// The subflow on path `id`.
    pub fn get(&self, id: PathId) -> Option<&Flow<T>> {
        self.index(id).map(|i| &self.0[i])
    }

    /// The subflow on path `id`, mutable.
    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Flow<T>> {
        self.index(id).map(|i| &mut self.0[i])
    }

    /// All subflows, in the order of their paths.
    pub fn iter(&self) -> core::slice::Iter<'_, Flow<T>> {
        self.0.iter()
    }

    /// The window of path `id`; one packet if it never joined.
    pub fn window(&self, id: PathId) -> Window {
        let known = self.get(id).map(|f| f.window.grant(None));
        known.unwrap_or(Window { cwnd: 1, ssthresh: u32::MAX, pacing: None })
    }

    fn index(&self, id: PathId) -> Option<usize> {
        id.place_in(&self.0, |f| f.id)
    }
}

/// The view of path `id`.
pub fn view_of(paths: &[PathView], id: PathId) -> Option<&PathView> {
    id.place_in(paths, |p| p.id).map(|i| &paths[i])
}
