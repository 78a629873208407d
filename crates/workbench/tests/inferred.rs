//! The page of the papers and its line in the README say what the committed inferences say. `BLESS=1` writes them.

use anabranch_report::of_inference::{picture, picture_name, screen, summary};
use anabranch_reproduce::Paper;
use anabranch_reproduce::infer::Inference;
use anabranch_workbench::papers;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every paper with its committed inference.
fn inferred() -> Vec<(papers::Source, Inference)> {
    let all = papers::find(Path::new("all")).unwrap_or_else(|failure| panic!("{}", failure.render(false)));
    let one = |source: papers::Source| {
        let file = root().join("papers").join(&source.paper.key).join("inferred/inference.json");
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut found: Vec<Inference> = serde_json::from_str(&text).expect("it is an inference");
        assert_eq!(found.len(), 1, "{}", file.display());
        (source, found.remove(0))
    };
    all.into_iter().map(one).collect()
}

/// The text with `new` between the marks `name`.
fn between(text: &str, name: &str, new: &str) -> String {
    let (before, rest) = text.split_once(&format!("<!-- {name} -->\n")).expect("the first mark");
    let (_, after) = rest.split_once(&format!("<!-- /{name} -->")).expect("the second mark");
    format!("{before}<!-- {name} -->\n{new}<!-- /{name} -->{after}")
}

/// Compares a file with what it should be, or writes it.
fn same(file: &str, wanted: impl Fn(&str) -> String) {
    let path = root().join(file);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let wanted = wanted(&text);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, wanted).expect("the file takes text");
    } else {
        assert!(text == wanted, "{file}: BLESS=1 cargo test -p anabranch-workbench --test inferred");
    }
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut found, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(String::new()),
            _ => found.last_mut().expect("one").push(letter),
        }
    }
    found
}

/// The claims on schedulers that came out in all admissible readings, and those that agree over the kept testbeds.
fn before_and_after(all: &[(Paper, Inference)]) -> String {
    let text = fs::read_to_string(root().join("docs/lab/reproduction.csv")).expect("the claims in readings");
    let rows: Vec<Vec<String>> = text.lines().map(cells).filter(|row| row[10] == "as written").collect();
    let mut table = String::from(
        "| paper | before: claims in size | in sign or order | after: sizes | pairs | distance as written | kept |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (paper, inference) in all {
        let classes = paper.items.iter().flat_map(|item| {
            let contrasts = item.claims.iter().filter(|claim| claim.is_contrast());
            contrasts.filter_map(|claim| {
                let row = rows.iter().find(|row| row[..2] == [&paper.key[..], &item.id] && row[3] == claim.text)?;
                Some(row[8].as_str())
            })
        });
        let classes: Vec<&str> = classes.collect();
        let count = |names: &[&str]| classes.iter().filter(|class| names.contains(class)).count();
        let far = |distance: Option<f64>| distance.map_or_else(|| "—".to_owned(), |distance| format!("{distance:.2}"));
        let kept = inference.tolerances.last().copied().filter(|_| !inference.anchors.is_empty());
        table += &format!(
            "| `{}` | {} of {of} | {} of {of} | {} | {} | {} | {} |\n",
            paper.key,
            count(&["reproduces in size"]),
            count(&["reproduces in size", "direction"]),
            inference.sizes(),
            inference.pairs(),
            far(inference.as_written.filter(|_| kept.is_some())),
            far(kept),
            of = classes.len(),
        );
    }
    table
}

#[test]
fn the_page_and_the_readme_have_the_figures_of_the_committed_inferences() {
    let all: Vec<(Paper, Inference)> = inferred().into_iter().map(|(source, found)| (source.paper, found)).collect();
    same("README.md", |text| between(text, "papers", &summary(&all)));
    let screens: String = all.iter().map(|(paper, inference)| screen(paper, inference)).collect();
    same("docs/reproduction.md", |text| between(text, "papers", &screens));
    same("docs/reproduction.md", |text| between(text, "before", &before_and_after(&all)));
    for (paper, inference) in &all {
        same(&format!("docs/{}", picture_name(paper)), |_| picture(paper, inference));
    }
    let page = fs::read_to_string(root().join("docs/reproduction.md")).expect("the page");
    assert!(page.chars().count() <= 25_000, "{}", page.chars().count());
}

/// A claim or a prior that changed after the inference would be judged by another one.
#[test]
fn the_committed_inferences_are_of_these_claims_and_unknowns() {
    for (source, inference) in inferred() {
        let paper = &source.paper;
        let unsaid = source.unsaid().unwrap_or_else(|failure| panic!("{}", failure.render(false)));
        let mut drawn: Vec<&str> = inference.unknowns.iter().map(|unknown| unknown.unknown.as_str()).collect();
        let mut open: Vec<&str> = unsaid.unknowns.iter().map(|unknown| unknown.name.as_str()).collect();
        drawn.sort_unstable();
        open.sort_unstable();
        assert_eq!(drawn, open, "{}", paper.key);
        let items = unsaid.items(paper).expect("its names are known");
        let claims =
            items.iter().flat_map(|item| item.claims.iter().map(|claim| (item.id.as_str(), claim.text.as_str())));
        let judged = inference.claims.iter().map(|tally| (tally.item.as_str(), tally.claim.as_str()));
        assert!(claims.eq(judged), "{}", paper.key);
        let anchors = items.iter().flat_map(|item| &item.anchors).map(|anchor| anchor.text.as_str());
        assert!(anchors.eq(inference.anchors.iter().map(|anchor| anchor.text.as_str())), "{}", paper.key);
    }
}
