//! `anabranch list`

use crate::args::{ListArguments, ListFormat, Listing};
use crate::builtin;
use crate::builtin::PAPERS;
use crate::commands::model;
use crate::failure::Failure;
use crate::papers::{self, Source};
use anabranch_engine::plugin::Entry;
use anabranch_metrics::{METRICS, MetricInfo};
use anabranch_report::text::{plain_table, print_table};
use anabranch_reproduce::Paper;
use anabranch_scenario::Key;
use comfy_table::{CellAlignment, ContentArrangement};
use serde::Serialize;
use std::borrow::Cow;

/// One line of a list.
#[derive(Debug, Default, Serialize)]
struct Item {
    name: Cow<'static, str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aliases: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_path: Option<bool>,
    /// Form of a scenario key's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
    /// Kinds of traffic, cross traffic or queue that have a scenario key; none if it is there for all.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    kinds: &'static [&'static str],
    about: String,
    /// Tables and figures of a paper.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<PaperItem>,
}

#[derive(Debug, Serialize)]
struct PaperItem {
    name: String,
    about: String,
    live: bool,
}

impl PaperItem {
    fn line(&self) -> [String; 2] {
        [format!("  {}", self.name), format!("{}{}", self.about, if self.live { "; --live" } else { "" })]
    }
}

impl Item {
    fn of_entry<T: ?Sized>(entry: &Entry<T>) -> Self {
        Self { name: entry.name.into(), aliases: entry.aliases, about: entry.about.into(), ..Self::default() }
    }

    fn of_paper((name, source): (&'static str, Source)) -> Self {
        let Paper { title, authors, venue, items, .. } = source.paper;
        let item = |item: anabranch_reproduce::Item| {
            let about = format!("{} ({})", item.title, item.place);
            PaperItem { name: item.id, about, live: item.live }
        };
        let items = items.into_iter().map(item).collect();
        Self { name: name.into(), about: format!("{title}. {authors}, {venue}"), items, ..Self::default() }
    }

    fn of_key(key: &'static Key) -> Self {
        let (form, default) = (Some(key.form.expected()), Some(key.default()));
        let (name, about) = (key.full_name().into(), key.about.into());
        Self { name, form, default, kinds: &key.kinds, about, ..Self::default() }
    }

    fn of_metric(metric: &MetricInfo) -> Self {
        let (unit, per_path) = (Some(metric.unit), Some(metric.per_path));
        Self { name: metric.name.into(), unit, per_path, about: metric.about.into(), ..Self::default() }
    }

    /// Name of the item, as a table shows it.
    fn label(&self) -> String {
        let path = if self.per_path == Some(true) { "path.NAME." } else { "" };
        format!("{path}{}", self.name)
    }

    fn description(&self) -> String {
        match (self.kinds, self.aliases) {
            ([], []) => self.about.clone(),
            ([], aliases) => format!("{} (also: {})", self.about, aliases.join(", ")),
            (kinds, _) => format!("{}: {}", kinds.join(", "), self.about),
        }
    }
}

/// The list as a table or as JSON.
pub fn list(arguments: &ListArguments) -> Result<String, Failure> {
    let items: Vec<Item> = match arguments.what {
        Listing::Schedulers => anabranch_schedulers::all().iter().map(|entry| Item::of_entry(entry)).collect(),
        Listing::Congestion => anabranch_congestion::all().iter().map(|entry| Item::of_entry(entry)).collect(),
        Listing::Scenarios => builtin::SCENARIOS
            .iter()
            .map(|(name, text)| Item { name: (*name).into(), about: builtin::about(text), ..Item::default() })
            .collect(),
        Listing::Papers => {
            let keys = PAPERS.iter().map(|(key, _)| *key);
            keys.zip(papers::find("all".as_ref())?).map(Item::of_paper).collect()
        }
        Listing::Metrics => METRICS.iter().map(Item::of_metric).collect(),
        Listing::Keys => anabranch_scenario::keys().iter().map(Item::of_key).collect(),
        Listing::Models => model::abouts()
            .map(|(name, about)| Item { name: name.into(), about: about.into(), ..Item::default() })
            .collect(),
    };
    Ok(match arguments.format {
        // Strings only: this cannot fail.
        ListFormat::Json => serde_json::to_string_pretty(&items).unwrap_or_default() + "\n",
        ListFormat::Table => {
            let mut table = plain_table(vec!["name".into(), "about".into()]);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
            if let Some(column) = table.column_mut(1) {
                column.set_cell_alignment(CellAlignment::Left);
            }
            for item in &items {
                table.add_row([item.label(), item.description()]);
                table.add_rows(item.items.iter().map(PaperItem::line));
            }
            let suffixes = match arguments.what {
                Listing::Schedulers => {
                    "\nA scheduler that pulls may be followed by +pr or +or: see `anabranch explain +pr`.\n"
                }
                Listing::Keys => "\n`anabranch explain KEY` has the form of its value and its default.\n",
                _ => "",
            };
            print_table(&table) + suffixes
        }
    })
}
