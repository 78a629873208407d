//! `deny.toml` admits every dependency: licences, bans, sources. The command and the Python package are built alike. ARCHITECTURE.md has the
//! crates' dependencies.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[derive(Deserialize)]
struct Deny {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
    /// Older versions of doubled crates, as `NAME@VERSION`.
    skip: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Crates that are not ours and that a program with these schedulers builds, those for macros too.
const FOREIGN: [&str; 4] = ["libm", "rand_core", "rand_pcg", "xxhash-rust"];

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    /// None of a library that is needed outside tests and build scripts.
    kind: Option<String>,
}

fn rules() -> Deny {
    toml::from_str(&fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
}

/// Packages of the workspace with this manifest.
fn packages(manifest: &str) -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut asked = Command::new(cargo);
    let asked = asked.current_dir(root()).args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let output = asked.args(["--manifest-path", manifest]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Metadata>(&output.stdout).unwrap().packages
}

/// True if `expression` (SPDX; `/` is an old form of OR) can be met by `allowed` licences.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = both(rest, allowed);
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        met |= both(rest, allowed);
    }
    met
}

fn both(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = licence(rest, allowed);
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        met &= licence(rest, allowed);
    }
    met
}

fn licence(rest: &mut &[&str], allowed: &[String]) -> bool {
    let Some((word, behind)) = rest.split_first() else { return false };
    *rest = behind;
    if *word == "(" {
        let met = either(rest, allowed);
        let closed = rest.first() == Some(&")");
        *rest = rest.get(1..).unwrap_or_default();
        return met && closed;
    }
    if let ["WITH", exception, behind @ ..] = *rest {
        *rest = behind;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.iter().any(|one| one == word)
}

#[test]
fn an_expression_is_met_by_what_is_allowed() {
    let allowed = ["MIT", "ISC"].map(str::to_owned);
    for met in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND ISC", "A WITH x OR MIT"] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for unmet in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH x", "(MIT", "MIT ISC", "GPL-3.0 OR (MIT AND A)"] {
        assert!(!is_met(unmet, &allowed), "{unmet}");
    }
}

#[test]
fn licences_bans_and_sources_are_admitted() {
    let Deny { licenses, bans, sources } = rules();
    let banned: BTreeMap<&str, &str> = bans.deny.iter().map(|ban| (ban.name.as_str(), ban.reason.as_str())).collect();
    // The native half of the Python package is a workspace of its own.
    let [packages, of_python] = ["Cargo.toml", "crates/py/Cargo.toml"].map(packages);
    let has = |packages: &[Package], wanted: &str| packages.iter().any(|package| package.name == wanted);
    assert!(packages.len() > 100 && has(&of_python, "pyo3"), "cargo metadata lists all of them");
    for Package { name, license, source, dependencies, .. } in packages.iter().chain(&of_python) {
        let license = license.as_deref().unwrap_or_default();
        assert!(is_met(license, &licenses.allow), "{name} is under `{license}`, which deny.toml does not allow");
        assert!(!banned.contains_key(name.as_str()), "{name} is banned: {}", banned[name.as_str()]);
        let registry = source.as_deref().map(|source| source.trim_start_matches("registry+"));
        let known = registry.is_none_or(|registry| sources.allow_registry.iter().any(|allowed| allowed == registry));
        assert!(known, "{name} comes from {source:?}, which deny.toml does not allow");
        let wildcard = dependencies.iter().find(|dependency| source.is_none() && dependency.req == "*");
        assert!(wildcard.is_none(), "{name} takes any version of {}", wildcard.unwrap().name);
    }
}

/// All versions of a crate but the newest are in the list, with what holds them back; and no other is.
#[test]
fn a_crate_that_is_there_twice_has_a_reason() {
    let mut versions: BTreeMap<String, Vec<Vec<u64>>> = BTreeMap::new();
    for package in packages("Cargo.toml") {
        let numbers = package.version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect();
        versions.entry(package.name).or_default().push(numbers);
    }
    let mut older = BTreeSet::new();
    for (name, mut versions) in versions {
        versions.sort();
        versions.pop();
        let text = |version: Vec<u64>| version.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
        older.extend(versions.into_iter().map(|version| format!("{name}@{}", text(version))));
    }
    let skipped: BTreeSet<String> = rules().bans.skip.into_iter().map(|ban| ban.name).collect();
    assert_eq!(skipped, older, "`skip` of deny.toml");
    assert!(rules().bans.skip.iter().all(|ban| !ban.reason.is_empty()));
}

/// The Python package has the workbench, and nothing of the command line, of real links and of kernels.
#[test]
fn the_python_package_needs_no_command_line() {
    let of_python = packages("crates/py/Cargo.toml");
    assert!(of_python.iter().any(|package| package.name == "anabranch-workbench"));
    for name in ["anabranch-cli", "anabranch-lab", "anabranch-link", "clap", "indicatif", "nix", "ring", "tun-rs"] {
        assert!(of_python.iter().all(|package| package.name != name), "{name}");
    }
}

/// A transport that is not ours drives a scheduler or a congestion control: it builds neither the engine nor what that needs.
#[test]
fn plug_ins_need_few_foreign_crates() {
    for name in ["anabranch-schedulers", "anabranch-congestion"] {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut tree = Command::new(cargo);
        tree.current_dir(root()).args(["tree", "--locked", "--package", name, "--edges", "normal,build"]);
        let output = tree.args(["--prefix", "none", "--format", "{p}"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let needed: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        let (ours, foreign): (BTreeSet<&str>, BTreeSet<&str>) =
            needed.into_iter().partition(|needed| needed.starts_with("anabranch-"));
        assert_eq!(ours, BTreeSet::from([name, "anabranch-plugin", "anabranch-units"]));
        assert_eq!(foreign, BTreeSet::from(FOREIGN), "{name}");
    }
}

#[test]
fn the_python_package_is_built_as_the_command_is() {
    let [mut of_command, of_python] = ["Cargo.toml", "crates/py/Cargo.toml"].map(|manifest| {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        toml::from_str::<toml::Table>(&text).unwrap()["profile"].clone()
    });
    let packages = packages("crates/py/Cargo.toml");
    for profile in ["release", "dist"] {
        let of_command = &mut of_command[profile];
        let levels = of_command["package"].as_table_mut().unwrap();
        levels.retain(|name, _| packages.iter().any(|package| package.name == *name));
        assert_eq!(*of_command, of_python[profile], "{profile}");
    }
}

/// The crates of both workspaces, each with those of ours that it depends on outside its tests.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let ours = |name: &str| name.strip_prefix("anabranch-").map(str::to_owned);
    let packages = ["Cargo.toml", "crates/py/Cargo.toml"].into_iter().flat_map(packages);
    let of = |package: Package| {
        let needed = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        Some((ours(&package.name)?, needed.filter_map(|dependency| ours(&dependency.name)).collect()))
    };
    packages.filter_map(of).filter(|(name, _)| !["benches", "examples"].contains(&&**name)).collect()
}

/// Everything below a crate.
fn below<'a>(crates: &'a BTreeMap<String, BTreeSet<String>>, name: &str, found: &mut BTreeSet<&'a str>) {
    for needed in crates.get(name).into_iter().flatten() {
        if found.insert(needed) {
            below(crates, needed, found);
        }
    }
}

/// A Mermaid graph of `crates`, without the arrows that follow from others.
fn picture(crates: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut lines = vec!["```mermaid".to_owned(), "graph TD".to_owned()];
    for (name, needed) in crates {
        let mut further = BTreeSet::new();
        needed.iter().for_each(|one| below(crates, one, &mut further));
        let arrows: Vec<&str> = needed.iter().map(String::as_str).filter(|one| !further.contains(one)).collect();
        lines.extend((!arrows.is_empty()).then(|| format!("    {name} --> {}", arrows.join(" & "))));
    }
    lines.push("```".to_owned());
    lines.join("\n")
}

#[test]
fn an_arrow_that_follows_from_others_is_left_out() {
    let of = |(name, needed): (&str, &[&str])| (name.to_owned(), needed.iter().map(|one| (*one).to_owned()).collect());
    let crates = [("a", &["b", "c", "d"][..]), ("b", &["c"]), ("c", &[]), ("d", &["c"])].map(of).into_iter().collect();
    assert_eq!(picture(&crates), "```mermaid\ngraph TD\n    a --> b & d\n    b --> c\n    d --> c\n```");
}

/// The picture of ARCHITECTURE.md; `BLESS=1` draws it.
#[test]
fn the_picture_of_the_crates_is_true() {
    let (page, drawn) = (root().join("ARCHITECTURE.md"), picture(&crates()));
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- crates -->\n").expect("where the picture begins");
    let (_, after) = rest.split_once("\n<!-- /crates -->").expect("where it ends");
    let wanted = format!("{before}<!-- crates -->\n{drawn}\n<!-- /crates -->{after}");
    if std::env::var_os("BLESS").is_some() {
        return fs::write(&page, wanted).unwrap();
    }
    assert!(text == wanted, "BLESS=1 cargo test -p anabranch-cli --test dependencies draws:\n{drawn}");
}
