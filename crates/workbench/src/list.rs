//! Lists of all names that a user may write.

use crate::builtin;
use crate::builtin::PAPERS;
use crate::failure::Failure;
use crate::model;
use crate::papers::{self, Source};
use anabranch_metrics::{METRICS, MetricInfo};
use anabranch_plugin::registry::Entry;
use anabranch_report::text::{plain_table, print_table};
use anabranch_reproduce::Paper;
use anabranch_scenario::Key;
use anabranch_workload::abr;
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
    fn named(name: &'static str, about: impl Into<String>) -> Self {
        Self { name: name.into(), about: about.into(), ..Self::default() }
    }

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

/// A kind of entries that can be listed.
#[derive(Debug)]
pub struct Listing {
    /// The word that names it.
    pub name: &'static str,
    /// Description of the kind.
    pub about: &'static str,
    entries: fn() -> Result<Vec<Item>, Failure>,
    /// Said below the table.
    note: &'static str,
}

/// All lists.
pub static LISTINGS: [Listing; 8] = [
    Listing {
        name: "schedulers",
        about: "Packet schedulers",
        entries: || Ok(anabranch_schedulers::all().iter().map(|entry| Item::of_entry(entry)).collect()),
        note: "\nA scheduler that pulls may be followed by +pr or +or: see `anabranch explain +pr`.\n",
    },
    Listing {
        name: "congestion",
        about: "Congestion controls",
        entries: || Ok(anabranch_congestion::all().iter().map(|entry| Item::of_entry(entry)).collect()),
        note: "",
    },
    Listing {
        name: "abrs",
        about: "Rules by which a video's player chooses rates",
        entries: || Ok(abr::registry::all().iter().map(|entry| Item::of_entry(entry)).collect()),
        note: "",
    },
    Listing {
        name: "scenarios",
        about: "Built-in scenarios",
        entries: || Ok(builtin::SCENARIOS.iter().map(|(name, text)| Item::named(name, builtin::about(text))).collect()),
        note: "",
    },
    Listing { name: "papers", about: "Papers to reproduce, with their items", entries: paper_items, note: "" },
    Listing {
        name: "metrics",
        about: "Measured values",
        entries: || Ok(METRICS.iter().map(Item::of_metric).collect()),
        note: "",
    },
    Listing {
        name: "keys",
        about: "Keys of a scenario file",
        entries: || Ok(anabranch_scenario::keys().iter().map(Item::of_key).collect()),
        note: "\n`anabranch explain KEY` has the form of its value and its default.\n",
    },
    Listing {
        name: "models",
        about: "Closed-form models",
        entries: || Ok(model::abouts().map(|(name, about)| Item::named(name, about)).collect()),
        note: "",
    },
];

fn paper_items() -> Result<Vec<Item>, Failure> {
    let keys = PAPERS.iter().map(|(key, _)| *key);
    Ok(keys.zip(papers::find("all".as_ref())?).map(Item::of_paper).collect())
}

impl Listing {
    /// The list of this name.
    pub fn find(name: &str) -> Result<&'static Self, Failure> {
        let names = LISTINGS.each_ref().map(|listing| listing.name);
        let found = LISTINGS.iter().find(|listing| listing.name == name);
        found.ok_or_else(|| Failure::unknown_word("list", name, &names, &format!("there are {}", names.join(", "))))
    }

    /// The entries as `(name, description)`.
    pub fn names(&self) -> Result<Vec<(String, String)>, Failure> {
        Ok((self.entries)()?.into_iter().map(|item| (item.name.to_string(), item.about)).collect())
    }

    /// The entries as a JSON array of objects.
    pub fn json(&self) -> Result<String, Failure> {
        // Strings only: this cannot fail.
        Ok(serde_json::to_string_pretty(&(self.entries)()?).unwrap_or_default() + "\n")
    }

    /// The entries as a table.
    pub fn table(&self) -> Result<String, Failure> {
        let mut table = plain_table(vec!["name".into(), "about".into()]);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        for item in (self.entries)()? {
            table.add_row([item.label(), item.description()]);
            table.add_rows(item.items.iter().map(PaperItem::line));
        }
        Ok(print_table(&table) + self.note)
    }
}
