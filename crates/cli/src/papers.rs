//! The papers that come with the program.

use crate::builtin::PAPERS;
use crate::failure::Failure;
use anabranch_reproduce::{Item, Mistake, Paper};
use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};

/// A paper with its files.
pub struct BuiltIn {
    /// Name of its folder.
    pub key: &'static str,
    /// What `claims.toml` says.
    pub paper: Paper,
    files: &'static [(&'static str, &'static str)],
}

impl BuiltIn {
    /// The text of one of its scenario files; `.toml` may follow the name.
    pub fn scenario(&self, name: &str) -> Result<&'static str, Failure> {
        let bare = name.strip_suffix(".toml").unwrap_or(name);
        let found = self.files.iter().find(|(known, _)| *known == bare && bare != CLAIMS).map(|(_, text)| *text);
        let files: Vec<&str> = self.files.iter().map(|(name, _)| *name).filter(|name| *name != CLAIMS).collect();
        found.ok_or_else(|| Failure::unknown_word("scenario file of this paper", bare, &files, "name a file beside it"))
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

/// True if all papers are meant.
pub fn are_all(key: &str) -> bool {
    key.eq_ignore_ascii_case("all")
}

/// The papers called `key`; all of them for `all`. Capitals do not count.
pub fn find(key: &str) -> Result<Vec<BuiltIn>, Failure> {
    if are_all(key) {
        return PAPERS.iter().map(|(key, files)| read(key, files)).collect();
    }
    let keys: Vec<&str> = PAPERS.iter().map(|(key, _)| *key).chain(["all"]).collect();
    match PAPERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
        Some((key, files)) => Ok(vec![read(key, files)?]),
        None => Err(Failure::unknown_word("paper", key, &keys, &format!("there are {}", keys.join(", ")))),
    }
}

fn read(key: &'static str, files: &'static [(&'static str, &'static str)]) -> Result<BuiltIn, Failure> {
    let text = files.iter().find(|(name, _)| *name == CLAIMS).map_or("", |(_, text)| *text);
    let paper = anabranch_reproduce::read(text).map_err(|mistakes| unusable(key, text, mistakes))?;
    Ok(BuiltIn { key, paper, files })
}

fn unusable(key: &str, text: &str, mistakes: Vec<Mistake>) -> Failure {
    let report = |Mistake { at, message, help }: Mistake| {
        let mut diagnostic = MietteDiagnostic::new(message).with_code("anabranch::reproduce::claims");
        diagnostic.help = help;
        let diagnostic = diagnostic.with_label(LabeledSpan::new(Some("here".into()), at.start, at.len()));
        Report::new(diagnostic).with_source_code(NamedSource::new(format!("papers/{key}/claims.toml"), text.to_owned()))
    };
    Failure::Unusable(mistakes.into_iter().map(report).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Loaded;
    use anabranch_reproduce::{Asked, parts};

    #[test]
    fn every_item_of_every_paper_has_a_plan() {
        for built_in in find("all").unwrap_or_else(|failure| panic!("{}", failure.render(false))) {
            let key = &built_in.paper.key;
            assert!(PAPERS.iter().any(|(folder, _)| folder == key), "{key} is not the name of its folder");
            for item in &built_in.paper.items {
                assert!(!item.claims.is_empty(), "{key} {}", item.id);
                for asked in [Asked::default(), Asked { quick: true, ..Asked::default() }] {
                    let text = built_in.scenario(&item.scenario).expect("it is there");
                    let mut read = |overrides| Loaded::given(&item.scenario, text, overrides).map(|l| l.document);
                    let parts = parts(item, &asked, &mut read);
                    let parts = parts.unwrap_or_else(|failure| panic!("{key} {}: {}", item.id, failure.render(false)));
                    assert!(parts.iter().all(|part| part.plan.extent().0 > 0), "{key} {}", item.id);
                }
            }
            // A file that no item names is not an experiment of the paper.
            for (name, _) in built_in.files.iter().filter(|(name, _)| *name != CLAIMS) {
                let named = |item: &Item| item.scenario.strip_suffix(".toml").unwrap_or(&item.scenario) == *name;
                assert!(built_in.paper.items.iter().any(named), "{key}/{name}.toml");
            }
        }
    }
}
