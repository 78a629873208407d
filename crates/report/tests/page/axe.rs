//! The findings of axe-core in the page. It is fetched for this test alone and never part of a page.

use super::browser::Browser;
use super::opened;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The release that is fetched from the npm registry.
const AXE: &str = "axe-core@4.10.3";

/// The script, in target/; `None` where npm or its registry cannot be reached, which is said. Tests of one run wait for one
/// another here, and the file appears whole, so that none reads it half unpacked.
pub fn script() -> Option<String> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(format!("{AXE}.min.js"));
    SCRIPT
        .get_or_init(|| {
            if !file.exists() && fetch(&file).is_none() {
                eprintln!("SKIPPED: {AXE} cannot be fetched from the npm registry");
                return None;
            }
            Some(fs::read_to_string(&file).unwrap())
        })
        .clone()
}

/// Unpacks the script beside its place, then moves it there.
fn fetch(file: &Path) -> Option<()> {
    fs::create_dir_all(file.parent()?).unwrap();
    let folder = tempfile::tempdir_in(file.parent()?).unwrap();
    let run = |program: &str, words: &[&str]| {
        let ended = Command::new(program).args(words).current_dir(&folder).output();
        ended.is_ok_and(|output| output.status.success()).then_some(())
    };
    run("npm", &["pack", AXE])?;
    run("tar", &["-xzf", &format!("{}.tgz", AXE.replace('@', "-")), "package/axe.min.js"])?;
    fs::rename(folder.path().join("package/axe.min.js"), file).ok()
}

/// Serious and critical findings within an element: rule, and the places.
pub fn findings(page: &mut Browser, within: &str) -> Vec<String> {
    let run = format!(
        "axe.run({within}, {{ resultTypes: ['violations'] }}).then((found) => found.violations \
         .filter((rule) => ['serious', 'critical'].includes(rule.impact)) \
         .map((rule) => `${{rule.id}}: ${{rule.nodes.map((node) => node.html.slice(0, 160)).slice(0, 4).join(' | ')}}`))"
    );
    serde_json::from_value(page.value(&run)).unwrap()
}

#[test]
fn axe_finds_nothing_serious_in_either_theme() {
    let Some((_folder, mut page)) = opened() else { return };
    let Some(script) = script() else { return };
    // A table of numbers over time has at most 50 rows: those of one chart and of one timeline are looked at.
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    page.wait_for("document.querySelectorAll('.values table').length === document.querySelectorAll('.values').length");
    page.value(&format!("{script};0"));
    for scheme in ["light", "dark"] {
        page.prefer(scheme);
        assert_eq!(findings(&mut page, "document"), Vec::<String>::new(), "{scheme}");
    }
    // The check itself works.
    page.value("document.body.append(Object.assign(document.createElement('button'), { type: 'button' }))");
    assert!(
        findings(&mut page, "document.body.lastElementChild").iter().any(|finding| finding.starts_with("button-name"))
    );
}
