//! The page and its files as text.

#[path = "common/sample.rs"]
mod sample;

use anabranch_report::{Report, files, html};
use sample::HOSTILE;

#[test]
fn a_report_is_read_back_from_json() {
    let report = sample::report();
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    // Absent fields are empty.
    assert_eq!(serde_json::from_str::<Report>("{}").unwrap(), Report::default());
}

#[test]
fn the_page_is_one_file_below_two_megabytes() {
    let page = html(&sample::report());
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    for outside in ["src=\"", "<link rel=\"stylesheet\"", "@import", "url(http"] {
        let ours = page.split("<script>").next().unwrap();
        assert!(!ours.contains(outside), "{outside}");
    }
    assert!(page.contains("THE SOFTWARE IS PROVIDED"), "the libraries' licences go with them");
}

#[test]
fn hostile_names_stay_text() {
    let page = html(&sample::report());
    assert!(!page.contains(HOSTILE));
    assert!(!page.contains("<img"));
    assert!(!page.contains("<script>document.title"));
    assert!(page.contains("{{ 7*7 }}"), "templates in names are not evaluated");
}

#[test]
fn an_empty_report_is_a_page_too() {
    let page = html(&Report::default());
    assert!(page.starts_with("<!doctype html>") && page.contains("Where it comes from") && !page.contains("Verdicts"));
}

#[test]
fn every_table_is_two_files() {
    let names: Vec<String> = files(&sample::report()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["verdicts.csv", "verdicts.tex", "charts-means.csv", "charts-means.tex"]);
}
