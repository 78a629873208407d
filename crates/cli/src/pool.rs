//! Threads for runs.

use anabranch_run::Pool;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many threads, each of which takes the next task when it is done with one.
#[derive(Clone, Copy, Debug)]
pub struct Threads(NonZeroUsize);

impl Threads {
    /// `count` threads; one per core if `None`.
    pub fn new(count: Option<NonZeroUsize>) -> Self {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self(count.unwrap_or_else(cores))
    }
}

impl Pool for Threads {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                task(index);
            }
        };
        std::thread::scope(|scope| {
            (1..self.0.get().min(count)).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_task_is_done_once() {
        for threads in [1, 2, 7] {
            let done = Mutex::new(Vec::new());
            Threads(NonZeroUsize::new(threads).unwrap()).for_each(100, &|i| done.lock().unwrap().push(i));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>());
        }
        Threads::new(None).for_each(0, &|_| unreachable!("there is no task"));
    }
}
