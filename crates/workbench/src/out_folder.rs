//! The directory of `--out`: it belongs to the command that wrote into it last.

use crate::artifacts::ScenarioText;
use crate::beside::BESIDE;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::RESULTS;
use crate::listed::{FILES, FOLDERS, Listed};
use crate::load::STANDARD_INPUT;
use anabranch_scenario::Source;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory that a command is about to fill.
///
/// All is written beside first. Files of earlier commands stay until [`OutFolder::take`], so that neither an interrupted
/// command nor a full disk destroys anything.
pub struct OutFolder {
    folder: PathBuf,
    /// For what is to come into the directory; vanishes with this value.
    beside: TempDir,
}

/// The origin of the results that a directory has, or is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A scenario's: its file or name, and its text.
    Scenario(String, String),
    /// Results of papers.
    Reproduction,
    /// Results of `anabranch infer`.
    Inference,
}

impl Owner {
    /// Results of this scenario.
    pub fn of(source: &Source) -> Self {
        Self::Scenario(source.name.clone(), source.text.clone())
    }

    /// That of the results in `folder`, if there are some.
    fn in_folder(folder: &Folder) -> Option<Self> {
        if folder.kind("reproduction.json").is_some() {
            return Some(Self::Reproduction);
        }
        if folder.kind("inference.json").is_some() {
            return Some(Self::Inference);
        }
        let text = folder.read_within(RESULTS, 0, "manifest.json").ok()?;
        let Begun { scenario } = serde_json::from_str(&text).ok()?;
        Some(Self::Scenario(scenario.source, scenario.text))
    }

    /// A scenario that was edited, or whose file has moved, is the same.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scenario(name, text), Self::Scenario(other, its_text)) => {
                text == its_text || name == other && name != STANDARD_INPUT
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(name, _) => write!(f, "the scenario {name}"),
            Self::Reproduction => f.write_str("`anabranch reproduce`"),
            Self::Inference => f.write_str("`anabranch infer`"),
        }
    }
}

/// The part of a manifest that names the scenario.
#[derive(Deserialize)]
struct Begun {
    scenario: ScenarioText,
}

impl OutFolder {
    /// Makes `folder` if need be. To be done before the work: refuses it where files that this program did not write would be
    /// lost, or, unless `force`, results of another owner than `owner`.
    pub fn claim(folder: &Path, owner: &Owner, force: bool) -> Result<Self, Failure> {
        let opened = Folder::make(folder)?;
        let listed = Listed::of(&opened)?;
        if let Some(other) = Owner::in_folder(&opened).filter(|other| !force && !other.is_same(owner)) {
            let message = format!("{} has the results of {other}", folder.display());
            let help = "give --out another directory; --force replaces what is there".to_owned();
            return Err(Failure::unusable("anabranch::cli::other_results", message, Some(help)));
        }
        for name in FOLDERS {
            if opened.kind(name).is_some_and(|kind| !kind.is_dir()) {
                let error = io::Error::new(ErrorKind::InvalidInput, "it is a symbolic link or a file");
                return Err(Failure::unwritable(&folder.join(name), &error));
            }
        }
        refuse_foreign(&opened, &listed, FILES.into_iter().map(str::to_owned))?;
        let beside = tempfile::Builder::new().prefix(BESIDE).tempdir_in(folder);
        let beside = beside.map_err(|error| Failure::unwritable(folder, &error))?;
        Ok(Self { folder: folder.to_owned(), beside })
    }

    /// True if no earlier command left whole results there.
    pub fn is_free(&self) -> bool {
        Folder::open(&self.folder).is_ok_and(|folder| folder.kind("results.json").is_none() || is_part(&folder))
    }

    /// Where everything is to be written.
    pub fn beside(&self) -> &Path {
        self.beside.path()
    }

    /// Where runs write time series.
    pub fn series(&self) -> PathBuf {
        self.beside.path().join("series")
    }

    /// Where runs write timelines of packets.
    pub fn timeline(&self) -> PathBuf {
        self.beside.path().join("timeline")
    }

    /// Removes what earlier commands left, and puts what was written beside in its place; the directory. To be done when all
    /// is written.
    pub fn take(self) -> Result<PathBuf, Failure> {
        let (from, to) = (Folder::make(self.beside.path())?, Folder::make(&self.folder)?);
        let new = Listed::all_in(&from).map_err(|error| Failure::unwritable(&self.folder, &error))?;
        let old = Listed::of(&to)?;
        refuse_foreign(&to, &old, new.names())?;
        // Of both until all is done: if this is interrupted, no file is left without its name.
        new.with(&old).write(&to)?;
        old.remove(&to)?;
        new.put(&from, &to)?;
        new.write(&to)?;
        Ok(self.folder)
    }
}

/// Refuses a directory in which a file of these names stands that the list does not name: it would be lost.
fn refuse_foreign(folder: &Folder, listed: &Listed, names: impl Iterator<Item = String>) -> Result<(), Failure> {
    match names.into_iter().find(|name| !listed.has(name) && is_there(folder, name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("{} is not of this program and would be lost", folder.path().join(name).display());
            let help =
                "files.json there does not name it: give --out another directory, or move the file away".to_owned();
            Err(Failure::unusable("anabranch::cli::foreign_file", message, Some(help)))
        }
    }
}

/// Something has this name, which has one folder at most.
fn is_there(folder: &Folder, name: &str) -> bool {
    match name.split_once('/') {
        None => folder.kind(name).is_some(),
        Some((inner, name)) => folder.inner(inner).is_ok_and(|inner| inner.kind(name).is_some()),
    }
}

/// Results with missing runs: of the names of the document's fields one says so; their content is passed over.
fn is_part(folder: &Folder) -> bool {
    let fields: Option<BTreeMap<String, IgnoredAny>> =
        folder.file("results.json").ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
    fields.is_some_and(|fields| fields.contains_key("incomplete"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::meant;
    use std::fs;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        folder
    }

    /// Names relative to the directory, in order.
    fn names(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            match entry.path().is_dir() {
                true => names.extend(self::names(&entry.path()).iter().map(|inner| format!("{name}/{inner}"))),
                false => names.push(name),
            }
        }
        names.sort();
        names
    }

    const OURS: &str = r#"{"anabranch": "0.1.0"}"#;

    fn scenario(name: &str, text: &str) -> Owner {
        Owner::Scenario(name.to_owned(), text.to_owned())
    }

    fn claim(folder: &Path) -> Result<OutFolder, Failure> {
        OutFolder::claim(folder, &scenario("a.toml", ""), false)
    }

    /// The list of these names.
    fn list(names: &[&str]) -> String {
        format!("{{\"anabranch\": \"0.1.0\", \"files\": {names:?}}}")
    }

    #[test]
    fn what_earlier_commands_left_goes_when_the_new_is_there_and_nothing_else() {
        let named =
            ["results.json", "report.json", "report.html", "prediction.json", "series/old.csv", "timeline/old.json"];
        let folder = folder(&[
            (
                "files.json",
                &list(&[&named[..], &["tables/summary.tex", "../x.csv", "notes/thesis.tex", "kept/a.json"]].concat()),
            ),
            ("results.json", OURS),
            ("report.json", r#"{"made_by": {"version": "0.1.0"}}"#),
            ("report.html", ""),
            ("prediction.json", "[]"),
            ("series/old.csv", ""),
            ("series/notes.txt", ""),
            ("series/mine.csv", ""),
            ("timeline/old.json", ""),
            ("tables/summary.tex", ""),
            ("kept/a.jsonl", ""),
            ("thesis.tex", ""),
        ]);
        let before = names(folder.path());
        let out = claim(folder.path()).unwrap();
        fs::create_dir_all(out.series()).unwrap();
        fs::write(out.series().join("new.csv"), "").unwrap();
        assert_eq!(meant(&out.series().join("new.csv")), folder.path().join("series/new.csv"));
        drop(out);
        assert_eq!(names(folder.path()), before, "an interrupted command leaves all as it was");

        let out = claim(folder.path()).unwrap();
        fs::create_dir_all(out.series()).unwrap();
        fs::write(out.series().join("new.csv"), "").unwrap();
        fs::write(out.beside().join("results.json"), OURS).unwrap();
        assert_eq!(out.take().unwrap(), folder.path());
        let left = [
            "files.json",
            "kept/a.jsonl",
            "results.json",
            "series/mine.csv",
            "series/new.csv",
            "series/notes.txt",
            "thesis.tex",
        ];
        assert_eq!(names(folder.path()), left);
        assert!(!folder.path().join("timeline").exists());
    }

    #[test]
    fn another_programs_files_are_refused_by_name() {
        let refused = |files: &[(&str, &str)]| {
            let folder = folder(files);
            claim(folder.path()).err().map(|failure| {
                assert_eq!(names(folder.path()).len(), files.len());
                failure.render(false)
            })
        };
        assert!(refused(&[("results.json", "[1, 2]")]).unwrap().contains("results.json is not of this program"));
        let listed = list(&["results.json", "runs.csv"]);
        assert!(refused(&[("files.json", &listed), ("report.json", "{}")]).unwrap().contains("report.json"));
        assert!(refused(&[("runs.csv", "")]).unwrap().contains("runs.csv"));
        assert!(refused(&[("files.json", "{}")]).unwrap().contains("files.json"));
        assert_eq!(refused(&[("kept/a.jsonl", ""), ("notes.txt", ""), ("series/mine.csv", "")]), None);
        assert_eq!(refused(&[("files.json", &listed), ("results.json", OURS), ("runs.csv", "")]), None);
    }

    #[test]
    fn a_users_file_in_the_place_of_a_new_one_is_refused_before_anything_is_removed() {
        let folder = folder(&[("files.json", &list(&["runs.csv"])), ("runs.csv", ""), ("series/mine.csv", "")]);
        let before = names(folder.path());
        let out = claim(folder.path()).unwrap();
        fs::create_dir_all(out.series()).unwrap();
        fs::write(out.series().join("mine.csv"), "").unwrap();
        assert!(out.take().unwrap_err().render(false).contains("mine.csv"));
        assert_eq!(names(folder.path()), before);
    }

    #[test]
    fn results_of_another_scenario_are_replaced_only_by_force() {
        let manifest =
            |source: &str, text: &str| format!("{{\"scenario\": {{\"source\": {source:?}, \"text\": {text:?}}}}}");
        let claimed = |manifest: &str, owner: &Owner, force| {
            let listed = list(&["manifest.json", "reproduction.json"]);
            let name = if manifest.contains("papers") { "reproduction.json" } else { "manifest.json" };
            let folder = folder(&[("files.json", &listed), (name, manifest)]);
            OutFolder::claim(folder.path(), owner, force).map(drop).map_err(|failure| failure.render(false))
        };
        let there = manifest("a.toml", "x");
        for same in [scenario("a.toml", "edited"), scenario("moved/a.toml", "x")] {
            assert_eq!(claimed(&there, &same, false), Ok(()));
        }
        for other in [scenario("b.toml", "y"), Owner::Reproduction] {
            let said = claimed(&there, &other, false).unwrap_err();
            assert!(said.contains("the results of the scenario a.toml") && said.contains("--force"), "{said}");
            assert_eq!(claimed(&there, &other, true), Ok(()));
        }
        assert!(claimed(&manifest("-", "x"), &scenario("-", "y"), false).is_err());
        assert!(claimed("{\"papers\": []}", &scenario("a.toml", ""), false).unwrap_err().contains("reproduce"));
        assert_eq!(claimed("{\"papers\": []}", &Owner::Reproduction, false), Ok(()));
    }

    #[test]
    fn results_from_before_there_were_lists_give_way() {
        let (manifest, results) =
            (r#"{"digest": "a1", "scenario": {"source": "a.toml", "text": ""}}"#, r#"{"digest": "a1"}"#);
        let early = [("manifest.json", manifest), ("results.json", results), ("runs.csv", ""), ("series/old.csv", "")];
        let refused = |more: &[(&str, &str)]| {
            let folder = folder(&[&early[..], more].concat());
            let said = claim(folder.path()).err().map(|failure| failure.render(false));
            assert_eq!(names(folder.path()).len(), early.len() + more.len());
            said
        };
        assert_eq!(refused(&[("kept/a.jsonl", "")]), None);
        for more in [("notes.txt", ""), ("series/notes.txt", ""), ("frontier.json", "")] {
            let said = refused(&[more]).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                said.contains("files.json there does not name it") && said.contains("move the file away"),
                "{said}"
            );
        }
        let folder = folder(&early);
        let out = claim(folder.path()).unwrap();
        fs::write(out.beside().join("results.json"), OURS).unwrap();
        out.take().unwrap();
        assert_eq!(names(folder.path()), ["files.json", "results.json"]);
    }
}
