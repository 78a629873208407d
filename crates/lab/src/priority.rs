//! Precedence for the loop over other threads.

/// While it lives, the calling thread goes before others, where the system lets it. A nice value, not a real-time class: one
/// of those is held back for 50 ms in every second in which it does not rest, which is a burst.
#[derive(Debug)]
pub(crate) struct Priority {
    /// What it was.
    before: Option<i32>,
}

/// The lowest nice value.
const FIRST: i32 = -20;

impl Priority {
    /// From now on.
    pub fn raise() -> Self {
        // Linux keeps a nice value for each thread; "none" is the calling one.
        let before = rustix::process::getpriority_process(None).ok();
        let raised = before.filter(|_| rustix::process::setpriority_process(None, FIRST).is_ok());
        Self { before: raised }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Going back is always allowed.
            let _ = rustix::process::setpriority_process(None, before);
        }
    }
}
