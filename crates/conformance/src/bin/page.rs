//! Prints `docs/lab/conformance.md`.

use anabranch_conformance::mutation::Mutations;
use anabranch_conformance::{page, suite};

fn main() -> Result<(), String> {
    let root = suite::root();
    let mutations = Mutations::load(&root)?;
    print!("{}", page::page(&suite::all(&root)?, &mutations));
    Ok(())
}
