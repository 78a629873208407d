//! Comments and documents without the words that `docs/words.md` refuses.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "docs/words.md";

/// A row of the table.
struct Refused {
    /// The alternatives of each word.
    words: Vec<Vec<String>>,
    at_beginning: bool,
    instead: String,
    because: String,
    example: String,
}

/// A word of a text with its line; an empty one where a sentence or a text ends.
type Word = (String, usize);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn refused(list: &str) -> Vec<Refused> {
    let (_, table) = list.split_once("\n## Refused\n").expect("a section of refused words");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [words, instead, because, example] = cells[..] else { panic!("four cells are wanted: {row}") };
        let pattern = words.strip_prefix("^ ").unwrap_or(words);
        Refused {
            words: pattern.split(' ').map(|word| word.split('/').map(str::to_owned).collect()).collect(),
            at_beginning: words.starts_with("^ "),
            instead: instead.to_owned(),
            because: because.to_owned(),
            example: example.to_owned(),
        }
    })
    .collect()
}

fn held(list: &str) -> Vec<&str> {
    let (_, rest) = list.split_once("\n## Held\n").expect("a section of held parts");
    let (held, _) = rest.split_once("\n## ").expect("another section after it");
    held.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

/// Appends the words of one line, without code in backticks.
fn append(words: &mut Vec<Word>, text: &str, line: usize) {
    for (n, part) in text.replace("``", "`").split('`').enumerate() {
        if n % 2 == 1 {
            words.push((String::new(), line));
            continue;
        }
        for token in part.split_whitespace() {
            let word = token.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            if !word.is_empty() {
                words.push((word, line));
            }
            if token.trim_end_matches('*').ends_with(['.', ':', ';', ',', '!', '?', '|']) {
                words.push((String::new(), line));
            }
        }
    }
}

/// The comment in a line of source code, and whether it stands alone on its line.
fn comment<'a>(line: &'a str, mark: &str) -> Option<(&'a str, bool)> {
    let trimmed = line.trim_start();
    if let Some(text) = trimmed.strip_prefix(mark) {
        return Some((text.trim_start_matches(['/', '!', '#']), true));
    }
    let (code, text) = line.split_once(&format!("{mark} "))?;
    (mark == "//" && code.matches('"').count() % 2 == 0).then_some((text, false))
}

/// The texts of a file, each as its words.
fn texts(name: &str, content: &str) -> Vec<Vec<Word>> {
    let mut texts = vec![Vec::new()];
    let mut fenced = false;
    for (n, line) in content.lines().enumerate() {
        let (text, joins) = if name.ends_with(".md") {
            fenced ^= line.trim_start().starts_with("```");
            let ends = fenced || line.trim().is_empty() || line.starts_with("    ");
            (if ends { None } else { Some(line) }, true)
        } else {
            let mark = if name.ends_with(".rs") { "//" } else { "#" };
            comment(line, mark).map_or((None, true), |(text, alone)| (Some(text), alone))
        };
        match text {
            Some(text) if joins && !text.trim().is_empty() => append(texts.last_mut().expect("one"), text, n + 1),
            Some(text) => {
                texts.push(Vec::new());
                append(texts.last_mut().expect("one"), text, n + 1);
                texts.push(Vec::new());
            }
            None => texts.push(Vec::new()),
        }
    }
    texts.retain(|words| !words.is_empty());
    texts
}

/// The lines of `words` where `refused` begins.
fn hits<'a>(refused: &'a Refused, words: &'a [Word]) -> impl Iterator<Item = usize> + 'a {
    let places = words.windows(refused.words.len()).enumerate();
    places.filter(|(at, _)| !refused.at_beginning || *at == 0).filter_map(|(_, window)| {
        let fits = window.iter().zip(&refused.words).all(|((word, _), any)| any.contains(word));
        fits.then_some(window[0].1)
    })
}

fn shown(words: &[Vec<String>]) -> String {
    words.iter().map(|any| any.join("/")).collect::<Vec<_>>().join(" ")
}

/// Everything in a file that is refused: line, words, what to write instead.
fn faults(name: &str, content: &str, list: &[Refused]) -> Vec<String> {
    let comments = !name.ends_with(".md");
    let mut faults = Vec::new();
    for words in texts(name, content) {
        for refused in list.iter().filter(|refused| comments || !refused.at_beginning) {
            for line in hits(refused, &words) {
                let (what, instead, because) = (shown(&refused.words), &refused.instead, &refused.because);
                faults.push(format!("{name}:{line}: `{what}`; write: {instead} ({because})"));
            }
        }
    }
    faults
}

/// All files with comments or documents, relative to the workspace.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            // `site/build.sh` makes `reference` of texts that stand in the sources.
            let skipped = ["corpus", "artifacts"].contains(&name.as_str()) || path.ends_with("docs/reference");
            if !name.starts_with('.') && !name.starts_with("target") && !skipped {
                files(&path, found);
            }
        } else if [".rs", ".md", ".toml", ".script"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

#[test]
fn held_parts_have_no_refused_words() {
    let root = root();
    let list = read(&root.join(LIST));
    let (refused, held) = (refused(&list), held(&list));
    for part in &held {
        assert!(root.join(part).exists(), "{LIST} holds {part}, which does not exist");
    }
    let mut found = Vec::new();
    files(&root, &mut found);
    let (mut wrong, mut others) = (Vec::new(), BTreeMap::<String, usize>::new());
    for path in found {
        let name = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
        if name == LIST {
            continue;
        }
        let faults = faults(&name, &read(&path), &refused);
        if held.iter().any(|part| name == *part || name.starts_with(&format!("{part}/"))) {
            wrong.extend(faults);
        } else if !faults.is_empty() {
            let part: Vec<&str> = name.split('/').take(2).collect();
            *others.entry(part.join("/")).or_default() += faults.len();
        }
    }
    others.iter().for_each(|(part, count)| println!("not held: {part} has {count}"));
    assert!(wrong.is_empty(), "{} refused words ({LIST}):\n{}", wrong.len(), wrong.join("\n"));
}

/// The help of all commands, as plain paragraphs: neither code in a fence, nor indented.
fn help() -> String {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let ran = command.args(["explain", "--all", "commands"]).assert().success();
    let text = String::from_utf8(ran.get_output().stdout.clone()).expect("text");
    text.lines().filter(|line| !line.starts_with("```")).map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn help_has_no_refused_words() {
    let text = help();
    assert!(text.contains("Usage: anabranch run"), "{text}");
    let wrong = faults("the help.md", &text, &refused(&read(&root().join(LIST))));
    assert!(wrong.is_empty(), "{} refused words ({LIST}) in --help:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_row_is_found_in_its_example_and_in_nothing_that_it_proposes() {
    let list = refused(&read(&root().join(LIST)));
    assert!(list.len() > 20);
    for row in &list {
        let words = shown(&row.words);
        let found = faults("x.rs", &format!("    /// {}\n", row.example), std::slice::from_ref(row));
        assert_eq!(found.len(), 1, "`{words}` in {:?}: {found:?}", row.example);
        assert!(faults("x.rs", &format!("// Or: {}\n", row.instead), &list).is_empty(), "{}", row.instead);
    }
}

#[test]
fn comments_are_joined_and_code_is_left_out() {
    let list = refused(&read(&root().join(LIST)));
    let count = |name: &str, text: &str| faults(name, text, &list).len();
    assert_eq!(count("a.rs", "//! The run is moved by\n//! the clock.\nfn f() {}\n"), 1);
    assert_eq!(count("a.rs", "let news = \"by the clock\"; // It is moved by the clock.\n"), 1);
    assert_eq!(count("a.rs", "/// `told` and ``they heard`` are names.\n/// What follows is not the beginning.\n"), 0);
    assert_eq!(count("a.rs", "/// A name.\n\n// What follows.\n"), 1);
    assert_eq!(count("a.md", "**Packets.** A path carries them. **Packets** a second.\n"), 1);
    assert_eq!(count("a.toml", "news = 1 # not a line of comment\n# The news.\n"), 1);
    assert_eq!(count("a.md", "It is moved by the\nclock.\n\n```\nthe news\n```\n\nGoes `on`.\n"), 1);
}
