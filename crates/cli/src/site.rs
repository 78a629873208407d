//! The files of the playground, which the command carries.

use crate::failure::Failure;
use std::borrow::Cow;

/// `(name, bytes)` of every file in `crates/playground/site/`.
static SITE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// The module; it is there if it was built before the command.
const MODULE: &str = "engine.wasm";

/// In `index.html`, where the policy admits the scripts of a report.
const SCRIPTS: &str = "{{report-scripts}}";

/// A file of the site.
#[derive(Clone, Debug)]
pub struct File {
    /// Without a folder.
    pub name: &'static str,
    /// For a browser.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: Cow<'static, [u8]>,
}

/// All files.
///
/// # Errors
/// The command was built without the module.
pub fn files() -> Result<Vec<File>, Failure> {
    if !SITE.iter().any(|(name, _)| *name == MODULE) {
        let message = "this program was built without the playground's WebAssembly module".to_owned();
        let help = "in a clone of the repository: `crates/playground/build.sh`, then `cargo build --release` again";
        return Err(Failure::missing("anabranch::playground", message, Some(help.to_owned())));
    }
    Ok(SITE.iter().map(|(name, bytes)| file(name, bytes)).collect())
}

fn file(name: &'static str, bytes: &'static [u8]) -> File {
    let media_type = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    };
    let bytes = match core::str::from_utf8(bytes) {
        Ok(text) if text.contains(SCRIPTS) => {
            Cow::Owned(text.replace(SCRIPTS, &anabranch_report::script_sources().join(" ")).into_bytes())
        }
        _ => Cow::Borrowed(bytes),
    };
    File { name, media_type, bytes }
}
