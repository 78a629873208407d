//! A digest of the sources that the module is made from.

use std::path::Path;

#[allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "a build script reads files; the command's has other digests, too"
)]
mod sources;

fn main() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rustc-env=ANABRANCH_MODULE={}", sources::module(own, &own.join("../..")));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=sources.rs");
}
