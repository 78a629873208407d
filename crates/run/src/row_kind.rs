//! The kind of a row, by its name.

use std::fmt;

/// The beginning of the name of a row that runs one path alone.
const SINGLE: &str = "single:";

/// The kind of a row, by its scheduler's name in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind<'a> {
    /// Multipath TCP over all paths.
    Multipath,
    /// Plain TCP over this path alone.
    Single(&'a str),
}

impl<'a> RowKind<'a> {
    /// The kind of a row whose scheduler is called `blest` or `single:wlan`.
    pub fn of(scheduler: &'a str) -> Self {
        scheduler.strip_prefix(SINGLE).map_or(Self::Multipath, Self::Single)
    }

    /// The path, if there is only one.
    pub fn path(self) -> Option<&'a str> {
        match self {
            Self::Multipath => None,
            Self::Single(path) => Some(path),
        }
    }

    /// A baseline.
    pub fn is_single(self) -> bool {
        self.path().is_some()
    }
}

/// The name of the row that runs `path` alone.
pub(crate) fn single(path: impl fmt::Display) -> String {
    format!("{SINGLE}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_row_says_what_it_runs() {
        assert_eq!(RowKind::of("blest+or"), RowKind::Multipath);
        assert_eq!(RowKind::of(&single("a:b")), RowKind::Single("a:b"));
        assert_eq!((RowKind::of("single").path(), RowKind::of("single:3g").path()), (None, Some("3g")));
    }
}
