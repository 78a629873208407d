//! Pages of the guide are short, and so are their sentences. `docs/lab`, the notebook, is not bounded.

use std::fs;
use std::path::Path;

/// Bytes of a page.
const LARGEST: u64 = 10 * 1024;
/// Words in the median sentence of a page.
const MEDIAN: usize = 16;
/// Pages that commands make, from registries or between marks: `explain --all`, `compare --update`, `reproduce --update`.
const GENERATED: [&str; 4] = ["schedulers.md", "congestion.md", "frontier.md", "reproduction.md"];

/// Paragraphs and items of lists: no code, comment, table or heading.
fn paragraphs(page: &str) -> Vec<String> {
    let (mut found, mut fenced) = (vec![String::new()], false);
    for line in page.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        fenced ^= is_fence;
        let item = text.strip_prefix("- ").or_else(|| {
            let (number, rest) = text.split_once(". ")?;
            number.chars().all(|digit| digit.is_ascii_digit()).then_some(rest)
        });
        let is_left_out = line.starts_with("    ") || ["|", "#", "<!--"].iter().any(|mark| text.starts_with(mark));
        if fenced || is_fence || is_left_out || text.is_empty() {
            found.push(String::new());
            continue;
        }
        if item.is_some() {
            found.push(String::new());
        }
        let paragraph = found.last_mut().expect("one");
        paragraph.push_str(item.unwrap_or(text));
        paragraph.push(' ');
    }
    found
}

/// A paragraph in which each span of code is one word, and a link its text.
fn as_read(paragraph: &str) -> String {
    let code = paragraph.split('`').enumerate().map(|(n, part)| if n % 2 == 1 { "code" } else { part });
    let text: String = code.collect();
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |read, part| read + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// The numbers of words in the sentences of a page, ascending; a remark of less than four words is no sentence.
fn sentences(page: &str) -> Vec<usize> {
    let mut lengths = Vec::new();
    for paragraph in paragraphs(page) {
        let mut words = 0;
        for token in as_read(&paragraph).split_whitespace() {
            words += usize::from(token.contains(char::is_alphanumeric));
            if token.trim_end_matches([')', '*', '"', '”']).ends_with(['.', '!', '?']) {
                lengths.push(std::mem::take(&mut words));
            }
        }
        lengths.push(words);
    }
    lengths.retain(|words| *words >= 4);
    lengths.sort_unstable();
    lengths
}

fn median(sorted: &[usize]) -> usize {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[test]
fn pages_and_their_sentences_are_short() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for folder in [docs.clone(), docs.join("concepts")] {
        for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = path.strip_prefix(&docs).expect("below docs").to_string_lossy().into_owned();
            if !name.ends_with(".md") || GENERATED.contains(&name.as_str()) {
                continue;
            }
            seen += 1;
            let text = fs::read_to_string(&path).expect("text");
            let (bytes, words) = (text.len() as u64, median(&sentences(&text)));
            if bytes > LARGEST || words > MEDIAN {
                wrong.push(format!("docs/{name}: {bytes} bytes, {words} words in the median sentence"));
            }
        }
    }
    assert!(seen > 20, "{seen} pages were read");
    assert!(wrong.is_empty(), "more than {LARGEST} bytes or {MEDIAN} words:\n{}", wrong.join("\n"));
    for name in GENERATED {
        let size = fs::metadata(docs.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")).len();
        assert!(size > LARGEST, "docs/{name} is short: it needs no exception");
    }
}

#[test]
fn sentences_are_those_that_a_reader_reads() {
    assert_eq!(
        sentences("# Not a heading of a page\n\nOne two three four. Five six\nseven [eight](a/b.md) nine?\n"),
        [4, 5]
    );
    assert_eq!(sentences("- One `two and more` three four\n- Five six seven eight nine\n2. A b c d e f.\n"), [4, 5, 6]);
    assert_eq!(sentences("| a b c d e |\n```\na b c d e\n```\n    a b c d e\n<!-- a b c d e -->\nToo short.\n"), []);
    assert_eq!(median(&[4, 5, 17]), 5);
}
