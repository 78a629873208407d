//! One style a scheduler, the same in every report: a colour, a marker, a dash.

use anabranch_run::RowKind;
use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

/// The palette's colours by theme, as `(light, dark)`: Okabe and Ito's, each darkened or lightened until it stands out
/// from the page's background (WCAG 2.2 §1.4.11: 3 to 1), then a deeper shade of each.
pub const PALETTE: [(&str, &str); 2 * HUES] = [
    ("#0072b2", "#4ba3e3"), // blue
    ("#d55e00", "#f0772b"), // vermillion
    ("#008f68", "#1fc398"), // green
    ("#b5508c", "#dd86b6"), // purple
    ("#b07a00", "#e9b13c"), // orange
    ("#3a8fbd", "#8fd0f2"), // sky
    ("#5b5f66", "#c3c8d0"), // grey
    ("#0b3566", "#b3ccf7"), // navy
    ("#8a3300", "#ffb48a"), // rust
    ("#004f3a", "#94efd2"), // fir
    ("#6b2452", "#f4c4df"), // plum
    ("#5e4200", "#f8dfa3"), // umber
    ("#0b6a75", "#5ed3dd"), // teal
    ("#23272d", "#f2f4f7"), // ink
];

/// Hues, of which there are two shades each.
const HUES: usize = 7;

/// Background of the page: `(light, dark)`.
pub const BACKGROUND: (&str, &str) = ("#ffffff", "#14171c");

/// Markers of d3-shape that can be filled.
const SYMBOLS: [&str; 7] = ["circle", "square", "triangle", "diamond", "star", "wye", "cross"];

/// As SVG's `stroke-dasharray`; the first is a whole line.
const DASHES: [&str; 9] = ["", "7 3", "2 2", "9 3 2 3", "12 4", "4 2 1 2", "1 3", "9 2 2 2 2 2", "5 5"];

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

/// The look of a name that has no style.
pub(crate) const PLAIN: Style = Style { colour: 2 * HUES - 1, symbol: "circle", dash: "", filled: true };

/// The styles of `names`. A scheduler of the registry, with or without suffix, has the style of its place in `registry` in
/// every report, unless one before it has the same colour and another is left; other names get a colour that is left, in the
/// order in which they appear, a path and its baseline the same.
/// A scheduler with several parameters, cells or congestion controls has the hue of the first in a shade and a dash that
/// nothing else of the report has.
pub fn styles<'a>(registry: &[String], names: impl IntoIterator<Item = &'a str>) -> IndexMap<String, Style> {
    let mut groups: IndexMap<&str, IndexSet<&str>> = IndexMap::new();
    for (word, form) in names.into_iter().map(split) {
        groups.entry(word).or_default().insert(form);
    }
    // The plain form comes first, where there is one.
    groups.values_mut().for_each(|forms| forms.sort_by_key(|form| !form.is_empty()));
    let mut firsts: IndexMap<&str, Style> =
        groups.keys().filter_map(|word| Some((*word, fixed(registry, word)?))).collect();
    part_colours(&mut firsts);
    let mut paths: IndexMap<&str, Style> = IndexMap::new();
    for word in groups.keys() {
        if !firsts.contains_key(word) {
            let path = RowKind::of(word).path().unwrap_or(word);
            let style = *paths.entry(path).or_insert_with(|| of_free_colour(firsts.values()));
            firsts.insert(*word, style);
        }
    }
    let mut styles: IndexMap<String, Style> = IndexMap::new();
    for (word, forms) in &groups {
        for (place, form) in forms.iter().enumerate() {
            let taken = firsts.values().chain(styles.values());
            let style = if place == 0 { firsts[word] } else { unlike(firsts[word].form(place), taken) };
            styles.insert(format!("{word}{form}"), style);
        }
    }
    styles
}

/// Gives a scheduler whose colour another one before it has, with its variants, a colour that is left, as long as there is one.
fn part_colours(firsts: &mut IndexMap<&str, Style>) {
    let base = |word: &str| word.split_once('+').map_or(word, |(base, _)| base).to_owned();
    let mut bases: IndexMap<String, usize> = IndexMap::new();
    let mut late: IndexSet<String> = IndexSet::new();
    for (word, style) in firsts.iter() {
        match bases.iter().any(|(other, colour)| *other != base(word) && *colour == style.colour) {
            true => drop(late.insert(base(word))),
            false => drop(bases.insert(base(word), style.colour)),
        }
    }
    for late in late {
        let Some(colour) = (0..PALETTE.len()).find(|colour| bases.values().all(|taken| taken != colour)) else {
            return;
        };
        firsts.iter_mut().filter(|(word, _)| base(word) == late).for_each(|(_, style)| style.colour = colour);
        bases.insert(late, colour);
    }
}

/// `blest+or(delta=0.01) (att)` is `blest+or` and the rest: parameters, cell, congestion control.
fn split(name: &str) -> (&str, &str) {
    name.split_at(name.find([' ', ',', '(']).unwrap_or(name.len()))
}

/// The style of a scheduler of the registry.
fn fixed(registry: &[String], word: &str) -> Option<Style> {
    let (base, variant) = match word.split_once('+') {
        None => (word, 0),
        Some((base, "pr")) => (base, 1),
        Some((base, _)) => (base, 2),
    };
    registry.iter().position(|known| known == base).map(|place| numbered(place, variant))
}

/// The first style whose colour none of `taken` has; if there is none, one that differs in the dash.
fn of_free_colour<'a>(taken: impl Iterator<Item = &'a Style> + Clone) -> Style {
    let free = |style: &Style| taken.clone().all(|other| other.colour != style.colour);
    let mut all = (0..PALETTE.len()).map(|place| numbered(place, 0));
    all.find(free).unwrap_or_else(|| unlike(numbered(0, 0), taken.clone()))
}

/// The first form of `style` that agrees with none of `taken` in colour and dash; if there is none, itself.
fn unlike<'a>(style: Style, taken: impl Iterator<Item = &'a Style>) -> Style {
    let taken: Vec<(usize, &str)> = taken.map(|other| (other.colour, other.dash)).collect();
    let mut forms = (0..2 * DASHES.len()).map(|n| style.form(n));
    forms.find(|form| !taken.contains(&(form.colour, form.dash))).unwrap_or(style)
}

/// The style of place `i`; no two of the first 98 agree in colour and marker, and of the first 42, whatever their suffix, in
/// colour and dash.
fn numbered(i: usize, variant: usize) -> Style {
    let (column, row) = (i % PALETTE.len(), i / PALETTE.len());
    Style {
        colour: column,
        symbol: SYMBOLS[(column + row) % SYMBOLS.len()],
        dash: DASHES[(column / HUES + 3 * row + variant) % DASHES.len()],
        filled: variant == 0,
    }
}

impl Style {
    /// The same hue in another shade, with another marker and another dash.
    fn form(self, n: usize) -> Self {
        let of = |list: &'static [&'static str], now| {
            let place = list.iter().position(|one| *one == now).unwrap_or(0);
            list[(place + n) % list.len()]
        };
        let colour = (self.colour + HUES * n) % PALETTE.len();
        Self { colour, symbol: of(&SYMBOLS, self.symbol), dash: of(&DASHES, self.dash), ..self }
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
        // Lines without markers, too.
        let lines: BTreeSet<(usize, &str)> =
            names[..3 * 42].iter().map(|name| (styles[name.as_str()].colour, styles[name.as_str()].dash)).collect();
        assert_eq!(lines.len(), 3 * 42);
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
        // Places 3 and 17 have one colour, and another is left.
        let both = styles(&registry, ["scheduler3", "scheduler17", "scheduler17+pr", "single:wlan"]);
        assert_eq!(both["scheduler3"], one["scheduler3"]);
        let colours: BTreeSet<usize> = both.values().map(|style| style.colour).collect();
        assert_eq!((colours.len(), both["scheduler17"].colour), (3, both["scheduler17+pr"].colour));
        let paths = styles(&registry, ["single:wlan", "single:3g, reno", "3g", "wlan"]);
        assert_eq!((paths["single:wlan"], paths["single:3g, reno"]), (paths["wlan"], paths["3g"]));
        assert_ne!(paths["wlan"], paths["3g"]);
    }

    #[test]
    fn forms_of_one_scheduler_differ_from_each_other_and_from_all_else() {
        let deltas = ["0.003", "0.005", "0.01", "0.02"].map(|delta| format!("scheduler8+or(delta={delta})"));
        let cells = ["att", "sprint", "verizon"];
        let cells = ["scheduler2+pr", "single:cell"].map(|row| cells.map(|cell| format!("{row} ({cell})")));
        let all = deltas.iter().chain(cells.iter().flatten()).map(String::as_str);
        // In every order, those without parameters keep their looks. Places 0 and 21 have one hue.
        let names: Vec<&str> =
            all.chain(["scheduler8+or", "scheduler8", "scheduler0", "scheduler21", "wifi"]).collect();
        let styles = styles(&registry(), names.iter().copied());
        let looks: BTreeSet<(usize, &str)> = styles.values().map(|style| (style.colour, style.dash)).collect();
        assert_eq!(looks.len(), names.len(), "{styles:#?}");
        assert_eq!(styles["scheduler8+or"], numbered(8, 2));
        assert_ne!(styles["scheduler0"].colour, styles["scheduler21"].colour);
        assert!(names[..4].iter().all(|name| styles[*name].colour % HUES == 1 && !styles[*name].filled));
    }
}
