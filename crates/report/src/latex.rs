//! Figures for papers: names of the files that the page saves, and LaTeX that includes them.

use crate::chart::Chart;
use crate::table::escape;
use indexmap::{IndexMap, IndexSet};

/// Letters of a name: LaTeX and file systems take more, readers do not.
const LONGEST: usize = 60;

/// A drawing that is saved as a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// The file, without ending.
    pub stem: String,
    /// Caption beside others; empty if the drawing is alone.
    pub caption: String,
}

/// Names that are given once each.
#[derive(Debug, Default)]
pub struct Names(IndexSet<String>);

impl Names {
    /// `parts` as a name of letters, digits and `-`, with a number if it was given before.
    pub fn give(&mut self, parts: &[&str]) -> String {
        let slugs: Vec<String> = parts.iter().map(|part| slug(part)).filter(|slug| !slug.is_empty()).collect();
        let plain: String = slugs.join("-").chars().take(LONGEST).collect();
        let plain = plain.trim_end_matches('-').to_owned();
        let numbered = (2..).map(|n| format!("{plain}-{n}"));
        let free = core::iter::once(plain.clone()).chain(numbered).find(|name| !self.0.contains(name)).unwrap_or(plain);
        self.0.insert(free.clone());
        free
    }
}

/// Letters, digits, and one `-` for all between them.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Sections that say where a figure stands, not what it shows.
const PLACES: [&str; 3] = ["summary", "why", "further"];

/// The name of a figure: what it shows, without the unit; and its section, unless that is only a place.
pub fn stem(section: &str, title: &str, names: &mut Names) -> String {
    let section = if PLACES.contains(&section) { "" } else { section };
    names.give(&[section, without_unit(title)])
}

/// `goodput, Mbit/s` without what follows the comma.
fn without_unit(label: &str) -> &str {
    label.split_once(", ").map_or(label, |(name, _)| name)
}

/// The files of a chart of several panels, in the panels' order; none of a chart that is one drawing. Panels over time are named by what they
/// show within their `section`. Of a distribution the page finds
/// whether it draws one panel or two.
pub fn drawings(chart: &Chart, (section, stem): (&str, &str), names: &mut Names) -> Vec<Drawing> {
    let captions: IndexMap<&str, ()> = match chart {
        Chart::Bars(bars) => bars.bars.iter().map(|bar| (&*bar.group, ())).collect(),
        Chart::TimeSeries(series) => series.panels.iter().map(|panel| (&*panel.axis.label, ())).collect(),
        Chart::Distribution(_) => IndexMap::from([("Where 95 % of every row lie", ()), ("All", ())]),
        _ => IndexMap::new(),
    };
    let short = |caption: &str| {
        if matches!(chart, Chart::Distribution(_)) && caption != "All" { "most" } else { caption }.to_owned()
    };
    let drawing = |caption: &str| {
        let stem = match chart {
            Chart::TimeSeries(_) => names.give(&[section, without_unit(caption)]),
            _ => names.give(&[stem, &short(caption)]),
        };
        Drawing { stem, caption: caption.to_owned() }
    };
    if captions.len() < 2 { Vec::new() } else { captions.into_keys().map(drawing).collect() }
}

/// A LaTeX figure of one file; the document needs `\\usepackage{svg}`.
pub fn figure(stem: &str, title: &str, caption: &str) -> String {
    let include = format!("  \\includesvg[width=\\linewidth]{{{stem}}}\n");
    around(&include, stem, title, caption)
}

/// A LaTeX figure of several files; the document needs `\\usepackage{svg,subcaption}`.
pub fn figure_of(drawings: &[Drawing], stem: &str, title: &str, caption: &str) -> String {
    let part = |Drawing { stem, caption }: &Drawing| {
        let caption = escape(caption);
        format!(
            "  \\begin{{subfigure}}{{0.49\\linewidth}}\n    \\includesvg[width=\\linewidth]{{{stem}}}\n    \\caption{{{caption}}}\n    \
             \\label{{fig:{stem}}}\n  \\end{{subfigure}}\n"
        )
    };
    around(&drawings.iter().map(part).collect::<String>(), stem, title, caption)
}

fn around(content: &str, stem: &str, title: &str, caption: &str) -> String {
    let (title, caption) = (escape(title), escape(caption));
    let whole = format!("{title}. {caption}");
    format!(
        "\\begin{{figure}}\n  \\centering\n{content}  \\caption[{title}]{{{}}}\n  \\label{{fig:{stem}}}\n\\end{{figure}}\n",
        whole.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Bar, Bars, Panel, TimeSeries};

    #[test]
    fn names_are_readable_and_never_given_twice() {
        let mut names = Names::default();
        let give = |names: &mut Names, title: &str| names.give(&["over-time", title]);
        assert_eq!(give(&mut names, "Window (cwnd), packets"), "over-time-window-cwnd-packets");
        assert_eq!(give(&mut names, "window cwnd; PACKETS"), "over-time-window-cwnd-packets-2");
        assert_eq!(give(&mut names, "…"), "over-time");
        assert_eq!(give(&mut names, "—"), "over-time-2");
        assert_eq!(give(&mut names, &"x".repeat(200)).len(), LONGEST);
        let mut names = Names::default();
        assert_eq!(stem("summary", "goodput, Mbit/s", &mut names), "goodput");
        assert_eq!(stem("further", "goodput, Mbit/s", &mut names), "goodput-2");
        assert_eq!(stem("over-time", "Window", &mut names), "over-time-window");
    }

    #[test]
    fn each_panel_is_a_subfigure_of_its_own_file() {
        let panel = |label: &str| Panel { axis: Axis::linear(label), curves: Vec::new() };
        let panels = vec![panel("wlan: cwnd, packets"), panel("3g: cwnd, packets")];
        let chart = Chart::TimeSeries(TimeSeries { panels, warmup_s: 0.0 });
        let drawings = drawings(&chart, ("over-time", "over-time-window"), &mut Names::default());
        let stems: Vec<&str> = drawings.iter().map(|drawing| &*drawing.stem).collect();
        assert_eq!(stems, ["over-time-wlan-cwnd", "over-time-3g-cwnd"]);
        let text = figure_of(&drawings, "over-time-window", "Window", "Of 50 % of the paths.");
        assert_eq!(
            text.lines().map(str::trim).collect::<Vec<_>>(),
            [
                "\\begin{figure}",
                "\\centering",
                "\\begin{subfigure}{0.49\\linewidth}",
                "\\includesvg[width=\\linewidth]{over-time-wlan-cwnd}",
                "\\caption{wlan: cwnd, packets}",
                "\\label{fig:over-time-wlan-cwnd}",
                "\\end{subfigure}",
                "\\begin{subfigure}{0.49\\linewidth}",
                "\\includesvg[width=\\linewidth]{over-time-3g-cwnd}",
                "\\caption{3g: cwnd, packets}",
                "\\label{fig:over-time-3g-cwnd}",
                "\\end{subfigure}",
                "\\caption[Window]{Window. Of 50 \\% of the paths.}",
                "\\label{fig:over-time-window}",
                "\\end{figure}",
            ]
        );
    }

    #[test]
    fn one_drawing_has_one_name() {
        let bar = |group: &str| Bar { group: group.into(), row: "blest".into(), ..Bar::default() };
        let of = |groups: &[&str]| {
            let chart =
                Chart::Bars(Bars { axis: Axis::default(), bars: groups.iter().map(|group| bar(group)).collect() });
            drawings(&chart, ("summary", "goodput"), &mut Names::default()).len()
        };
        assert_eq!([of(&[""]), of(&["", ""]), of(&["loss = 1%", "loss = 1 %"])], [0, 0, 2]);
        assert_eq!(figure("a", "b_c", "").lines().nth(3), Some("  \\caption[b\\_c]{b\\_c.}"));
    }
}
