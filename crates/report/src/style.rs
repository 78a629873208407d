//! One style a scheduler, the same in every report: a colour, a marker, a dash.

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

/// The palette's colours by theme, as `(light, dark)`: Okabe and Ito's, each darkened or lightened until it stands out
/// from the page's background (WCAG 2.2 §1.4.11: 3 to 1).
pub const PALETTE: [(&str, &str); 7] = [
    ("#0072b2", "#4ba3e3"), // blue
    ("#d55e00", "#f0772b"), // vermillion
    ("#008f68", "#1fc398"), // green
    ("#b5508c", "#dd86b6"), // purple
    ("#b07a00", "#e9b13c"), // orange
    ("#3a8fbd", "#8fd0f2"), // sky
    ("#5b5f66", "#c3c8d0"), // grey
];

/// Of the page: `(light, dark)`.
pub const BACKGROUND: (&str, &str) = ("#ffffff", "#14171c");

/// Markers of d3-shape that can be filled.
const SYMBOLS: [&str; 7] = ["circle", "square", "triangle", "diamond", "star", "wye", "cross"];

/// As SVG's `stroke-dasharray`; the first is a whole line.
const DASHES: [&str; 7] = ["", "7 3", "2 2", "9 3 2 3", "12 4", "4 2 1 2", "1 3"];

/// How something is drawn wherever it appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Style {
    /// Index into [`PALETTE`].
    pub colour: usize,
    /// d3's name.
    pub symbol: &'static str,
    /// As SVG writes it; empty for a whole line.
    pub dash: &'static str,
    /// Whether markers and bars are filled; `+pr` and `+or` are hollow.
    pub filled: bool,
}

/// The styles of `names`. A name's first word decides: a scheduler of the registry, with or without suffix, has the style
/// of its place in `registry`; other names get theirs in the order in which they appear, a path and its baseline the same.
pub fn styles<'a>(registry: &[String], names: impl IntoIterator<Item = &'a str>) -> IndexMap<String, Style> {
    let mut styles = IndexMap::new();
    let mut others = IndexSet::new();
    for name in names {
        if !styles.contains_key(name) {
            let style = of_scheduler(registry, name).unwrap_or_else(|| {
                let path = name.split([' ', ',']).next().and_then(|word| word.strip_prefix("single:"));
                numbered(others.insert_full(path.unwrap_or(name)).0, 0)
            });
            styles.insert(name.to_owned(), style);
        }
    }
    styles
}

fn of_scheduler(registry: &[String], name: &str) -> Option<Style> {
    let word = name.split([' ', ',']).next()?;
    let (base, variant) = match word.split_once('+') {
        None => (word, 0),
        Some((base, "pr")) => (base, 1),
        Some((base, _)) => (base, 2),
    };
    registry.iter().position(|known| known == base).map(|place| numbered(place, variant))
}

/// The style of place `i`; no two of the first 49 agree in colour and marker.
fn numbered(i: usize, variant: usize) -> Style {
    let (column, row) = (i % PALETTE.len(), i / PALETTE.len());
    Style {
        colour: column,
        symbol: SYMBOLS[(column + row) % SYMBOLS.len()],
        dash: DASHES[(row + 3 * variant) % DASHES.len()],
        filled: variant == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Relative luminance (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn registry() -> Vec<String> {
        (0..45).map(|i| format!("scheduler{i}")).collect()
    }

    #[test]
    fn every_colour_stands_out_from_the_page_in_both_themes() {
        for (light, dark) in PALETTE {
            assert!(contrast(light, BACKGROUND.0) >= 3.0, "{light}: {}", contrast(light, BACKGROUND.0));
            assert!(contrast(dark, BACKGROUND.1) >= 3.0, "{dark}: {}", contrast(dark, BACKGROUND.1));
        }
    }

    #[test]
    fn no_two_schedulers_look_alike_and_suffixes_keep_the_colour() {
        let registry = registry();
        let names: Vec<String> =
            registry.iter().flat_map(|name| ["", "+pr", "+or"].map(|suffix| format!("{name}{suffix}"))).collect();
        let styles = styles(&registry, names.iter().map(String::as_str));
        let distinct: BTreeSet<String> = styles.values().map(|style| format!("{style:?}")).collect();
        assert_eq!(distinct.len(), names.len());
        for name in &registry {
            let (plain, pr) = (styles[name.as_str()], styles[format!("{name}+pr").as_str()]);
            assert_eq!((plain.colour, plain.symbol), (pr.colour, pr.symbol));
            assert!(plain.filled && !pr.filled);
        }
    }

    #[test]
    fn a_scheduler_looks_the_same_in_every_report() {
        let registry = registry();
        let one = styles(&registry, ["single:wlan", "scheduler3", "scheduler9"]);
        let other = styles(&registry, ["scheduler9 (olia)", "scheduler3, lia", "wlan"]);
        assert_eq!(one["scheduler3"], other["scheduler3, lia"]);
        assert_eq!(one["scheduler9"], other["scheduler9 (olia)"]);
        assert_eq!(one["single:wlan"], other["wlan"]);
        let paths = styles(&registry, ["single:wlan", "single:3g, reno", "3g", "wlan"]);
        assert_eq!((paths["single:wlan"], paths["single:3g, reno"]), (paths["wlan"], paths["3g"]));
        assert_ne!(paths["wlan"], paths["3g"]);
    }
}
