//! `anabranch licences` prints the licence of everything that the command, the playground and the Python package link.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Linked programs: manifest, package, target.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("Cargo.toml", "anabranch-cli", "x86_64-unknown-linux-gnu"),
    ("Cargo.toml", "anabranch-cli", "aarch64-apple-darwin"),
    ("Cargo.toml", "anabranch-playground", "wasm32-unknown-unknown"),
    ("crates/py/Cargo.toml", "anabranch-py", "x86_64-unknown-linux-gnu"),
];

/// Scripts inside the pages, and the font of figures.
const ASSETS: [(&str, &str, &str); 3] = [
    ("D3", "ISC", "d3.LICENSE"),
    ("Observable Plot", "ISC", "plot.LICENSE"),
    ("DejaVu Sans", "Bitstream Vera", "font.LICENSE"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
    source: Option<String>,
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// `name version` of each crate of others that is linked.
fn linked() -> BTreeSet<String> {
    let of = |(manifest, package, target): (&str, &str, &str)| {
        let tree = ["tree", "--locked", "--manifest-path", manifest, "-p", package, "--target", target];
        let text =
            cargo(&[&tree[..], &["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]].concat());
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (name, version) = (words.next()?, words.next()?.trim_start_matches('v'));
            (!name.starts_with("anabranch-")).then(|| format!("{name} {version}"))
        };
        text.lines().filter_map(line).collect::<Vec<_>>()
    };
    PROGRAMS.into_iter().flat_map(of).collect()
}

/// The texts of licences in a crate's folder.
fn texts(folder: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_licence = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().to_ascii_uppercase();
        path.is_file()
            && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"].iter().any(|word| name.starts_with(word))
    };
    let text = |path: &PathBuf| {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).replace('\r', "");
        let lines: Vec<&str> = text.trim_matches('\n').lines().map(str::trim_end).collect();
        lines.join("\n")
    };
    files.iter().filter(is_licence).map(text).filter(|text| !text.is_empty()).collect()
}

/// The page: what is in the program, then each text once, with the names that it is for.
fn page() -> String {
    let ask = ["metadata", "--format-version", "1", "--locked", "--all-features", "--manifest-path"];
    let packages = ["Cargo.toml", "crates/py/Cargo.toml"]
        .map(|manifest| serde_json::from_str::<Metadata>(&cargo(&[&ask[..], &[manifest]].concat())).unwrap().packages);
    let packages: BTreeMap<String, Package> = packages
        .into_iter()
        .flatten()
        .filter(|package| package.source.is_some())
        .map(|package| (format!("{} {}", package.name, package.version), package))
        .collect();
    let mut lines = String::new();
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |name: String, licence: &str, found: Vec<String>| {
        lines.push_str(&format!("{name}: {licence}\n"));
        found.into_iter().for_each(|text| by_text.entry(text).or_default().push(name.clone()));
    };
    for name in linked() {
        let package = &packages[&name];
        let licence = package.license.clone().unwrap_or_default();
        add(name, &licence, texts(package.manifest_path.parent().unwrap()));
    }
    for (name, licence, file) in ASSETS {
        let text = fs::read_to_string(root().join("crates/report/assets").join(file)).unwrap();
        add(name.into(), licence, vec![text.trim().to_owned()]);
    }
    let texts = by_text.iter().map(|(text, names)| format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", ")));
    format!(
        "Anabranch is under MIT or Apache-2.0, as you choose. These are in the program, the playground and the Python package;\n\
         the texts of their licences follow. Rust's standard library is under MIT or Apache-2.0; glibc, in the static\n\
         program, is under LGPL-2.1-or-later; packaging/release.sh links the program again with another glibc.\n\n{lines}{}",
        texts.collect::<String>()
    )
}

/// `BLESS=1` writes the file.
#[test]
fn the_licences_are_those_of_what_is_linked() {
    let (file, page) = (root().join("crates/cli/licences.txt"), page());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept == page, "BLESS=1 cargo test -p anabranch-cli --test licences writes crates/cli/licences.txt");
    let without = page.lines().take_while(|line| !line.starts_with('=')).filter(|line| line.ends_with(": "));
    assert_eq!(without.collect::<Vec<_>>(), Vec::<&str>::new(), "each has a licence");
}
