//! A results directory as one file, to be kept beside a paper.

use crate::artifacts::Manifest;
use crate::digest::sha256;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::{RESULTS, why};
use crate::inputs::{INPUTS, Inputs};
use crate::listed::Listed;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes of a directory's files at most: each is held in memory.
const MOST: u64 = 4 << 30;

/// Writes `results` into the file `out`, a gzip-compressed tar archive: the files, their SHA-256, and a README that says how to make them again.
/// The same directory gives the same bytes. Returns the number of files.
///
/// # Errors
/// The directory has no results of a run, or cannot be read; the file cannot be written.
pub fn archive(results: &Path, out: &Path) -> Result<usize, Failure> {
    let unreadable = |error: &io::Error| {
        let message = format!("cannot read {}: {}", results.display(), why(error));
        let help = "an archive is made of what `run --out DIR` wrote".to_owned();
        Failure::unusable("anabranch::cli::unreadable", message, Some(help))
    };
    let folder = Folder::open(results).map_err(|error| unreadable(&error))?;
    let inputs = Inputs::read(&folder)?;
    let manifest = folder.read_within(RESULTS, 0, "manifest.json").map_err(|error| unreadable(&error))?;
    let manifest: Manifest = serde_json::from_str(&manifest)
        .map_err(|error| unreadable(&io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let files = read(&folder).map_err(|error| unreadable(&error))?;
    let sums: String = files.iter().map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes))).collect();
    let readme = readme(&inputs, &manifest);
    let (around, name) = Folder::around(out).map_err(|error| Failure::unwritable(out, &error))?;
    let stem = stem(out);
    around.write_with(name, |sink| {
        let mut tar = Tar::new(sink, &stem);
        tar.add("README.md", readme.as_bytes())?;
        tar.add("SHA256SUMS", sums.as_bytes())?;
        files.iter().try_for_each(|(name, bytes)| tar.add(name, bytes))?;
        tar.end()
    })?;
    Ok(files.len() + 2)
}

/// The files that commands wrote, by name.
fn read(folder: &Folder) -> io::Result<Vec<(String, Vec<u8>)>> {
    let listed = Listed::of(folder).map_err(|failure| io::Error::other(failure.render(false)))?;
    let mut left = MOST;
    let one = |name: String| {
        let file = match name.split_once('/') {
            Some((inner, name)) => folder.inner(inner)?.file(name)?,
            None => folder.file(&name)?,
        };
        let mut bytes = Vec::new();
        left -= file.take(left).read_to_end(&mut bytes)? as u64;
        if left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has more than 4 GiB"));
        }
        Ok((name, bytes))
    };
    listed.names().map(one).collect()
}

/// The name of the folder in the archive.
fn stem(out: &Path) -> String {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    [".tar.gz", ".tgz"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name).to_owned()
}

/// A tar archive whose entries have no time and no owner.
struct Tar<W: Write> {
    tar: tar::Builder<GzEncoder<W>>,
    stem: String,
}

impl<W: Write> Tar<W> {
    fn new(sink: W, stem: &str) -> Self {
        Self { tar: tar::Builder::new(GzEncoder::new(sink, Compression::best())), stem: stem.to_owned() }
    }

    fn add(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        self.tar.append_data(&mut header, format!("{}/{name}", self.stem), bytes)
    }

    fn end(self) -> io::Result<()> {
        self.tar.into_inner()?.finish()?.flush()
    }
}

fn readme(inputs: &Inputs, manifest: &Manifest) -> String {
    let whole = &inputs.whole;
    let again = if whole.real_time {
        "The runs were in real time, so no two of them are the same. `manifest.json` has the command.\n".to_owned()
    } else if inputs.plug_ins.is_empty() {
        "In this folder:\n\n    anabranch rerun .\n\nIt makes every run again, and ends with code 0 if the results are the same, byte for \
         byte.\n"
            .to_owned()
    } else {
        let names: Vec<&str> = inputs.plug_ins.iter().map(|object| &*object.name).collect();
        format!(
            "The runs use classes of Python ({}). Read their source in `{INPUTS}`; then, in this folder:\n\n    \
             python -c 'import anabranch; anabranch.rerun(\".\", trust=True)'\n",
            names.join(", ")
        )
    };
    let files: String =
        whole.files.iter().map(|(name, text)| format!("- `{name}`: SHA-256 {}\n", sha256(text))).collect();
    let files = if files.is_empty() { "None.\n".to_owned() } else { files };
    let commit = manifest.git_commit.as_deref().unwrap_or("unknown");
    format!(
        "# Results of Anabranch\n\nMade by `{}`.\n\n- version {}, commit {commit}\n- build {}\n- scenario `{}`\n\n## Make them again\n\n\
         Install Anabranch {} (https://github.com/anabranch/anabranch). {again}\n## Check the files\n\n    \
         sha256sum --check SHA256SUMS\n\n## Traces\n\n`{INPUTS}` has the text of the scenario and of every file that it names:\n\n{files}\n\
         ## Files\n\n`results.json` has all results, `runs.csv` and `runs.parquet` the runs, `tables/` the tables as CSV and LaTeX, \
         `report.html` the report.\n",
        manifest.command.join(" "),
        inputs.anabranch,
        inputs.program,
        whole.source,
        inputs.anabranch
    )
}
