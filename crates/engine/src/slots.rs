//! A table whose entries are found by index.

/// Names an entry of a `Slots`. Never used again after the entry is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    serial: u64,
    index: usize,
}

impl Handle {
    /// The entry's place in the table: a small number, which another entry has when this one is gone.
    pub fn index(self) -> usize {
        self.index
    }
}

/// Entries in the places that they keep until they are removed. Each is allocated apart: one that is gone gives its memory back, and the
/// table takes little as it grows.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<(u64, Box<T>)>>,
    free: Vec<usize>,
    /// Entries so far.
    serial: u64,
}

impl<T> Slots<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), serial: 0 }
    }

    /// Entries inside.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// An entry.
    pub fn get(&self, handle: Handle) -> Option<&T> {
        match self.slots.get(handle.index)? {
            Some((serial, entry)) if *serial == handle.serial => Some(entry),
            _ => None,
        }
    }

    /// The entry in a [place](Handle::index) of the table.
    pub fn at(&self, index: usize) -> Option<(Handle, &T)> {
        let (serial, entry) = self.slots.get(index)?.as_ref()?;
        Some((Handle { serial: *serial, index }, entry))
    }

    /// An entry, to change it.
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.slots.get_mut(handle.index)? {
            Some((serial, entry)) if *serial == handle.serial => Some(entry),
            _ => None,
        }
    }

    /// Puts an entry in.
    pub fn insert(&mut self, entry: T) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let handle = Handle { serial: self.serial, index };
        self.slots[index] = Some((self.serial, Box::new(entry)));
        self.serial += 1;
        handle
    }

    /// Takes an entry out.
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        self.get(handle)?;
        self.free.push(handle.index);
        self.slots[handle.index].take().map(|(_, entry)| *entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_and_a_handle_is_not() {
        let mut slots = Slots::new();
        let [a, b] = [slots.insert('a'), slots.insert('b')];
        assert_eq!((slots.remove(a), slots.remove(a), slots.len()), (Some('a'), None, 1));
        let c = slots.insert('c');
        assert_eq!((slots.get(a), slots.get(b)), (None, Some(&'b')));
        assert_eq!(slots.get_mut(c), Some(&mut 'c'));
        assert_eq!((slots.at(a.index()), slots.at(b.index()), slots.at(2)), (Some((c, &'c')), Some((b, &'b')), None));
        assert!(a < b && b < c && slots.slots.len() == 2);
    }
}
