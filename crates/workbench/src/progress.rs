//! Progress of runs, for a user who waits.

/// A place that shows how many runs are done. Threads that make runs call it.
pub trait Progress: Sync {
    /// Shows that `done` of `planned` runs are done.
    fn advance(&self, done: usize, planned: usize);

    /// Shows a sentence to a user who waits.
    fn say(&self, text: &str);

    /// Shows a sentence, whether a user waits or not.
    fn warn(&self, text: &str);

    /// Takes away what was shown, at the end.
    fn end(&self);
}

/// Shows nothing.
impl Progress for () {
    fn advance(&self, _: usize, _: usize) {}

    fn say(&self, _: &str) {}

    fn warn(&self, _: &str) {}

    fn end(&self) {}
}
