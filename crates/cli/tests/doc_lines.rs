//! The first line of a doc comment stands alone: it begins with its subject, not with a word that points back.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that need a sentence before them.
const POINTERS: [&str; 5] = ["It", "Its", "Of", "By", "With"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() && !name.starts_with(['.']) && !name.starts_with("target") {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// The first line of each doc comment of an item, with its number.
fn first_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let doc = |line: &'_ str| line.trim_start().starts_with("///");
    let mut before = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let is_first = doc(line) && !before;
        before = doc(line);
        is_first.then(|| (n + 1, line.trim_start().trim_start_matches('/').trim()))
    })
}

/// True if the line begins with one of [`POINTERS`].
fn points_back(line: &str) -> bool {
    let word = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    POINTERS.contains(&word)
}

#[test]
fn first_lines_begin_with_their_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists");
    let mut files = Vec::new();
    ["crates", "benches", "examples", "fuzz"].iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in files {
        let text = fs::read_to_string(&file).expect("text");
        for (n, line) in first_lines(&text) {
            seen += 1;
            if points_back(line) {
                wrong.push(format!("{}:{n}: {line}", file.strip_prefix(&root).expect("below the root").display()));
            }
        }
    }
    assert!(seen > 10_000, "{seen} comments were read");
    wrong.sort();
    assert!(wrong.is_empty(), "{} first lines need a subject:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_first_line_is_the_first_of_its_comment() {
    let text = "/// Positions of packets.\n/// It goes on.\nx: u8,\n    /// Its place.\n    y: u8,\n//! By the way.\n// Of code.\n";
    assert_eq!(first_lines(text).collect::<Vec<_>>(), [(1, "Positions of packets."), (4, "Its place.")]);
    assert!(points_back("Its place.") && points_back("Of `ack`: its content.") && points_back("It."));
    assert!(!points_back("Bytes of it.") && !points_back("Item of a list.") && !points_back("`Of` is a name."));
}
