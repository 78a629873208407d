//! Plays scripts against the engine:
//! `cargo run -p anabranch-conformance --bin play -- tests/conformance/…/name.script`. Without files it plays all; with
//! `-v` it also shows the exchange of scripts that pass.

use anabranch_conformance::suite;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (flags, named): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word == "-v");
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
            Ok(exchange) => {
                println!("passes  {file}");
                exchange.iter().filter(|_| !flags.is_empty()).for_each(|line| println!("    {line}"));
            }
            Err(why) => {
                failed += 1;
                println!("FAILS   {file}\n{why}");
            }
        }
    }
    println!("{} scripts, {failed} failed", files.len());
    ExitCode::from(u8::from(failed > 0))
}
