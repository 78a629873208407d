//! A table of values with short names that are used again.

/// Values by handle. Handles of values that were taken are given again, the last one first.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.places[handle as usize] = Some(value);
            return handle;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    /// # Panics
    /// If `handle` has no value.
    pub fn get(&self, handle: u32) -> &T {
        self.places[handle as usize].as_ref().expect("the handle is in use")
    }

    /// # Panics
    /// If `handle` has no value.
    pub fn get_mut(&mut self, handle: u32) -> &mut T {
        self.places[handle as usize].as_mut().expect("the handle is in use")
    }

    /// # Panics
    /// If `handle` has no value.
    pub fn take(&mut self, handle: u32) -> T {
        let value = self.places[handle as usize].take().expect("the handle is in use");
        self.free.push(handle);
        value
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }
}
