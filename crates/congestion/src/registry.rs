//! The list of all congestion controls.

use crate::{
    balia, bbr, cubic, desync, epsilon, ewtcp, fully_coupled, lia, mpveno, mveno, olia, reno, semicoupled, vegas, veno,
    wvegas,
};
use anabranch_engine::CongestionControl;
use anabranch_engine::plugin::Entry;
use core::fmt;

static ALL: &[&Entry<dyn CongestionControl>] = &[
    &reno::ENTRY,
    &cubic::ENTRY,
    &lia::ENTRY,
    &olia::ENTRY,
    &balia::ENTRY,
    &semicoupled::ENTRY,
    &fully_coupled::ENTRY,
    &ewtcp::ENTRY,
    &epsilon::ENTRY,
    &desync::ENTRY,
    &vegas::ENTRY,
    &wvegas::ENTRY,
    &veno::ENTRY,
    &mveno::ENTRY,
    &mpveno::ENTRY,
    &bbr::ENTRY,
];

/// All congestion controls, in the order of lists.
pub fn all() -> &'static [&'static Entry<dyn CongestionControl>] {
    ALL
}

/// The congestion control with this name or alias.
pub fn find(name: &str) -> Option<&'static Entry<dyn CongestionControl>> {
    ALL.iter().copied().find(|e| e.answers_to(name))
}

/// Builds one for a connection, with `parameters` over its defaults.
///
/// # Errors
/// An unknown name or parameter, or a value outside its parameter's range.
pub fn build(name: &str, parameters: &[(String, f64)]) -> Result<Box<dyn CongestionControl>, BuildError> {
    let entry = find(name).ok_or_else(|| BuildError::UnknownName { name: name.to_owned() })?;
    for (parameter, value) in parameters {
        let known = entry
            .parameters
            .iter()
            .find(|p| p.name == parameter)
            .ok_or_else(|| BuildError::UnknownParameter { congestion: entry.name, parameter: parameter.clone() })?;
        if !known.accepts(*value) {
            return Err(BuildError::OutOfRange {
                parameter: known.name,
                value: *value,
                min: known.min,
                max: known.max,
            });
        }
    }
    Ok(entry.build(parameters))
}

/// The congestion control of plain TCP on one path, as baseline of a multipath connection with `name`: for a coupled
/// algorithm its single-path form, for an uncoupled one itself. `reno` for an unknown name.
pub fn single_path_form(name: &str) -> &'static str {
    match find(name).map(|e| e.name) {
        None | Some("lia" | "olia" | "balia" | "semicoupled" | "coupled" | "ewtcp" | "epsilon" | "desync") => {
            reno::ENTRY.name
        }
        Some("wvegas") => vegas::ENTRY.name,
        Some("mveno" | "mpveno") => veno::ENTRY.name,
        Some(uncoupled) => uncoupled,
    }
}

/// Why a congestion control cannot be built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// No congestion control has this name.
    UnknownName {
        /// The name.
        name: String,
    },
    /// It has no such parameter.
    UnknownParameter {
        /// Canonical name of the congestion control.
        congestion: &'static str,
        /// The unknown parameter.
        parameter: String,
    },
    /// The value is out of the parameter's range.
    OutOfRange {
        /// The parameter.
        parameter: &'static str,
        /// The value.
        value: f64,
        /// Least allowed.
        min: f64,
        /// Greatest allowed.
        max: f64,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name } => {
                write!(f, "no congestion control is called `{name}`; there are ")?;
                join(f, ALL.iter().map(|e| e.name))
            }
            Self::UnknownParameter { congestion, parameter } => {
                write!(f, "`{congestion}` has no parameter `{parameter}`; it has ")?;
                join(f, find(congestion).into_iter().flat_map(|e| e.parameters).map(|p| p.name))
            }
            Self::OutOfRange { parameter, value, min, max } => {
                write!(f, "`{parameter}` = {value} is not between {min} and {max}, or not a whole yes or no")
            }
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'static str>) -> fmt::Result {
    let names: Vec<_> = names.collect();
    f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(", ") }.as_str())
}

impl core::error::Error for BuildError {}
