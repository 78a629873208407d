//! From what the user typed to a checked scenario.

use crate::builtin;
use crate::failure::Failure;
use crate::input::{SCENARIO, TRACES, read_within, text_of, why};
use anabranch_run::Variant;
use anabranch_scenario::{Diagnostic, Document, Override, PlugIn, Resolver, Source, nearest, outside_brackets};
use miette::Report;
use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In the place of a file's name.
pub const STANDARD_INPUT: &str = "-";

/// A scenario with its text and what was set from outside.
#[derive(Debug)]
pub struct Loaded {
    /// As written.
    pub source: Source,
    /// From the command line.
    pub overrides: Vec<Override>,
    /// The files that it names, with their texts.
    pub files: Vec<(String, String)>,
    /// As checked.
    pub document: Document,
}

/// Files beside the scenario.
struct Folder<'a> {
    folder: &'a Path,
    /// Bytes that were read so far.
    used: Cell<u64>,
    /// Every file that was read.
    read: RefCell<Vec<(String, String)>>,
}

/// Files that were read before.
struct Known<'a>(&'a [(String, String)]);

impl Resolver for Known<'_> {
    fn read(&self, file: &str) -> Result<String, String> {
        let known = self.0.iter().find(|(name, _)| name == file);
        known.map(|(_, text)| text.clone()).ok_or_else(|| "it is not among the files that were kept".into())
    }
}

impl Resolver for Folder<'_> {
    fn read(&self, file: &str) -> Result<String, String> {
        let read = read_within(TRACES, self.used.get(), &self.folder.join(file));
        let used = match &read {
            Ok(text) => self.used.get() + text.len() as u64,
            // One file without end is enough.
            Err(error) if error.kind() == ErrorKind::FileTooLarge => u64::MAX,
            Err(_) => self.used.get(),
        };
        self.used.set(used);
        let text = read.map_err(|error| why(&error))?;
        self.read.borrow_mut().push((file.to_owned(), text.clone()));
        Ok(text)
    }
}

impl Loaded {
    /// Reads the file `path`, standard input for `-`, or else the built-in scenario of that name.
    pub fn read(path: &Path, overrides: Vec<Override>) -> Result<Self, Failure> {
        // For messages, and for built-in names; the file is opened by its own bytes.
        let name = path.to_string_lossy().into_owned();
        let read = match name == STANDARD_INPUT {
            true => text_of(io::stdin(), SCENARIO, 0),
            false => read_within(SCENARIO, 0, path),
        };
        let text = match read {
            Ok(text) => text,
            Err(error) => match builtin::find(&name) {
                Some(text) if !path.exists() => text.to_owned(),
                _ => return Err(unreadable(&name, &error)),
            },
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(Source { name, text }, folder, overrides)
    }

    /// A scenario that comes with the program.
    pub fn builtin(name: &str, overrides: Vec<Override>) -> Result<Self, Failure> {
        let text = builtin::find(name).ok_or_else(|| unknown_scenario(name))?;
        Self::given(name, text, overrides)
    }

    /// The text of a scenario that stands in no file.
    pub fn given(name: &str, text: &str, overrides: Vec<Override>) -> Result<Self, Failure> {
        Self::parse(Source { name: name.to_owned(), text: text.to_owned() }, Path::new(""), overrides)
    }

    /// The scenario `source`, whose traces are in `folder`.
    pub fn parse(source: Source, folder: &Path, overrides: Vec<Override>) -> Result<Self, Failure> {
        Self::diagnosed(source, folder, overrides).map_err(unusable)
    }

    /// The same, with all that is wrong as values.
    pub fn diagnosed(source: Source, folder: &Path, overrides: Vec<Override>) -> Result<Self, Vec<Diagnostic>> {
        let files = Folder { folder, used: Cell::new(0), read: RefCell::default() };
        let document = anabranch_scenario::read(&source, &overrides, &files)?;
        Ok(Self { source, overrides, files: files.read.into_inner(), document })
    }

    /// The same from the texts that were kept of it.
    pub fn again(source: Source, overrides: Vec<Override>, files: Vec<(String, String)>) -> Result<Self, Failure> {
        let document = anabranch_scenario::read(&source, &overrides, &Known(&files)).map_err(unusable)?;
        Ok(Self { source, overrides, files, document })
    }

    /// The cells, for planning.
    pub fn variants(&self) -> Vec<Variant> {
        let cells = self.document.cells.iter();
        cells.map(|(cell, scenario)| Variant { cell: cell.clone(), scenario: Arc::new(scenario.clone()) }).collect()
    }
}

/// The scenario files of a directory, by name.
pub fn scenario_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read {}: {}", folder.display(), why(&error));
        Failure::unusable("anabranch::cli::unreadable", message, None)
    };
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    let mut files: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    if files.is_empty() {
        let message = format!("{} holds no scenario file", folder.display());
        return Err(Failure::unusable(
            "anabranch::cli::unreadable",
            message,
            Some("scenario files end in .toml".into()),
        ));
    }
    Ok(files)
}

/// The schedulers in `names`, each a list with commas; `all` means every one.
pub fn schedulers(option: &str, names: &[impl AsRef<str>]) -> Result<Vec<PlugIn>, Failure> {
    let every: Vec<&str> = anabranch_schedulers::all().iter().map(|entry| entry.name).collect();
    plug_ins(option, names, &every, anabranch_scenario::scheduler)
}

/// The congestion controls in `names`, each a list with commas; `all` means every one.
pub fn congestions(option: &str, names: &[impl AsRef<str>]) -> Result<Vec<PlugIn>, Failure> {
    let every: Vec<&str> = anabranch_congestion::all().iter().map(|entry| entry.name).collect();
    plug_ins(option, names, &every, anabranch_scenario::congestion)
}

/// All errors are reported at once.
fn plug_ins(
    option: &str,
    names: &[impl AsRef<str>],
    every: &[&str],
    read: fn(&str, &str) -> Result<PlugIn, Vec<Diagnostic>>,
) -> Result<Vec<PlugIn>, Failure> {
    let names =
        names.iter().map(AsRef::as_ref).flat_map(|names| outside_brackets(names).into_iter().map(|at| &names[at]));
    let names = names.flat_map(|name| if name == "all" { every.to_vec() } else { vec![name] });
    let (mut plug_ins, mut wrong) = (Vec::new(), Vec::new());
    for name in names {
        match read(option, name) {
            Ok(plug_in) => plug_ins.push(plug_in),
            Err(diagnostics) => wrong.extend(diagnostics),
        }
    }
    if wrong.is_empty() { Ok(plug_ins) } else { Err(unusable(wrong)) }
}

/// The settings of `--set`.
pub fn set_overrides(texts: &[String]) -> Vec<Override> {
    texts.iter().map(|text| Override::parse("--set", text)).collect()
}

/// Mistakes in what the user gave.
pub fn unusable(diagnostics: Vec<Diagnostic>) -> Failure {
    Failure::Unusable(diagnostics.into_iter().map(Report::new).collect())
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    let is_file_name = name.contains(['/', '\\']) || name.ends_with(".toml");
    let near = (error.kind() == ErrorKind::NotFound).then(|| near_file(Path::new(name))).flatten();
    if error.kind() == ErrorKind::NotFound && !is_file_name && near.is_none() {
        return unknown_scenario(name);
    }
    let help = match error.kind() {
        ErrorKind::NotFound => Some(near.map_or_else(|| beside(name), |file| format!("did you mean `{file}`?"))),
        ErrorKind::IsADirectory => Some("name a scenario file in it".to_owned()),
        ErrorKind::InvalidInput => Some("`-` reads a scenario from standard input".to_owned()),
        _ => None,
    };
    Failure::unusable("anabranch::cli::unreadable", format!("cannot read {name}: {}", why(error)), help)
}

/// The scenario file in the same folder whose name is nearest to that of a file that does not exist.
fn near_file(path: &Path) -> Option<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let read = fs::read_dir(if folder == Path::new("") { Path::new(".") } else { folder });
    let stem = |file: String| file.strip_suffix(".toml").map(str::to_owned);
    let mut stems: Vec<String> =
        read.ok()?.filter_map(|entry| stem(entry.ok()?.file_name().into_string().ok()?)).collect();
    stems.sort();
    let near = nearest(path.file_stem()?.to_str()?, stems.iter().map(String::as_str))?;
    Some(folder.join(format!("{near}.toml")).to_string_lossy().into_owned())
}

/// A suggestion for the name of a file that does not exist.
fn beside(name: &str) -> String {
    let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    let stem = file.strip_suffix(".toml").unwrap_or(&file);
    match nearest(stem, builtin::SCENARIOS.iter().map(|(name, _)| *name)) {
        Some(near) => format!("did you mean the built-in scenario `{near}`?"),
        None => "`anabranch list scenarios` lists the built-in scenarios".into(),
    }
}

/// Neither a file here nor a scenario that comes with the program.
fn unknown_scenario(name: &str) -> Failure {
    let names: Vec<&str> = builtin::SCENARIOS.iter().map(|(name, _)| *name).collect();
    Failure::unknown_word("scenario", name, &names, "give a file, or a name from `anabranch list scenarios`")
}
