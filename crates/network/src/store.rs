//! The items under way.

/// Where an item lies in a [`Store`].
pub(crate) type Place = u32;

/// Items that move in once and out once, while small packets that name their places pass through the queues.
#[derive(Clone, Debug)]
pub(crate) struct Store<T> {
    items: Vec<Option<T>>,
    free: Vec<Place>,
}

impl<T> Store<T> {
    /// An empty store.
    pub(crate) fn new() -> Self {
        Self { items: vec![], free: vec![] }
    }

    /// Puts an item in.
    pub(crate) fn put(&mut self, item: T) -> Place {
        match self.free.pop() {
            Some(place) => {
                self.items[place as usize] = Some(item);
                place
            }
            None => {
                self.items.push(Some(item));
                (self.items.len() - 1) as Place
            }
        }
    }

    /// Takes an item out. Each place is taken once.
    pub(crate) fn take(&mut self, place: Place) -> Option<T> {
        let item = self.items[place as usize].take();
        debug_assert!(item.is_some(), "taken twice");
        self.free.push(place);
        item
    }

    /// Items inside.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

impl<T: Clone> Store<T> {
    /// Another copy of an item, if it is there.
    pub(crate) fn copy(&mut self, place: Place) -> Option<Place> {
        let item = self.items[place as usize].clone()?;
        Some(self.put(item))
    }
}
