//! Units in which people read metrics.

/// A unit with its size and the decimals that a column of such figures has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// `Mbit/s`; empty for counts and ratios.
    pub unit: &'static str,
    /// How much of the metric's unit makes one.
    pub per: f64,
    /// Decimals in a table.
    pub decimals: usize,
}

impl Scale {
    /// Scale of counts and ratios.
    pub const PLAIN: Self = Self { unit: "", per: 1.0, decimals: 3 };
    /// Scale of parts of a whole.
    pub const PERCENT: Self = Self { unit: "%", per: 0.01, decimals: 1 };
    /// Scale of rates.
    pub const MBIT_S: Self = Self { unit: "Mbit/s", per: 1e6, decimals: 3 };
    /// Scale of bytes.
    pub const KIB: Self = Self { unit: "KiB", per: 1024.0, decimals: 1 };
    /// Scale of packets.
    pub const PACKETS: Self = Self { unit: "packets", per: 1.0, decimals: 1 };
    /// Scale of long times.
    pub const S: Self = Self { unit: "s", per: 1.0, decimals: 3 };
    /// Scale of short times.
    pub const MS: Self = Self { unit: "ms", per: 1e-3, decimals: 1 };

    /// For values up to `greatest`: a time below a second in milliseconds, any other in seconds.
    #[must_use]
    pub fn fitted(self, greatest: f64) -> Self {
        match self.unit {
            "s" | "ms" if greatest < 1.0 => Self::MS,
            "s" | "ms" => Self::S,
            _ => self,
        }
    }

    /// `OFO mean, KiB`.
    pub fn after(self, words: &str) -> String {
        let comma = if self.unit.is_empty() { "" } else { ", " };
        format!("{words}{comma}{}", self.unit)
    }
}

/// The endings of names with their units in results and in tables; a test compares [`super::METRICS`] with them.
const ENDINGS: [(&str, &str, Scale); 4] = [
    ("_bps", "bit/s", Scale::MBIT_S),
    ("_bytes", "byte", Scale::KIB),
    ("_packets", "packet", Scale::PACKETS),
    ("_s", "s", Scale::S),
];

/// The unit in results, and that of tables, of a metric or curve of this name.
pub(super) const fn of_name(name: &str) -> (&'static str, Scale) {
    let mut n = 0;
    while n < ENDINGS.len() {
        let (ending, unit, scale) = ENDINGS[n];
        if ends_with(name.as_bytes(), ending.as_bytes()) {
            return (unit, scale);
        }
        n += 1;
    }
    ("", Scale::PLAIN)
}

const fn ends_with(text: &[u8], ending: &[u8]) -> bool {
    let mut n = 0;
    while n < ending.len() {
        if n >= text.len() || text[text.len() - 1 - n] != ending[ending.len() - 1 - n] {
            return false;
        }
        n += 1;
    }
    true
}

impl Scale {
    /// That of what is called `name`, with the name's stem: `ofo` and KiB of `ofo_bytes`, a curve.
    pub fn of_name(name: &str) -> (&str, Self) {
        let stem = ENDINGS.iter().find_map(|(ending, ..)| name.strip_suffix(ending));
        (stem.unwrap_or(name), of_name(name).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_name_tells_the_unit() {
        assert_eq!(Scale::of_name("ofo_bytes"), ("ofo", Scale::KIB));
        assert_eq!(Scale::of_name("lambda"), ("lambda", Scale::PLAIN));
        assert_eq!(of_name("s"), ("", Scale::PLAIN));
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!([0.5, 1.0].map(|greatest| Scale::MS.fitted(greatest).unit), ["ms", "s"]);
        assert_eq!(Scale::KIB.fitted(0.5), Scale::KIB);
        assert_eq!(
            (Scale::S.after("completion"), Scale::PLAIN.after("benefit")),
            ("completion, s".into(), "benefit".into())
        );
    }
}
