//! Papers: those that come with the program, and a user's own.

use crate::builtin::PAPERS;
use crate::failure::Failure;
use crate::input::{TEXT, read_within, why};
use anabranch_reproduce::infer::{Unsaid, read_unsaid};
use anabranch_reproduce::{Item, Mistake, Paper};
use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};
use std::fs;
use std::path::Path;

/// A paper with its files.
pub struct Source {
    /// Folder of the paper, as messages show it.
    pub folder: String,
    /// The content of `claims.toml`.
    pub paper: Paper,
    /// Name without the ending, and text, of each of its TOML files.
    files: Vec<(String, String)>,
}

impl Source {
    /// The text of one of its scenario files; `.toml` may follow the name.
    pub fn scenario(&self, name: &str) -> Result<&str, Failure> {
        let bare = name.strip_suffix(".toml").unwrap_or(name);
        let scenarios = || self.files.iter().filter(|(name, _)| !is_other(name));
        let found = scenarios().find(|(known, _)| *known == bare).map(|(_, text)| text.as_str());
        let files: Vec<&str> = scenarios().map(|(name, _)| name.as_str()).collect();
        found.ok_or_else(|| Failure::unknown_word("scenario file of this paper", bare, &files, "name a file beside it"))
    }

    /// The parameters that the paper leaves open.
    pub fn unsaid(&self) -> Result<Unsaid, Failure> {
        let (file, text) = self.unsaid_text()?;
        read_unsaid(text).map_err(|mistakes| mistaken(UNSAID_CODE, &file, text, mistakes))
    }

    /// The name, for messages, and the text of that file.
    pub fn unsaid_text(&self) -> Result<(String, &str), Failure> {
        let found = self.files.iter().find(|(name, _)| name == UNSAID);
        let absent = || {
            let message = format!("there is no {UNSAID}.toml in {}", self.folder);
            let help = "it has a prior for each parameter that the paper leaves open: see docs/infer.md".to_owned();
            Failure::unusable("anabranch::cli::unreadable", message, Some(help))
        };
        Ok((format!("{}/{UNSAID}.toml", self.folder), found.map(|(_, text)| text.as_str()).ok_or_else(absent)?))
    }

    /// The item called `id`; capitals do not count.
    pub fn item(&self, id: &str) -> Result<&Item, Failure> {
        let ids: Vec<&str> = self.paper.items.iter().map(|item| item.id.as_str()).collect();
        let found = self.paper.items.iter().find(|item| item.id.eq_ignore_ascii_case(id));
        found.ok_or_else(|| Failure::unknown_word("item", id, &ids, &format!("there are {}", ids.join(", "))))
    }
}

/// Name of the file with the claims, without its ending.
const CLAIMS: &str = "claims";
/// Name of the file with the parameters that the paper leaves open.
const UNSAID: &str = "unsaid";

/// The code of mistakes in it.
pub const UNSAID_CODE: &str = "anabranch::infer::unsaid";

/// A name without its ending that is no scenario's.
fn is_other(name: &str) -> bool {
    name == CLAIMS || name == UNSAID
}

/// True if all papers are meant.
pub fn are_all(key: &Path) -> bool {
    key.as_os_str().eq_ignore_ascii_case("all")
}

/// The papers called `key`; all that come with the program for `all`; a folder with a `claims.toml`. Capitals do not count.
pub fn find(key: &Path) -> Result<Vec<Source>, Failure> {
    if are_all(key) {
        return PAPERS.iter().map(built_in).collect();
    }
    if let Some(paper) = PAPERS.iter().find(|(known, _)| key.as_os_str().eq_ignore_ascii_case(known)) {
        return Ok(vec![built_in(paper)?]);
    }
    if key.is_dir() {
        return Ok(vec![own(key)?]);
    }
    let keys: Vec<&str> = PAPERS.iter().map(|(key, _)| *key).chain(["all"]).collect();
    let help = format!("there are {}; or name a folder with a {CLAIMS}.toml", keys.join(", "));
    Err(Failure::unknown_word("paper", &key.to_string_lossy(), &keys, &help))
}

fn built_in((key, files): &(&str, &[(&str, &str)])) -> Result<Source, Failure> {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    read(format!("papers/{key}"), files)
}

/// Every TOML file of a folder.
fn own(folder: &Path) -> Result<Source, Failure> {
    let unreadable = |path: &Path, error: std::io::Error| {
        Failure::unusable(
            "anabranch::cli::unreadable",
            format!("cannot read {}: {}", path.display(), why(&error)),
            None,
        )
    };
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let file = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, read_within(TEXT, 0, path).map_err(|error| unreadable(path, error))?))
    };
    let files: Vec<(String, String)> = paths.iter().map(file).collect::<Result<_, Failure>>()?;
    if !files.iter().any(|(name, _)| name == CLAIMS) {
        let help = format!("a paper is a folder of scenario files and a {CLAIMS}.toml");
        let message = format!("there is no {CLAIMS}.toml in {}", folder.display());
        return Err(Failure::unusable("anabranch::cli::unreadable", message, Some(help)));
    }
    read(folder.display().to_string(), files)
}

fn read(folder: String, files: Vec<(String, String)>) -> Result<Source, Failure> {
    let text = files.iter().find(|(name, _)| name == CLAIMS).map_or("", |(_, text)| text.as_str());
    let file = || format!("{folder}/{CLAIMS}.toml");
    let paper = anabranch_reproduce::read(text)
        .map_err(|mistakes| mistaken("anabranch::reproduce::claims", &file(), text, mistakes))?;
    Ok(Source { folder, paper, files })
}

/// Mistakes in a paper's file.
pub fn mistaken(code: &str, file: &str, text: &str, mistakes: Vec<Mistake>) -> Failure {
    let report = |Mistake { at, message, help }: Mistake| {
        let mut diagnostic = MietteDiagnostic::new(message).with_code(code);
        diagnostic.help = help;
        let diagnostic = diagnostic.with_label(LabeledSpan::new(Some("here".into()), at.start, at.len()));
        Report::new(diagnostic).with_source_code(NamedSource::new(file, text.to_owned()))
    };
    Failure::Unusable(mistakes.into_iter().map(report).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Loaded;
    use anabranch_reproduce::{Asked, Testbed, baselines_in, parts};

    /// A run of hours writes `docs/lab/readings.md`; what the page takes from the papers' files is compared without one.
    #[test]
    fn the_page_of_readings_has_the_findings_of_the_papers_files() {
        let page = include_str!("../../../docs/lab/readings.md");
        for Source { paper, .. } in find(Path::new("all")).unwrap_or_else(|failure| panic!("{}", failure.render(false)))
        {
            let head = format!("{}\n", paper.key);
            let screen = page.split("\n## ").find(|screen| screen.starts_with(&head)).expect("a screen of each paper");
            let findings: Vec<String> =
                screen.lines().filter(|line| line.starts_with("- `")).map(str::to_owned).collect();
            assert!(!findings.is_empty(), "{}", paper.key);
            for line in findings {
                assert!(paper.items.iter().any(|item| tells(&line, item)), "{}: {line}", paper.key);
            }
        }
    }

    /// `line` is a finding of `item` with the first of its figures, and how many more there are.
    fn tells(line: &str, item: &Item) -> bool {
        line.starts_with(&format!("- `{}`", item.id))
            && item.findings.iter().any(|finding| {
                let text = finding.text.trim().replace('|', "\\|").replace('\n', " ");
                let others = finding.shown.len() - 1;
                let end = if others == 0 { ")".to_owned() } else { format!("; and {others} more)") };
                line.contains(&format!(": {text} (")) && line.ends_with(&end)
            })
    }

    /// Neither a run nor an anchor of what a paper proposes is there when testbeds are chosen.
    #[test]
    fn no_proposed_scheduler_takes_part_in_the_choice_of_testbeds() {
        let proposed = [("blest", "blest"), ("fdps", "fdps"), ("ocps", "ocps")];
        for source in find(Path::new("all")).unwrap_or_else(|failure| panic!("{}", failure.render(false))) {
            let unsaid = source.unsaid().unwrap_or_else(|failure| panic!("{}", failure.render(false)));
            let own = proposed.iter().find(|(key, _)| *key == source.paper.key);
            for item in unsaid.items(&source.paper).expect("its names are known") {
                let text = source.scenario(&item.scenario).expect("it is there");
                let mut read = |overrides| Loaded::given(&item.scenario, text, overrides).map(|l| l.document);
                let testbeds = [Testbed::of(&item, "1", Vec::new()).expect("nothing is set")];
                let plan = baselines_in(&item, &testbeds, 1, &mut read).unwrap_or_else(|_| panic!("{}", item.id));
                let runs: Vec<String> =
                    plan.iter().flat_map(|plan| plan.jobs()).map(|job| format!("{:?}", job.choice)).collect();
                assert_eq!(runs.is_empty(), item.anchors.is_empty(), "{}", item.id);
                for run in runs {
                    assert!(own.is_none_or(|(_, name)| !run.contains(name)), "{}: {run}", item.id);
                }
            }
        }
    }

    #[test]
    fn every_item_of_every_paper_has_a_plan() {
        for source in find(Path::new("all")).unwrap_or_else(|failure| panic!("{}", failure.render(false))) {
            let key = &source.paper.key;
            assert!(PAPERS.iter().any(|(folder, _)| folder == key), "{key} is not the name of its folder");
            for item in &source.paper.items {
                assert!(!item.claims.is_empty(), "{key} {}", item.id);
                for asked in [Asked::default(), Asked { quick: true, ..Asked::default() }] {
                    let text = source.scenario(&item.scenario).expect("it is there");
                    let mut read = |overrides| Loaded::given(&item.scenario, text, overrides).map(|l| l.document);
                    let parts = parts(item, &asked, &mut read);
                    let parts = parts.unwrap_or_else(|failure| panic!("{key} {}: {}", item.id, failure.render(false)));
                    assert!(parts.iter().all(|part| part.whole.extent().0 > 0), "{key} {}", item.id);
                }
            }
            // A file that no item names is not an experiment of the paper.
            for (name, _) in source.files.iter().filter(|(name, _)| !is_other(name)) {
                let named = |item: &Item| item.scenario.strip_suffix(".toml").unwrap_or(&item.scenario) == *name;
                assert!(source.paper.items.iter().any(named), "{key}/{name}.toml");
            }
        }
    }
}
