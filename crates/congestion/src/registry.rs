//! The list of all congestion controls.

use anabranch_plugin::CongestionControl;
use anabranch_plugin::registry::Entry;
use core::fmt;

type CongestionEntry = Entry<dyn CongestionControl>;

/// An entry with the algorithm that plain TCP on one path uses in its place.
struct Registered {
    entry: &'static CongestionEntry,
    single_path: &'static CongestionEntry,
}

/// An algorithm that is its own single-path form.
const fn uncoupled(entry: &'static CongestionEntry) -> Registered {
    Registered { entry, single_path: entry }
}

const fn coupled(entry: &'static CongestionEntry, single_path: &'static CongestionEntry) -> Registered {
    Registered { entry, single_path }
}

const REGISTRY: &[Registered] = &[
    uncoupled(&crate::reno::ENTRY),
    uncoupled(&crate::cubic::ENTRY),
    coupled(&crate::lia::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::olia::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::balia::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::semicoupled::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::fully_coupled::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::ewtcp::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::epsilon::ENTRY, &crate::reno::ENTRY),
    coupled(&crate::desync::ENTRY, &crate::reno::ENTRY),
    uncoupled(&crate::vegas::ENTRY),
    coupled(&crate::wvegas::ENTRY, &crate::vegas::ENTRY),
    uncoupled(&crate::veno::ENTRY),
    coupled(&crate::mveno::ENTRY, &crate::veno::ENTRY),
    coupled(&crate::mpveno::ENTRY, &crate::veno::ENTRY),
    uncoupled(&crate::bbr::ENTRY),
];

static ALL: [&CongestionEntry; REGISTRY.len()] = entries();

const fn entries() -> [&'static CongestionEntry; REGISTRY.len()] {
    let mut entries = [REGISTRY[0].entry; REGISTRY.len()];
    let mut n = 0;
    while n < entries.len() {
        entries[n] = REGISTRY[n].entry;
        n += 1;
    }
    entries
}

/// All congestion controls, in the order in which lists show them.
pub fn all() -> &'static [&'static Entry<dyn CongestionControl>] {
    &ALL
}

/// The congestion control with this name or alias.
pub fn find(name: &str) -> Option<&'static Entry<dyn CongestionControl>> {
    all().iter().copied().find(|e| e.answers_to(name))
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
    let registered = REGISTRY.iter().find(|registered| registered.entry.answers_to(name));
    registered.map_or(crate::reno::ENTRY.name, |registered| registered.single_path.name)
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
    /// The algorithm has no such parameter.
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
                write!(f, "`{parameter}` = {value} is not between {min} and {max}, or not whole")
            }
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'static str>) -> fmt::Result {
    let names: Vec<_> = names.collect();
    f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(", ") }.as_str())
}

impl core::error::Error for BuildError {}
