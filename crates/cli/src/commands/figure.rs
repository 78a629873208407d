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
    let names = figure_names(&report);
    let drawn = |name: &FigureName| draw(&report, name, arguments.figure_width);
    let known = || names.iter().filter(|name| drawn(name).is_some()).map(|name| &*name.stem);
    let Some(wanted) = &arguments.name else {
        return Ok(known().map(|name| format!("{name}\n")).collect());
    };
    let drawing = names.iter().find(|name| name.stem == *wanted).and_then(drawn).ok_or_else(|| {
        let known: Vec<&str> = known().collect();
        Failure::unknown_word("figure", wanted, &known, &format!("there are {}", known.join(", ")))
    })?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{wanted}.pdf")));
    write(&drawing, &out)?;
    Ok(format!("{}\n", out.display()))
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
