//! The directory of `--out`: it belongs to the command that wrote into it last.

use crate::beside::BESIDE;
use crate::failure::Failure;
use crate::input::open_regular;
use crate::output::create;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The files that commands leave in it and `anabranch report` reads. Runs kept for the next call (`kept/`) are none of them.
const DOCUMENTS: [&str; 4] = ["results.json", "manifest.json", "reproduction.json", "report.json"];
const FILES: [&str; 6] =
    ["runs.csv", "runs.parquet", "summary.csv", "comparisons.csv", "prediction.json", "report.html"];
const FOLDERS: [(&str, &str); 4] = [("series", "csv"), ("timeline", "json"), ("tables", "csv"), ("tables", "tex")];

/// A directory that a command is about to fill.
///
/// All is written beside first. Files of earlier commands stay until [`OutFolder::take`], so that neither an interrupted
/// command nor a full disk destroys anything.
pub struct OutFolder {
    folder: PathBuf,
    /// For what is to come into the directory; vanishes with this value.
    beside: TempDir,
}

impl OutFolder {
    /// Makes `folder` if need be. To be done before the work: refuses it where files that this program did not write would be
    /// lost.
    pub fn claim(folder: &Path) -> Result<Self, Failure> {
        if let Some(file) = foreign(folder) {
            let message = format!("{} is not of this program and would be lost", file.display());
            let help = "give --out another directory, or move the file".to_owned();
            return Err(Failure::unusable("anabranch::cli::foreign_file", message, Some(help)));
        }
        create(folder)?;
        let beside = tempfile::Builder::new().prefix(BESIDE).tempdir_in(folder);
        let beside = beside.map_err(|error| Failure::unwritable(folder, &error))?;
        Ok(Self { folder: folder.to_owned(), beside })
    }

    /// True if no earlier command left whole results there.
    pub fn is_free(&self) -> bool {
        let results = self.folder.join("results.json");
        !results.exists() || is_part(&results)
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
        for file in written(&self.folder) {
            fs::remove_file(&file).map_err(|error| Failure::unwritable(&file, &error))?;
        }
        for (name, _) in FOLDERS {
            // It stays where something else is in it.
            let _ = fs::remove_dir(self.folder.join(name));
        }
        put(self.beside.path(), &self.folder).map_err(|error| Failure::unwritable(&self.folder, &error))?;
        Ok(self.folder)
    }
}

/// Moves the files in `from`, and those of its directories, to the same places in `to`.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => put(&entry.path(), &place)?,
            false => fs::rename(entry.path(), place)?,
        }
    }
    Ok(())
}

/// The files in `folder` whose names are those that commands leave.
fn written(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = DOCUMENTS.iter().chain(&FILES).map(|name| folder.join(name)).collect();
    files.retain(|file| file.symlink_metadata().is_ok());
    for (name, ending) in FOLDERS {
        let entries = fs::read_dir(folder.join(name)).into_iter().flatten().flatten().map(|entry| entry.path());
        files.extend(entries.filter(|file| file.extension().is_some_and(|e| e == ending)));
    }
    files
}

/// A file that would be lost, and is another program's: a document that does not name this program, or any other file where
/// no document says who wrote it.
fn foreign(folder: &Path) -> Option<PathBuf> {
    let is_document =
        |file: &PathBuf| file.parent() == Some(folder) && DOCUMENTS.iter().any(|name| file.ends_with(name));
    let (documents, others): (Vec<PathBuf>, Vec<PathBuf>) = written(folder).into_iter().partition(is_document);
    let none = documents.is_empty();
    documents.into_iter().find(|file| !is_ours(file)).or_else(|| others.into_iter().next().filter(|_| none))
}

/// Results with missing runs.
fn is_part(document: &Path) -> bool {
    fields(document).contains_key("incomplete")
}

/// The names of a document's fields; their content is passed over.
fn fields(document: &Path) -> BTreeMap<String, IgnoredAny> {
    open_regular(document).ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok()).unwrap_or_default()
}

/// Documents name the program in a field; what is in the fields is passed over.
fn is_ours(document: &Path) -> bool {
    let fields = fields(document);
    ["anabranch", "made_by"].iter().any(|name| fields.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::meant;

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

    #[test]
    fn what_earlier_commands_left_goes_when_the_new_is_there_and_nothing_else() {
        let folder = folder(&[
            ("results.json", OURS),
            ("report.json", r#"{"made_by": {"version": "0.1.0"}}"#),
            ("report.html", ""),
            ("prediction.json", "[]"),
            ("series/old.csv", ""),
            ("series/notes.txt", ""),
            ("timeline/old.json", ""),
            ("tables/summary.tex", ""),
            ("kept/a.jsonl", ""),
            ("thesis.tex", ""),
        ]);
        let before = names(folder.path());
        let out = OutFolder::claim(folder.path()).unwrap();
        fs::create_dir_all(out.series()).unwrap();
        fs::write(out.series().join("new.csv"), "").unwrap();
        assert_eq!(meant(&out.series().join("new.csv")), folder.path().join("series/new.csv"));
        drop(out);
        assert_eq!(names(folder.path()), before, "an interrupted command leaves all as it was");

        let out = OutFolder::claim(folder.path()).unwrap();
        fs::create_dir_all(out.series()).unwrap();
        fs::write(out.series().join("new.csv"), "").unwrap();
        fs::write(out.beside().join("results.json"), OURS).unwrap();
        assert_eq!(out.take().unwrap(), folder.path());
        let left = ["kept/a.jsonl", "results.json", "series/new.csv", "series/notes.txt", "thesis.tex"];
        assert_eq!(names(folder.path()), left);
        assert!(!folder.path().join("timeline").exists());
    }

    #[test]
    fn another_programs_files_are_refused_by_name() {
        let refused = |files: &[(&str, &str)]| {
            let folder = folder(files);
            OutFolder::claim(folder.path()).err().map(|failure| {
                assert_eq!(names(folder.path()).len(), files.len());
                failure.render(false)
            })
        };
        assert!(refused(&[("results.json", "[1, 2]")]).unwrap().contains("results.json is not of this program"));
        assert!(refused(&[("results.json", OURS), ("report.json", "{}")]).unwrap().contains("report.json"));
        assert!(refused(&[("series/mine.csv", "")]).unwrap().contains("mine.csv"));
        assert!(refused(&[("runs.csv", "")]).unwrap().contains("runs.csv"));
        assert!(refused(&[("prediction.json", "{}")]).unwrap().contains("prediction.json"));
        assert_eq!(refused(&[("kept/a.jsonl", ""), ("notes.txt", "")]), None);
        assert_eq!(refused(&[("manifest.json", OURS), ("runs.csv", ""), ("series/a.csv", "")]), None);
    }
}
