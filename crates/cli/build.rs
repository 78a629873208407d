//! Embeds the playground's page.

use sources::entries;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[allow(dead_code, reason = "the workbench's build script has the other digest")]
mod sources;

fn main() {
    // The folder stands here by a link, so that the packed crate has it too; `root` is of a checkout alone.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.join("../..");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(target.join("site.rs"), site_list(&own.join("site"))).expect("OUT_DIR takes files");
    println!("cargo:rustc-env=ANABRANCH_MODULE={}", sources::module(own, &root));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=sources.rs");
}

/// A Rust array of `(name, bytes)`, in the order of the names.
fn site_list(folder: &Path) -> String {
    println!("cargo:rerun-if-changed={}", folder.display());
    let line = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        format!("    ({name:?}, include_bytes!({:?})),\n", path.to_string_lossy())
    };
    format!("&[\n{}]\n", entries(folder).into_iter().map(line).collect::<String>())
}
