//! `anabranch figure`: charts of a report as files for a paper.

use std::fs;
use std::path::Path;
use std::process::Command;

fn anabranch(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = program.current_dir(folder).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

#[test]
fn every_figure_of_a_run_is_drawn_as_pdf_and_svg() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = ["run", "tight-window", "--scheduler", "minrtt,blest", "--repeat", "3", "--duration", "1s"];
    let (code, text) = anabranch(folder, &[&run[..], &["--out", "results"]].concat());
    assert_eq!(code, Some(0), "{text}");
    let (code, list) = anabranch(folder, &["figure", "results"]);
    assert_eq!(code, Some(0), "{list}");
    let names: Vec<&str> = list.lines().collect();
    assert!(names.contains(&"goodput") && names.contains(&"over-time-cwnd-of-path-near"), "{list}");
    for name in ["goodput", "over-time-the-connection", "over-time-cwnd-of-path-near", "where-the-data-went"] {
        assert!(names.contains(&name), "{list}");
        for ending in ["pdf", "svg"] {
            let file = format!("{name}.{ending}");
            let (code, text) = anabranch(folder, &["figure", "results", name, "--out", &file]);
            assert_eq!(code, Some(0), "{text}");
            let bytes = fs::read(folder.join(&file)).unwrap();
            let again = format!("again-{file}");
            anabranch(folder, &["figure", "results", name, "--out", &again]);
            assert!(bytes == fs::read(folder.join(again)).unwrap(), "{file}: the same bytes");
            match ending {
                "pdf" => assert!(bytes.starts_with(b"%PDF-1.5") && bytes.ends_with(b"%%EOF"), "{file}"),
                _ => {
                    let text = String::from_utf8(bytes).unwrap();
                    assert!(
                        text.contains("width=\"252pt\"") && !text.contains("NaN") && !text.contains("inf"),
                        "{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_figure_has_the_width_that_is_asked_and_names_curves_that_coincide() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run =
        ["run", "wifi-lte", "--sweep", "path.lte.delay=20ms,80ms,160ms", "--scheduler", "minrtt,fifo", "--repeat", "3"];
    let (code, text) =
        anabranch(folder, &[&run[..], &["--duration", "1s", "--no-baselines", "--out", "results"]].concat());
    assert_eq!(code, Some(0), "{text}");
    let name = "goodput";
    let (code, text) = anabranch(folder, &["figure", "results", name, "--out", "f.svg", "--figure-width", "516pt"]);
    assert_eq!(code, Some(0), "{text}");
    let drawn = fs::read_to_string(folder.join("f.svg")).unwrap();
    assert!(drawn.contains("width=\"516pt\"") && drawn.contains(">minrtt<"), "{drawn}");
    // Both schedulers send alike here.
    assert!(drawn.contains("the wider line: they agree."), "{drawn}");
    let (code, text) = anabranch(folder, &["figure", "results", "godput"]);
    assert!(code == Some(2) && text.contains("did you mean"), "{text}");
    let (code, text) = anabranch(folder, &["figure", "results", name, "--out", "f.png"]);
    assert!(code == Some(2) && text.contains("neither in .pdf nor in .svg"), "{text}");
    let (code, text) = anabranch(folder, &["figure", "results", name, "--figure-width", "10cm"]);
    assert!(code == Some(2) && text.contains("from 120pt to 1200pt"), "{text}");
}
