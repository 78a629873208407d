//! `anabranch figure`

use crate::args::FigureArguments;
use anabranch_report::drawing::{Drawing, draw};
use anabranch_report::{FigureName, figure_names};
use anabranch_workbench::failure::Failure;
use anabranch_workbench::folder::Folder;
use anabranch_workbench::results_folder::report_of;
use std::path::{Path, PathBuf};

/// The list of figures, or one of them as a file.
pub fn figure(arguments: &FigureArguments) -> Result<String, Failure> {
    let report = report_of(&arguments.folder)?;
    let width = arguments.figure_width;
    let mut known = figure_names(&report);
    known.retain(|name| draw(&report, name, width).is_some());
    let Some(wanted) = &arguments.name else {
        return Ok(known.iter().map(|name| format!("{}\n", name.stem)).collect());
    };
    let name = find(&known, wanted)?;
    // The name is one of those that can be drawn.
    let drawing = draw(&report, name, width).unwrap_or_default();
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.pdf", name.stem)));
    write(&drawing, &out)?;
    Ok(format!("{}\n", out.display()))
}

/// The figure of this name.
fn find<'a>(known: &'a [FigureName], wanted: &str) -> Result<&'a FigureName, Failure> {
    known.iter().find(|name| name.stem == wanted).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|name| &*name.stem).collect();
        Failure::unknown_word("figure", wanted, &names, &format!("there are {}", names.join(", ")))
    })
}

fn write(drawing: &Drawing, out: &Path) -> Result<(), Failure> {
    let bytes = match out.extension().and_then(|ending| ending.to_str()) {
        Some("pdf") => drawing.pdf(),
        Some("svg") => drawing.svg().into_bytes(),
        _ => {
            let message = format!("{} ends neither in .pdf nor in .svg", out.display());
            return Err(Failure::unusable("anabranch::figure::format", message, None));
        }
    };
    let (folder, name) = Folder::around(out).map_err(|error| Failure::unwritable(out, &error))?;
    folder.write(name, bytes)
}
