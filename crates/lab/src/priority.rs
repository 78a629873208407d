//! The loop's priority over other threads.

/// While it lives, the calling thread has the lowest nice value that the system permits. Not a real-time class: a thread
/// of such a class that never sleeps is throttled for 50 ms in every second, which makes a burst.
#[derive(Debug)]
pub(crate) struct Priority {
    /// The former nice value.
    before: Option<i32>,
}

/// The lowest nice value.
const FIRST: i32 = -20;

impl Priority {
    /// Raises the priority now.
    pub fn raise() -> Self {
        // Linux keeps a nice value per thread; "none" is the calling one.
        let before = rustix::process::getpriority_process(None).ok();
        let raised = before.filter(|_| rustix::process::setpriority_process(None, FIRST).is_ok());
        Self { before: raised }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Lowering the priority is always permitted.
            let _ = rustix::process::setpriority_process(None, before);
        }
    }
}
