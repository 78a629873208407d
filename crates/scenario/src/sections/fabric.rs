//! `[[fabric]]`: switches and cables, as the links that they are.

use super::fields::Fields;
use super::{path, value};
use crate::diagnostic::Code;
use crate::fabric::{Fabric, Shape};
use crate::keys::{Form, Section};
use crate::notation::{integer, integers};
use crate::row::Row;
use crate::tree::{Key, Node, Report, Table, Value};
use anabranch_network::WaySpec;
use std::borrow::Cow;

/// The most links of all fabrics of a file: those of a fat tree with 16 ports, and some.
const MOST_LINKS: usize = 8_000;
/// Keys of a link that a fabric's cables have not.
const OF_LINKS: [&str; 3] = ["name", "medium", "per_pair"];

impl Shape {
    /// Each kind as it is without its keys.
    pub(crate) const BLANK: [Shape; 2] = [Shape::FatTree { k: 4 }, Shape::LeafSpine { leaves: 4, spines: 4, hosts: 4 }];

    /// Names of all kinds, in the order of [`Self::BLANK`].
    const NAMES: &'static [&'static str] = &["fat-tree", "leaf-spine"];

    /// Name as scenario files write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FatTree { .. } => Self::NAMES[0],
            Self::LeafSpine { .. } => Self::NAMES[1],
        }
    }
}

/// Keys that [`expand`] reads, whatever the kind.
pub(crate) fn by_hand() -> Vec<Row<'static>> {
    vec![
        Row::by_hand("name", Form::Name, "unique among fabrics; a link's name is NAME-FROM-TO, such as dc-e0-a1").required(),
        Row::by_hand("kind", Form::Words(Shape::NAMES), "fat-tree: three layers of switches with k ports each, for k³/4 hosts h, over switches e (edge), a (aggregation) and c (core); leaf-spine: two layers, l and s, with a cable from each leaf to each spine").required(),
    ]
}

/// Keys of one kind.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(shape: &mut Shape) -> Vec<Row<'_>> {
    match shape {
        Shape::FatTree { k } => vec![
            Row::new("k", integers(&[2, 4, 6, 8, 10, 12, 14, 16]), k, "ports of each switch"),
        ],
        Shape::LeafSpine { leaves, spines, hosts } => vec![
            Row::new("leaves", integer(1, 256), leaves, "switches to which hosts connect"),
            Row::new("spines", integer(1, 256), spines, "switches among the leaves"),
            Row::new("hosts", integer(1, 1024), hosts, "hosts of each leaf"),
        ],
    }
}

/// Keys of each cable's directions: those of a link. A timeline changes one link, by its name.
pub(crate) fn cable(behind: &mut WaySpec) -> Vec<Row<'_>> {
    let rows = path::link().into_iter().filter(|row| !OF_LINKS.contains(&row.name));
    rows.chain(path::behind(behind)).map(Row::lasting).collect()
}

/// The document with the links of its fabrics behind its own, and these fabrics. One with a mistake, which was reported, is left out.
pub(super) fn expand<'r>(report: &mut Report, root: Cow<'r, Table>) -> (Cow<'r, Table>, Vec<Fabric>) {
    let tables = super::tables(report, &root, Section::Fabric);
    if tables.is_empty() {
        return (root, Vec::new());
    }
    let mut links = match root.get(Section::Link.name()).map(|node| &node.value) {
        Some(Value::List(links)) => links.clone(),
        None => Vec::new(),
        // A mistake, which the reader of links reports.
        Some(_) => return (root, Vec::new()),
    };
    let mut fabrics = Vec::<Fabric>::new();
    let written = links.len();
    for fields in &tables {
        let Some(fabric) = read(report, fields, links.len(), &fabrics) else { continue };
        if fabric.links().end - written > MOST_LINKS {
            report
                .error(Code::ImpossibleValue, fields.at, format!("fabrics have at most {MOST_LINKS} links"))
                .label(format!("{} with this one", fabric.links().end - written))
                .help("use fewer switches, ports or hosts");
            continue;
        }
        links.extend(fabric.link_names().map(|name| link(fields, name)));
        fabrics.push(fabric);
    }
    let at = tables[0].at;
    let mut expanded = root.clone().into_owned();
    expanded.set(Key { name: Section::Link.name().into(), at }, Node { value: Value::List(links), at });
    (Cow::Owned(expanded), fabrics)
}

fn read(report: &mut Report, fields: &Fields<'_>, first_link: usize, others: &[Fabric]) -> Option<Fabric> {
    let name = fields.get(report, "name", |report, key, node| {
        let name = value::name(report, key, node)?;
        if others.iter().any(|other| other.name == name) {
            report
                .error(Code::DuplicateName, node.at, format!("there are two fabrics named \"{name}\""))
                .label("second use of this name")
                .help("give each fabric a name of its own");
            return None;
        }
        Some(name)
    });
    let kind = fields.get(report, "kind", value::word)?;
    let mut shape = Shape::BLANK.into_iter().find(|shape| shape.name() == kind)?;
    let read = fields.fill(report, Some(kind), rows(&mut shape));
    let fabric = Fabric { name: name?, shape, first_link };
    if shape.hosts() < 2 {
        report
            .error(Code::ImpossibleValue, fields.at, "a fabric connects at least two hosts")
            .label("one host")
            .help("give it more leaves or hosts");
        return None;
    }
    read.then_some(fabric)
}

/// A link with the fabric's keys.
fn link(fields: &Fields<'_>, name: String) -> Node {
    let mut table = Table(fields.entries().iter().filter(|(key, _)| cable_has(&key.name)).cloned().collect());
    table.set(Key { name: "name".into(), at: fields.at }, Node { value: Value::Text(name), at: fields.at });
    Node { value: Value::Table(table), at: fields.at }
}

fn cable_has(name: &str) -> bool {
    !OF_LINKS.contains(&name) && Section::Link.key(name).is_some()
}
