//! The list of the files that this program wrote into a directory: no other is removed.

use crate::beside::BESIDE;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::{TEXT, why};
use crate::inputs::INPUTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;

/// The list's own name.
const LIST: &str = "files.json";
/// The files that commands leave in a directory, and the directory of runs that are kept for the next call.
pub const FILES: [&str; 12] = [
    "results.json",
    "manifest.json",
    INPUTS,
    "reproduction.json",
    "inference.json",
    "report.json",
    "runs.csv",
    "runs.parquet",
    "summary.csv",
    "comparisons.csv",
    "prediction.json",
    "report.html",
];
const KEPT: &str = "kept";
/// The directories that commands fill.
pub const FOLDERS: [&str; 4] = ["series", "timeline", "tables", "runs"];
/// How the names of files end that commands leave.
const ENDINGS: [&str; 6] = ["json", "csv", "parquet", "html", "tex", "svg"];

/// Bytes of the longest name of a file.
const LONGEST: usize = 255;

/// Names relative to the directory, such as `series/a.csv`.
#[derive(Clone, Debug, Default)]
pub struct Listed(BTreeSet<String>);

/// The document.
#[derive(Serialize, Deserialize)]
pub struct Document {
    /// Version of the program.
    pub anabranch: String,
    /// Names relative to the directory, such as `series/a.csv`.
    pub files: BTreeSet<String>,
}

impl Listed {
    /// The files that the list in `folder` names; without a list, those of an early version, which wrote none, if nothing else is there. A
    /// name that no command gives a file, or that is a directory's, is passed over, for the list may be a stranger's: what cannot be
    /// removed would be noticed when other files are gone.
    pub fn of(folder: &Folder) -> Result<Self, Failure> {
        if folder.kind(LIST).is_none() {
            return Ok(Self::unlisted(folder).unwrap_or_default());
        }
        let unusable = |why: &str| {
            let message = format!("{} is not of this program: {why}", folder.path().join(LIST).display());
            Failure::unusable("anabranch::cli::foreign_file", message, Some("name another directory".into()))
        };
        let text = folder.read_within(TEXT, 0, LIST).map_err(|error| unusable(&why(&error)))?;
        let document: Document = serde_json::from_str(&text).map_err(|error| unusable(&error.to_string()))?;
        Ok(Self(document.files.into_iter().filter(|name| is_ours(name) && is_removable(folder, name)).collect()))
    }

    /// The files of a directory that a run filled before there were lists: its manifest and its results have the same digest, and nothing
    /// else is there but what a run writes.
    fn unlisted(folder: &Folder) -> Option<Self> {
        let mut all = Self::all_in(folder).ok()?;
        // Of the command that looks.
        all.0.retain(|name| !name.starts_with(BESIDE));
        let is_plain = |name: &String| is_ours(name) && (name.contains('/') || FILES.contains(&name.as_str()));
        let is_whole = all.0.iter().all(|name| is_plain(name) && is_removable(folder, name) || name == KEPT);
        let digest = |name| digest(folder, name);
        let is_one = is_whole && digest("manifest.json").is_some_and(|of| digest("results.json") == Some(of));
        is_one.then(|| Self(all.0.into_iter().filter(|name| name != KEPT).collect()))
    }

    /// All files in `folder` but the list, and in the directories that commands fill.
    pub fn all_in(folder: &Folder) -> io::Result<Self> {
        let mut names = BTreeSet::new();
        let text =
            |name: &Path| name.to_str().map(str::to_owned).ok_or_else(|| io::Error::from(ErrorKind::InvalidData));
        for name in folder.names()? {
            if FOLDERS.iter().any(|known| name == Path::new(known)) {
                for inner in folder.inner(&name)?.names()? {
                    names.insert(format!("{}/{}", text(&name)?, text(&inner)?));
                }
            } else if name != Path::new(LIST) {
                names.insert(text(&name)?);
            }
        }
        Ok(Self(names))
    }

    /// Adds `names` to the list in `folder`.
    pub fn add(folder: &Folder, names: impl IntoIterator<Item = String>) -> Result<(), Failure> {
        let mut listed = Self::of(folder)?;
        listed.0.extend(names);
        listed.write(folder)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().cloned()
    }

    /// True if it has `name`.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The names of both.
    pub fn with(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// Writes the list into `folder`.
    pub fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let document = Document { anabranch: env!("CARGO_PKG_VERSION").to_owned(), files: self.0.clone() };
        // Strings only: this cannot fail.
        folder.write(LIST, serde_json::to_string_pretty(&document).unwrap_or_default() + "\n")
    }

    /// Removes these files from `folder`; of the directories that commands fill, those that are empty then.
    pub fn remove(&self, folder: &Folder) -> Result<(), Failure> {
        for name in &self.0 {
            let removed = match name.split_once('/') {
                None => folder.remove(name),
                Some((inner, name)) => match folder.inner(inner) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    inner => inner.and_then(|inner| inner.remove(name)),
                },
            };
            removed.map_err(|error| Failure::unwritable(&folder.path().join(name), &error))?;
        }
        FOLDERS.iter().for_each(|name| folder.remove_empty(name));
        Ok(())
    }

    /// Moves these files from one directory to the same names in the other.
    pub fn put(&self, from: &Folder, to: &Folder) -> Result<(), Failure> {
        for name in &self.0 {
            let moved = match name.split_once('/') {
                None => from.move_to(to, OsStr::new(name)),
                Some((inner, name)) => {
                    let to = to.make_inner(inner)?;
                    from.inner(inner).and_then(|from| from.move_to(&to, OsStr::new(name)))
                }
            };
            moved.map_err(|error| Failure::unwritable(&to.path().join(name), &error))?;
        }
        Ok(())
    }
}

/// The digest that a document has.
fn digest(folder: &Folder, name: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Digest {
        digest: String,
    }
    let document: Digest = serde_json::from_reader(BufReader::new(folder.file(name).ok()?)).ok()?;
    Some(document.digest)
}

/// A file of this name can be removed, if there is one.
fn is_removable(folder: &Folder, name: &str) -> bool {
    let is_file = |folder: &Folder, name: &str| folder.kind(name).is_none_or(|kind| !kind.is_dir());
    name.len() <= LONGEST
        && match name.split_once('/') {
            None => is_file(folder, name),
            Some((inner, name)) => folder.inner(inner).map_or(true, |inner| is_file(&inner, name)),
        }
}

/// A name that a command may give a file.
fn is_ours(name: &str) -> bool {
    let (folder, file) = name.split_once('/').map_or((None, name), |(folder, file)| (Some(folder), file));
    let ends = Path::new(file).extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    let is_plain = !file.starts_with('.') && !file.contains(['/', '\\']) && file != LIST;
    ends && is_plain && folder.is_none_or(|folder| FOLDERS.contains(&folder))
}
