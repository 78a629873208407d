//! The files of the playground, which the command carries.

use anabranch_workbench::failure::Failure;
use std::borrow::Cow;

/// `(name, bytes)` of every file in `crates/playground/site/`.
static SITE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// The module; it is there if it was built before the command.
const MODULE: &str = "engine.wasm";

/// The digest of the sources that the module is made from, as 32 digits that stand in it; empty outside a checkout.
const SOURCES: &str = env!("ANABRANCH_MODULE");

/// In `index.html`, where the policy admits the scripts of a report.
const SCRIPTS: &str = "{{report-scripts}}";

/// A file of the site.
#[derive(Clone, Debug)]
pub struct File {
    /// Without a folder.
    pub name: &'static str,
    /// For a browser.
    pub media_type: &'static str,
    /// Content of the file.
    pub bytes: Cow<'static, [u8]>,
}

/// All files: the playground's own, and the scripts that it shares with a report.
///
/// # Errors
/// The command was built without the module, or with one of other sources.
pub fn files() -> Result<Vec<File>, Failure> {
    let module = SITE.iter().find(|(name, _)| *name == MODULE);
    if let Some(message) = refusal(module.map(|(_, bytes)| *bytes), SOURCES) {
        let help = "in a clone of the repository: `crates/playground/build.sh`, then `cargo build --release` again";
        return Err(Failure::missing("anabranch::playground", message.to_owned(), Some(help.to_owned())));
    }
    let shared = anabranch_report::modules().into_iter();
    let shared =
        shared.map(|(name, text)| File { name, media_type: media_type(name), bytes: text.into_bytes().into() });
    Ok(SITE.iter().map(|(name, bytes)| file(name, bytes)).chain(shared).collect())
}

/// Why the module cannot be served, if so.
fn refusal(module: Option<&[u8]>, sources: &str) -> Option<&'static str> {
    match module {
        None => Some("this program was built without the playground's WebAssembly module"),
        Some(bytes) if !sources.is_empty() && !contains(bytes, sources.as_bytes()) => {
            Some("this program was built with a WebAssembly module of other sources")
        }
        Some(_) => None,
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

fn file(name: &'static str, bytes: &'static [u8]) -> File {
    let bytes = match core::str::from_utf8(bytes) {
        Ok(text) if text.contains(SCRIPTS) => {
            Cow::Owned(text.replace(SCRIPTS, &anabranch_report::script_sources().join(" ")).into_bytes())
        }
        _ => Cow::Borrowed(bytes),
    };
    File { name, media_type: media_type(name), bytes }
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn a_module_of_other_sources_is_refused() {
        let module = b"\0asm \0\0 0123456789abcdef0123456789abcdef \0";
        assert_eq!(refusal(Some(module), "0123456789abcdef0123456789abcdef"), None);
        assert!(refusal(Some(module), "1123456789abcdef0123456789abcdef").unwrap().contains("other sources"));
        assert!(refusal(None, "").unwrap().contains("without"));
        // A packed crate has no sources to compare.
        assert_eq!(refusal(Some(module), ""), None);
    }
}
