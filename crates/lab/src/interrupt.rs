//! SIGINT and SIGTERM: a run is torn down in order, and the user gets a message.

use crate::LabError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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

/// From now on the first signal requests a stop; the second ends the process at once.
///
/// # Errors
/// The signal handlers cannot be installed.
pub fn listen() -> Result<(), LabError> {
    static LISTENS: OnceLock<()> = OnceLock::new();
    if LISTENS.set(()).is_err() {
        // With two handlers, the first signal would count as the second.
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, CODE, Arc::clone(asked()))
            .and_then(|_| flag::register(signal, Arc::clone(asked())))
            .map_err(LabError::system("catching signals"))?;
    }
    Ok(())
}

/// A flag that SIGHUP sets from now on, instead of ending the process.
///
/// # Errors
/// The signal handler cannot be installed.
pub fn on_hangup() -> Result<Arc<AtomicBool>, LabError> {
    let came = Arc::new(AtomicBool::new(false));
    flag::register(SIGHUP, Arc::clone(&came)).map_err(LabError::system("catching signals"))?;
    Ok(came)
}

/// The flag that the first signal sets.
pub fn flag() -> &'static AtomicBool {
    asked()
}

/// A signal has come.
pub fn is_asked() -> bool {
    asked().load(Ordering::Relaxed)
}
