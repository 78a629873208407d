//! Threads for runs.

use anabranch_run::Pool;
use anabranch_units::Rng;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many threads, each of which takes the next task when it is done with one.
#[derive(Debug)]
pub struct Threads {
    count: NonZeroUsize,
    mixed: Option<Mixed>,
    /// Lists of tasks so far: each has an order of its own.
    lists: AtomicUsize,
}

/// Tasks in random order: each block of so many is mixed in itself.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Tasks of a block, at least one.
    pub block: usize,
}

impl Mixed {
    /// The order of `count` tasks, which are the list of number `list`.
    fn order(self, list: usize, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        let mut rng = Rng::stream(self.seed, &format!("order of runs {list}"));
        for block in order.chunks_mut(self.block.max(1)) {
            // Fisher and Yates: every order is as likely as any other.
            (1..block.len()).rev().for_each(|last| block.swap(last, rng.below(last as u64 + 1) as usize));
        }
        order
    }
}

impl Threads {
    /// `count` threads; one per core if `None`.
    pub fn new(count: Option<NonZeroUsize>) -> Self {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { count: count.unwrap_or_else(cores), mixed: None, lists: AtomicUsize::new(0) }
    }

    /// The same, with tasks taken in random order.
    pub fn mixed(self, mixed: Option<Mixed>) -> Self {
        Self { mixed, ..self }
    }
}

impl Pool for Threads {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let list = self.lists.fetch_add(1, Ordering::Relaxed);
        let order = self.mixed.map(|mixed| mixed.order(list, count));
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                task(order.as_ref().map_or(index, |order| order[index]));
            }
        };
        std::thread::scope(|scope| {
            (1..self.count.get().min(count)).for_each(|_| drop(scope.spawn(work)));
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
            Threads::new(NonZeroUsize::new(threads)).for_each(100, &|i| done.lock().unwrap().push(i));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>());
        }
        Threads::new(None).for_each(0, &|_| unreachable!("there is no task"));
    }

    #[test]
    fn blocks_are_mixed_and_stay_in_order() {
        let order = |seed| Mixed { seed, block: 5 }.order(0, 12);
        for block in [0..5, 5..10, 10..12] {
            let mut tasks = order(1)[block.clone()].to_vec();
            tasks.sort_unstable();
            assert_eq!(tasks, block.collect::<Vec<_>>());
        }
        assert_eq!(order(1), order(1), "a seed is an order");
        // Each task is the first of its block about equally often.
        let first = |task| (0..1000).filter(|seed| order(*seed)[0] == task).count();
        assert!((0..5).all(|task| (140..=260).contains(&first(task))), "{:?}", [0, 1, 2, 3, 4].map(first));
    }

    /// `--repeat auto` gives ten repetitions at a time: they come in other orders than the ten before.
    #[test]
    fn every_list_of_tasks_has_an_order_of_its_own() {
        let threads = Threads::new(NonZeroUsize::new(1)).mixed(Some(Mixed { seed: 1, block: 30 }));
        let order = || {
            let done = Mutex::new(Vec::new());
            threads.for_each(30, &|i| done.lock().unwrap().push(i));
            done.into_inner().unwrap()
        };
        assert_ne!(order(), order());
    }
}
