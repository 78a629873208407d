//! The main metric of every kind of traffic is shown wherever results are, under one name.

use anabranch_metrics::{MetricInfo, Prominence, main_metric, shown_metrics};
use anabranch_report::of_run::{RunFolder, report};
use anabranch_report::text::results_table;
use anabranch_report::{Report, Table};
use anabranch_run::{Options, Plan, Results, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{Form, NoFiles, Source, keys, read, scheduler};
use std::collections::BTreeSet;
use std::sync::Arc;

const PATHS: &str = r#"
repeat = 2
duration = "4s"
[[path]]
name = "wlan"
rate = "20mbit"
delay = "10ms"
loss = "1%"
[[path]]
name = "lte"
rate = "10mbit"
delay = "40ms"
[[traffic]]
"#;

/// Every kind of traffic that scenarios know, and what a short run of it needs.
fn kinds() -> Vec<(&'static str, &'static str)> {
    let kind = keys().iter().find(|key| key.full_name() == "traffic.kind").expect("scenarios have traffic");
    let Form::Words(words) = kind.form else { panic!("kinds are words") };
    let needs = |word: &&'static str| {
        let rest = match *word {
            "bulk" => "size = \"200KB\"",
            "call" => "",
            "video" => "segment = \"1s\"",
            "frames" => "size = \"5KB\"\ninterval = \"20ms\"\ncount = 30",
            "request" => "size = \"10KB\"\ninterval = \"20ms\"\ncount = 10",
            "web" => "size = \"100KB\"\nobjects = 6",
            other => panic!("say here what a short run of {other} needs"),
        };
        (*word, rest)
    };
    words.iter().map(needs).collect()
}

fn results(traffic: &str) -> Results {
    let source = Source { name: "test.toml".into(), text: format!("name = \"t\"{PATHS}{traffic}\n") };
    let document = read(&source, &[], &NoFiles).unwrap();
    let variant = |(cell, scenario): (_, _)| Variant { cell, scenario: Arc::new(scenario) };
    let variants: Vec<Variant> = document.cells.into_iter().map(variant).collect();
    let schedulers = ["minrtt", "roundrobin"].map(|name| scheduler("test", name).unwrap()).to_vec();
    let plan = Plan::new(&variants, &Options { schedulers, ..Options::default() });
    Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap()
}

fn table<'r>(report: &'r Report, id: &str) -> &'r Table {
    report.sections.iter().flat_map(|section| &section.tables).find(|table| table.id == id).expect("it is there")
}

/// `flow completion, s` as `flow completion`.
fn name(label: &str) -> &str {
    label.rsplit_once(", ").map_or(label, |(name, _)| name)
}

fn check(traffic: &str) -> &'static MetricInfo {
    let results = results(traffic);
    let rows = results.rows();
    let main = main_metric(|metric| rows.iter().any(|row| row.get(metric).is_some()));
    let text = results_table(&results);
    let mut words = main.label.split(' ').chain([main.scale.unit]);
    let head: Vec<&str> = text.lines().skip(2).take_while(|line| !line.starts_with('─')).collect();
    assert!(words.all(|word| head.iter().any(|line| line.contains(word))), "{traffic}: {text}");
    let report = report(&results, RunFolder::default());
    assert!(report.answer[0].contains(main.label), "{traffic}: {:?}", report.answer);
    let summary = table(&report, "summary");
    let place = summary.columns.iter().position(|column| name(&column.head) == main.label);
    let place = place.unwrap_or_else(|| panic!("{traffic}: {:?}", summary.columns));
    assert!(summary.rows.iter().all(|row| !row[place].is_empty()), "{traffic}: {:?}", summary.rows);
    let compared = table(&report, "comparisons");
    let place = compared.columns.iter().position(|column| column.head == "metric").expect("it is there");
    assert!(compared.rows.iter().any(|row| name(&row[place]) == main.label), "{traffic}: {:?}", compared.rows);
    let first = &report.sections.iter().find(|section| section.id == "summary").expect("it is there").figures[0];
    assert!(name(&first.title) == main.label && !first.folded, "{traffic}: {}", first.title);
    main
}

/// On the terminal a column and a comparison for each application, in the report an answer, a chart and columns of the summary.
#[test]
fn each_of_several_applications_has_a_column_an_answer_and_a_chart() {
    let call = "name = \"call\"\nkind = \"call\"\nvideo = \"1mbit\"\n";
    let backup = "name = \"backup\"\nkind = \"bulk\"\ndirection = \"up\"\nstart = \"1s\"";
    let results = results(&format!("{call}[[traffic]]\n{backup}"));
    let text = results_table(&results);
    let head: Vec<&str> = text.lines().skip(2).take(3).collect();
    assert!(head[0].contains("call") && head[0].contains("backup") && head.concat().contains("per minute"), "{text}");
    assert_eq!(head.concat().matches("minrtt %").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for row in ["minrtt", "roundrobin", "single:wlan", "single:lte"] {
        assert!(text.lines().any(|line| line.starts_with(row)), "{row}:\n{text}");
    }
    let report = report(&results, RunFolder::default());
    for label in ["late frames per minute of call", "goodput of backup"] {
        assert!(report.answer.iter().any(|sentence| sentence.contains(label)), "{:?}", report.answer);
        let figures = || report.sections.iter().flat_map(|section| &section.figures);
        assert!(figures().any(|figure| name(&figure.title) == label && !figure.folded), "{label}");
        assert!(table(&report, "summary").columns.iter().any(|column| name(&column.head) == label), "{label}");
    }
    let compared: BTreeSet<&str> = table(&report, "comparisons").rows.iter().flatten().map(|cell| name(cell)).collect();
    assert!(
        compared.contains("late frames per minute of call") && compared.contains("goodput of backup"),
        "{compared:?}"
    );
}

#[test]
fn the_main_metric_of_every_kind_of_traffic_is_in_every_table_under_one_name() {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (kind, rest) in kinds() {
        seen.insert(check(&format!("kind = \"{kind}\"\n{rest}")).name);
    }
    seen.insert(check("kind = \"bulk\"\nsize = \"100KB\"\nflows = 3").name);
    seen.insert(check("kind = \"bulk\"").name);
    let main: BTreeSet<&str> = shown_metrics(Prominence::Main).map(|info| info.name).collect();
    assert_eq!(seen, main, "a main metric that no kind of traffic has, or the other way round");
}
