//! A report as one HTML file, and its tables as files.

use crate::chart::Chart;
use crate::describe::{in_words, values};
use crate::encode;
use crate::latex::{self, Names};
use crate::style::{BACKGROUND, PALETTE, styles};
use crate::table::{Column, Table};
use crate::value::{Figure, MadeBy, Report, Section, Verdict};
use anabranch_reproduce::Class;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde::Serialize;
use serde_json::json;

const TEMPLATE: &str = include_str!("../assets/page.html");
const SHEET: &str = include_str!("../assets/page.css");
const D3: &str = include_str!("../assets/d3.min.js");
const PLOT: &str = include_str!("../assets/plot.min.js");
/// Ours, in the order in which they are needed.
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../assets/theme.js"),
    include_str!("../assets/units.js"),
    include_str!("../assets/decision.js"),
    include_str!("../assets/legend.js"),
    include_str!("../assets/overtime.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/packets.js"),
    include_str!("../assets/dense.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/numbers.js"),
    include_str!("../assets/page.js"),
);
const LICENCES: [(&str, &str); 2] = [
    ("D3 7.9.2 (ISC)", include_str!("../assets/d3.LICENSE")),
    ("Observable Plot 0.6.17 (ISC)", include_str!("../assets/plot.LICENSE")),
];

/// The page: one file, which fetches nothing and in which no script runs but its own.
pub fn html(report: &Report) -> String {
    let mut templates = Environment::new();
    // Everything is escaped except strings that are marked safe here.
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    let rendered = templates.render_str(TEMPLATE, page(report));
    // The template is ours and its values are all there: the tests render it.
    rendered.unwrap_or_else(|error| format!("<!doctype html><title>report</title><p>{error:#}</p>"))
}

/// The source expressions that a policy needs for a page's scripts (Content Security Policy 3 §2.3.1): of a page that shows reports
/// in a frame, for it hands its own policy down.
pub fn script_sources() -> [String; 3] {
    [D3, PLOT, SCRIPT].map(encode::script_hash)
}

/// `(name, text)` of scripts that the playground shares with a report, as modules.
pub fn modules() -> [(&'static str, String); 2] {
    let module = |text: &str, exports: &str| format!("{text}\n{exports}\n");
    let units = include_str!("../assets/units.js");
    let decision = include_str!("../assets/decision.js");
    [
        ("units.js", module(units, "export const { number, rate, time, share, bytes, ladder } = units;")),
        (
            "decision.js",
            format!("import * as units from \"./units.js\";\n{}", module(decision, "export { whyThisPath };")),
        ),
    ]
}

/// `(name, text)` of each table's files: `tables/SECTION-TABLE.tex` and `.csv`.
pub fn files(report: &Report) -> Vec<(String, String)> {
    let of_section = |section: &Section| {
        let tables = section.tables.iter().map(|table| (stem(&section.id, &table.id), table.clone()));
        tables.collect::<Vec<_>>()
    };
    let verdicts = verdict_table(&report.verdicts).map(|table| ("verdicts".to_owned(), table));
    let tables = verdicts.into_iter().chain(report.sections.iter().flat_map(of_section));
    tables
        .flat_map(|(stem, table)| [(format!("{stem}.csv"), table.to_csv()), (format!("{stem}.tex"), table.to_latex())])
        .collect()
}

/// A drawing of a report that can be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureName {
    /// The file, without ending.
    pub stem: String,
    /// Which figure of the report, over all sections.
    pub figure: usize,
    /// Which of its panels; none for all of them.
    pub panel: Option<usize>,
}

/// The names of all drawings, in order: those of the files that the page saves.
pub fn figure_names(report: &Report) -> Vec<FigureName> {
    let mut names = Names::default();
    let figures =
        report.sections.iter().flat_map(|section| section.figures.iter().map(move |figure| (section, figure)));
    let of = |(place, (section, figure)): (usize, (&Section, &Figure))| {
        let stem = latex::stem(&section.id, &figure.title, &mut names);
        let panels = latex::drawings(&figure.chart, (&section.id, &stem), &mut names);
        let panels = panels.into_iter().enumerate();
        let panels = panels.map(|(i, panel)| FigureName { stem: panel.stem, figure: place, panel: Some(i) });
        core::iter::once(FigureName { stem, figure: place, panel: None }).chain(panels).collect::<Vec<_>>()
    };
    figures.enumerate().flat_map(of).collect()
}

/// The template's values.
#[derive(Serialize)]
struct Page<'a> {
    policy: String,
    sheet: Value,
    scripts: Vec<Value>,
    licences: [(&'static str, &'static str); 2],
    report: &'a Head<'a>,
    seeds: String,
    counts: Vec<(Mark, usize)>,
    /// Those that no section shows.
    verdicts: Vec<VerdictView<'a>>,
    verdict_table: Option<TableView>,
    sections: Vec<SectionView<'a>>,
    data: Value,
}

/// The report's values that the template takes as they are.
#[derive(Serialize)]
struct Head<'a> {
    title: &'a str,
    subtitle: &'a str,
    answer: &'a [String],
    made_by: &'a MadeBy,
    settings: &'a [(String, String)],
    scenario_texts: &'a [(String, String)],
}

fn page(report: &Report) -> Value {
    let scripts = [D3, PLOT, SCRIPT];
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data: blob:; \
         script-src {}",
        script_sources().join(" ")
    );
    let Report { title, subtitle, answer, made_by, settings, scenario_texts, verdicts, .. } = report;
    let shown: Vec<&String> = report.sections.iter().flat_map(|section| &section.verdicts).collect();
    let (share, mut files) = (packets_each(report), Names::default());
    let names = report.sections.iter().flat_map(|section| &section.figures).flat_map(|figure| figure.chart.names());
    let data = json!({
        "styles": styles(&report.schedulers, names),
        "light": colours(|(light, _)| light),
        "dark": colours(|(_, dark)| dark),
    });
    Value::from(Serde(Page {
        policy,
        sheet: Value::from_safe_string(format!("{}{SHEET}", palette())),
        scripts: scripts.map(|text| Value::from_safe_string(text.to_owned())).to_vec(),
        licences: LICENCES,
        report: &Head { title, subtitle, answer, made_by, settings, scenario_texts },
        seeds: seeds(&report.seeds),
        counts: counts(verdicts),
        verdicts: verdicts.iter().filter(|verdict| !shown.contains(&&verdict.item)).map(VerdictView::of).collect(),
        verdict_table: verdict_table(verdicts).map(|table| TableView::of(&table, "verdicts")),
        sections: report.sections.iter().map(|section| section_view(report, section, share, &mut files)).collect(),
        data: Value::from_safe_string(encode::json(&data)),
    }))
}

/// How many claims are of each class, if any are.
fn counts<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Vec<(Mark, usize)> {
    let given: Vec<Class> = verdicts.into_iter().map(|row| row.class).collect();
    let count = |class| (Mark::of(class), given.iter().filter(|one| **one == class).count());
    Class::ALL.map(count).into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Packets in a page unless the report says otherwise: what a browser draws fluently.
const PACKETS: usize = 30_000;

/// Packets of one timeline, under the same condition.
const PACKETS_OF_ONE: usize = 20_000;

/// How many packets of each timeline are shown.
fn packets_each(report: &Report) -> usize {
    let figures = report.sections.iter().flat_map(|section| &section.figures);
    let timelines = figures.filter(|figure| matches!(figure.chart, Chart::Timeline(_))).count();
    report.packets.unwrap_or_else(|| (PACKETS / timelines.max(1)).min(PACKETS_OF_ONE))
}

/// Variables of the style sheet, by theme.
fn palette() -> String {
    let variables = |list: Vec<String>| -> String {
        let named = |(i, colour): (usize, &String)| {
            if i < PALETTE.len() { format!("--c{i}:{colour};") } else { format!("--page:{colour};") }
        };
        list.iter().enumerate().map(named).collect()
    };
    let (light, dark) = (variables(colours(|(light, _)| light)), variables(colours(|(_, dark)| dark)));
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n"
    )
}

/// The palette of a theme, then its background.
fn colours(of: impl Fn((&'static str, &'static str)) -> &'static str) -> Vec<String> {
    PALETTE.into_iter().chain([BACKGROUND]).map(|pair| of(pair).to_owned()).collect()
}

/// `1 to 20 (20)`, or all of them where there are gaps.
fn seeds(seeds: &[u64]) -> String {
    match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if seeds.len() > 2 && last.checked_sub(*first) == Some(seeds.len() as u64 - 1) => {
            format!("{first} to {last} ({})", seeds.len())
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// `text` as an identifier: letters, digits and `-`.
fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}

fn stem(section: &str, table: &str) -> String {
    format!("{}-{}", slug(section), slug(table))
}

#[derive(Serialize)]
struct SectionView<'a> {
    id: String,
    title: &'a str,
    about: &'a [String],
    figures: Vec<FigureView<'a>>,
    pictures: Vec<Value>,
    tables: Vec<TableView>,
    verdicts: Vec<VerdictView<'a>>,
    counts: Vec<(Mark, usize)>,
}

fn section_view<'a>(report: &'a Report, section: &'a Section, packets: usize, files: &mut Names) -> SectionView<'a> {
    let id = slug(&section.id);
    let figures = section.figures.iter().enumerate();
    let find = |item: &String| report.verdicts.iter().find(|verdict| verdict.item == *item);
    let verdicts = || section.verdicts.iter().filter_map(find);
    let mut figure_view = |i: usize, figure: &'a Figure| {
        let before = i.checked_sub(1).map(|i| &section.figures[i]);
        let stem = latex::stem(&section.id, &figure.title, files);
        let place = (format!("{id}-figure-{}", i + 1), &*section.id, stem);
        FigureView::of(figure, before, place, packets, files)
    };
    SectionView {
        title: &section.title,
        about: &section.about,
        figures: figures.map(|(i, figure)| figure_view(i, figure)).collect(),
        pictures: section.pictures.iter().map(|picture| Value::from_safe_string(picture.svg())).collect(),
        tables: section.tables.iter().map(|table| TableView::of(table, &stem(&section.id, &table.id))).collect(),
        verdicts: verdicts().map(VerdictView::of).collect(),
        counts: counts(verdicts()),
        id,
    }
}

#[derive(Serialize)]
struct FigureView<'a> {
    id: String,
    title: &'a str,
    caption: &'a str,
    /// How much the chart leaves out; empty if nothing.
    note: String,
    /// Heading before this figure, where a group begins.
    group: Option<&'a str>,
    folded: bool,
    /// The name of its files, without ending.
    stem: String,
    /// Those of its panels; empty for a chart that is one drawing.
    panels: String,
    /// A `figure` environment around the saved drawing.
    latex: String,
    /// A `figure` environment around the drawings of all panels.
    latex_panels: String,
    /// The chart in words.
    words: String,
    chart: Value,
    values: Option<TableView>,
}

impl<'a> FigureView<'a> {
    fn of(
        figure: &'a Figure,
        before: Option<&Figure>,
        (id, section, stem): (String, &str, String),
        packets: usize,
        files: &mut Names,
    ) -> Self {
        let (caption, mut note) = (figure.caption.as_str(), String::new());
        let cut;
        let chart = match &figure.chart {
            Chart::Timeline(timeline) if timeline.packets.len() > packets => {
                let all = timeline.packets.len();
                note = format!("The first {packets} of {all} packets that were recorded.");
                cut = Chart::Timeline(timeline.first(packets));
                &cut
            }
            chart => chart,
        };
        let drawings = latex::drawings(chart, (section, &stem), files);
        let stems: Vec<&str> = drawings.iter().map(|drawing| &*drawing.stem).collect();
        let tex = |text: String| encode::data_link("application/x-tex", &text);
        Self {
            title: &figure.title,
            panels: stems.join(" "),
            latex: tex(latex::figure(&stem, &figure.title, caption)),
            latex_panels: tex(latex::figure_of(&drawings, &stem, &figure.title, caption)),
            group: Some(figure.group.as_str())
                .filter(|group| !group.is_empty() && before.is_none_or(|before| before.group != *group)),
            caption,
            note,
            folded: figure.folded,
            words: in_words(chart),
            chart: Value::from_safe_string(encode::chart(chart)),
            values: values(chart).map(|table| TableView::of(&table, &stem)),
            stem,
            id,
        }
    }
}

#[derive(Serialize)]
struct TableView {
    /// Name of the table's files, without ending.
    stem: String,
    title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    note: String,
    folded: bool,
    csv: String,
    latex: String,
}

impl TableView {
    fn of(table: &Table, stem: &str) -> Self {
        Self {
            stem: stem.to_owned(),
            title: table.title.clone(),
            columns: table.columns.clone(),
            rows: table.rows.clone(),
            note: table.note.clone(),
            folded: table.folded,
            csv: encode::data_link("text/csv", &table.to_csv()),
            latex: encode::data_link("application/x-tex", &table.to_latex()),
        }
    }
}

/// A verdict's word, with a sign and a class, so that colour does not say it alone.
#[derive(Clone, Copy, Serialize)]
struct Mark {
    word: &'static str,
    sign: &'static str,
    class: &'static str,
}

impl Mark {
    fn of(class: Class) -> Self {
        let (word, sign, class) = match class {
            Class::InSize => ("reproduces in size", "✓", "reproduces"),
            Class::Direction => ("direction", "≈", "direction"),
            Class::UnderSome => ("under some readings", "±", "direction"),
            Class::UnderNone => ("under none", "✗", "differs"),
            Class::BelowResolution => ("below resolution", "∿", "unspecified"),
            Class::Contradicted => ("the paper contradicts itself", "⇄", "unspecified"),
            Class::Trivial => ("trivial or duplicate", "=", "unspecified"),
            Class::Anchor => ("anchor", "•", "unspecified"),
            Class::Open => ("open", "?", "unspecified"),
            Class::NotRun => ("not run", "–", "unspecified"),
        };
        Self { word, sign, class }
    }
}

#[derive(Serialize)]
struct VerdictView<'a> {
    #[serde(flatten)]
    row: &'a Verdict,
    mark: Mark,
}

impl<'a> VerdictView<'a> {
    fn of(row: &'a Verdict) -> Self {
        Self { row, mark: Mark::of(row.class) }
    }
}

fn verdict_table(verdicts: &[Verdict]) -> Option<Table> {
    let heads = ["item", "claim", "place", "published", "ours", "class", "reason"];
    let row = |v: &Verdict| {
        let class = Mark::of(v.class).word;
        [&v.item, &v.claim, &v.place, &v.published, &v.ours, class, &v.reason].map(str::to_owned).to_vec()
    };
    let table = || Table {
        id: "verdicts".into(),
        title: "Published and ours".into(),
        columns: heads.map(Column::text).to_vec(),
        rows: verdicts.iter().map(row).collect(),
        ..Table::default()
    };
    (!verdicts.is_empty()).then(table)
}
