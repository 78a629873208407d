//! Prints `docs/lab/purposes.md`.

use anabranch_run::{Serial, VirtualTime};
use anabranch_studies::purposes;

fn main() -> Result<(), String> {
    print!("{}", purposes::page(&purposes::measure(&VirtualTime::default(), &Serial)?)?);
    Ok(())
}
