//! A journal of outcomes: a file, in which each is found by the name of its run.

use crate::folder::Folder;
use crate::input::Limit;
use anabranch_run::RunOutcome;
use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_64;

/// A file that is open for reading, and at its end for writing; no other command writes to it.
///
/// A line is the checksum of what follows, the name of the run, and its outcome in JSON: `CHECKSUM NAME {…}`.
pub struct Journal {
    /// For reading.
    file: Mutex<File>,
    content: Mutex<Content>,
}

/// Places of lines by a run's name: beginning and length.
type Places = HashMap<u128, (u64, u32)>;

struct Content {
    places: Places,
    /// For writing, at the end.
    file: File,
    /// The next line begins here.
    end: u64,
    /// Nothing is written any more.
    error: Option<io::Error>,
}

/// Limit of a line: far more than a run has with all its curves.
const LINE: Limit = Limit::of("a line of a journal", 64);

impl Journal {
    /// Opens the file `name`, and makes it if need be. A line that is cut off, damaged, or of another form counts as not there.
    ///
    /// # Errors
    /// The file is of another kind or cannot be opened; [`ErrorKind::WouldBlock`]: another command is writing it.
    pub fn open(folder: &Folder, name: &str) -> io::Result<Self> {
        let mut appended = folder.append(name)?;
        if let Err(TryLockError::WouldBlock) = appended.try_lock() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let file = folder.file(name)?;
        let (places, mut end, whole) = places(&file)?;
        if !whole {
            appended.write_all(b"\n")?;
            end += 1;
        }
        Ok(Self::of(file, Content { places, file: appended, end, error: None }))
    }

    /// An empty one in a file without a name, which vanishes with the process.
    pub fn temporary() -> io::Result<Self> {
        let named = NamedTempFile::new()?;
        let content = Content { places: Places::new(), file: named.reopen()?, end: 0, error: None };
        Ok(Self::of(named.into_file(), content))
    }

    fn of(file: File, content: Content) -> Self {
        Self { file: Mutex::new(file), content: Mutex::new(content) }
    }

    /// The file, for writing.
    pub fn file(&self) -> io::Result<File> {
        self.content().file.try_clone()
    }

    /// The outcome of the run `name`. A line that another program has changed meanwhile counts as not there.
    pub fn find(&self, name: u128) -> Option<RunOutcome> {
        let (begin, length) = *self.content().places.get(&name)?;
        let mut line = vec![0; length as usize];
        {
            let mut file = locked(&self.file);
            file.seek(SeekFrom::Start(begin)).and_then(|_| file.read_exact(&mut line)).ok()?;
        }
        let (_, text) = read_line(&line).filter(|(read, _)| *read == name)?;
        serde_json::from_slice(&line[text]).ok()
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.content().end
    }

    /// True if the outcome of the run `name` is there.
    pub fn has(&self, name: u128) -> bool {
        self.content().places.contains_key(&name)
    }

    /// True if there is a run that is not among `known`.
    pub fn has_others(&self, known: &HashSet<u128>) -> bool {
        self.content().places.keys().any(|name| !known.contains(name))
    }

    /// Writes an outcome down. Of one that cannot be kept, nothing else is lost.
    pub fn keep(&self, name: u128, outcome: &RunOutcome) {
        let Ok(text) = serde_json::to_string(outcome) else { return };
        let named = format!("{name:032x} {text}");
        let line = format!("{:016x} {named}\n", xxh3_64(named.as_bytes()));
        self.content().append(name, line.as_bytes());
    }

    /// All lines, for another process.
    pub fn lines(&self) -> io::Result<Vec<u8>> {
        let end = self.length();
        let mut file = locked(&self.file);
        let mut lines = Vec::new();
        file.rewind()?;
        (&*file).take(end).read_to_end(&mut lines)?;
        Ok(lines)
    }

    /// Adds the outcomes of another journal's lines.
    pub fn add(&self, lines: impl Read) -> io::Result<()> {
        each_line(lines, |line| {
            if let Some(name) = line_name(line) {
                self.content().append(name, line);
            }
            Ok(())
        })
    }

    /// The answer of `say` to the error that ended writing, if any.
    pub fn with_error<T>(&self, say: impl FnOnce(&io::Error) -> T) -> Option<T> {
        self.content().error.as_ref().map(say)
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        locked(&self.content)
    }
}

impl Content {
    /// Writes the line of the run `name`.
    fn append(&mut self, name: u128, line: &[u8]) {
        if self.error.is_none() {
            self.error = self.file.write_all(line).err();
        }
        if self.error.is_none() {
            self.places.insert(name, (self.end, line.len() as u32));
            self.end += line.len() as u64;
        }
    }
}

/// A panic elsewhere leaves nothing half done in here.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The places of the lines in `file`, its length, and whether its last line is whole.
fn places(file: &File) -> io::Result<(Places, u64, bool)> {
    let (mut places, mut end, mut whole) = (Places::new(), 0, true);
    each_line(file, |line| {
        whole = line.ends_with(b"\n");
        if let Some(name) = line_name(line) {
            places.insert(name, (end, line.len() as u32));
        }
        end += line.len() as u64;
        Ok(())
    })?;
    Ok((places, end, whole))
}

/// The lines of a journal in turn, with their ends. One that no run can have is an error: what follows may have no end.
pub fn each_line(lines: impl Read, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut reader = BufReader::new(lines);
    let mut line = Vec::new();
    while reader.by_ref().take(LINE.bytes() + 1).read_until(b'\n', &mut line)? > 0 {
        LINE.check(line.len() as u64)?;
        each(&line)?;
        line.clear();
    }
    Ok(())
}

/// The name of a run, and where in `line` its outcome stands.
fn read_line(line: &[u8]) -> Option<(u128, Range<usize>)> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (checksum, named) = text.split_once(' ')?;
    let (name, outcome) = named.split_once(' ')?;
    let is_whole = u64::from_str_radix(checksum, 16).ok()? == xxh3_64(named.as_bytes());
    is_whole.then_some((u128::from_str_radix(name, 16).ok()?, text.len() - outcome.len()..text.len()))
}

/// The name of the run of a line.
pub fn line_name(line: &[u8]) -> Option<u128> {
    read_line(line).map(|(name, _)| name)
}
