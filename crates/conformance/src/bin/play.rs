//! Plays scripts against the engine: `cargo run -p anabranch-conformance --bin play -- tests/conformance/…/name.script`.
//! Without arguments it plays all.

use anabranch_conformance::suite;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let (root, files) = if named.is_empty() {
        let root = suite::root();
        let files = suite::files(&root).unwrap_or_default();
        (root, files)
    } else {
        (Path::new("").to_path_buf(), named)
    };
    let mut failed = 0;
    for file in &files {
        match suite::load(&root, file).and_then(|script| suite::on_the_engine(&script)) {
            Ok(()) => println!("passes  {file}"),
            Err(why) => {
                failed += 1;
                println!("FAILS   {file}\n{why}");
            }
        }
    }
    println!("{} scripts, {failed} failed", files.len());
    ExitCode::from(u8::from(failed > 0))
}
