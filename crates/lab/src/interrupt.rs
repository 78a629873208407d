//! SIGINT and SIGTERM: a run is torn down in order, and the user is told.

use crate::LabError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Exit code of an interrupted program: 128 + SIGINT, as shells count.
const CODE: i32 = 130;

/// Set by the first signal.
fn asked() -> &'static Arc<AtomicBool> {
    static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    ASKED.get_or_init(Arc::default)
}

/// From now on the first signal asks runs to stop; the second ends the process at once.
///
/// # Errors
/// The system does not let signals be caught.
pub fn listen() -> Result<(), LabError> {
    static LISTENS: OnceLock<()> = OnceLock::new();
    if LISTENS.set(()).is_err() {
        // Twice, the first signal would count as the second.
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, CODE, Arc::clone(asked()))
            .and_then(|_| flag::register(signal, Arc::clone(asked())))
            .map_err(LabError::system("catching signals"))?;
    }
    Ok(())
}

/// Set once a signal has come.
pub fn flag() -> &'static AtomicBool {
    asked()
}

/// A signal has come.
pub fn is_asked() -> bool {
    asked().load(Ordering::Relaxed)
}
