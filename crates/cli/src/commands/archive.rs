//! `anabranch archive`

use crate::args::ArchiveArguments;
use anabranch_workbench::archive;
use anabranch_workbench::failure::Failure;

/// Puts a results directory into one file.
pub fn archive(arguments: &ArchiveArguments) -> Result<String, Failure> {
    let files = archive::archive(&arguments.folder, &arguments.out)?;
    Ok(format!("{}: {files} files\n", arguments.out.display()))
}
