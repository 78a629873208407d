//! The loop's priority over other threads, and the precision of its timers.

use std::num::NonZeroU64;

/// While it lives, the calling thread has the lowest nice value that the system permits, and timers that do not wait for others. Not a
/// real-time class: a thread of such a class that never sleeps is throttled for 50 ms in every second, which makes a burst.
#[derive(Debug)]
pub(crate) struct Priority {
    /// The former nice value.
    before: Option<i32>,
}

/// The lowest nice value.
const FIRST: i32 = -20;
/// Nanoseconds by which a timer may be late so that it shares a wake-up: PR_SET_TIMERSLACK, 50 µs by default.
const SLACK: NonZeroU64 = NonZeroU64::MIN;

impl Priority {
    /// Raises the priority now.
    pub fn raise() -> Self {
        // Linux keeps a nice value per thread; "none" is the calling one.
        let before = rustix::process::getpriority_process(None).ok();
        let raised = before.filter(|_| rustix::process::setpriority_process(None, FIRST).is_ok());
        // Only a seccomp filter refuses it; timers then keep the default slack.
        let _ = rustix::thread::set_current_timer_slack(Some(SLACK));
        Self { before: raised }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Lowering the priority is always permitted.
            let _ = rustix::process::setpriority_process(None, before);
        }
        // None means the default of the thread.
        let _ = rustix::thread::set_current_timer_slack(None);
    }
}
