//! The monotonic clock as the world's time.

use anabranch_units::{Duration, Instant};
use nix::poll::{PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use std::os::fd::BorrowedFd;

/// Monotonic time since the world's zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

/// How early sleeping stops before a deadline: a virtual machine wakes a thread 25 to 90 µs late.
const EARLY: Duration = Duration::from_micros(100);

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Time since zero.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Waits until `deadline`, or until one of `inputs` is readable. The last microseconds are spent spinning.
    pub fn wait(&self, deadline: Instant, inputs: &[BorrowedFd<'_>]) {
        let mut polled: Vec<PollFd<'_>> = inputs.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        loop {
            let left = deadline.since(self.now());
            if left.is_zero() {
                return;
            }
            let sleep = left.saturating_sub(EARLY);
            let sleep = TimeSpec::from_duration(std::time::Duration::from_nanos(sleep.as_nanos()));
            match nix::poll::ppoll(&mut polled, Some(sleep), None) {
                Ok(0) => {}
                // Interrupted, or an input is readable.
                _ => return,
            }
        }
    }
}
