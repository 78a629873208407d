//! `docs/lab/conformance.md`: clause → scripts → engine → kernel.

use crate::mutation::Mutations;
use crate::script::{Clause, EngineWord, KernelWord, Script};
use std::collections::BTreeMap;
use std::fmt::Write;

const TITLES: [(&str, &str); 20] = [
    ("rfc2018", "TCP Selective Acknowledgment Options"),
    ("rfc2861", "TCP Congestion Window Validation"),
    ("rfc2883", "An Extension to the SACK Option"),
    ("rfc3042", "Enhancing TCP's Loss Recovery Using Limited Transmit"),
    ("rfc3168", "The Addition of Explicit Congestion Notification (ECN) to IP"),
    ("rfc3465", "TCP Congestion Control with Appropriate Byte Counting"),
    ("rfc4015", "The Eifel Response Algorithm for TCP"),
    ("rfc5681", "TCP Congestion Control"),
    ("rfc5682", "Forward RTO-Recovery (F-RTO)"),
    ("rfc5961", "Improving TCP's Robustness to Blind In-Window Attacks"),
    ("rfc6298", "Computing TCP's Retransmission Timer"),
    ("rfc6582", "The NewReno Modification to TCP's Fast Recovery Algorithm"),
    ("rfc6675", "A Conservative Loss Recovery Algorithm Based on SACK"),
    ("rfc6928", "Increasing TCP's Initial Window"),
    ("rfc6937", "Proportional Rate Reduction for TCP"),
    ("rfc7323", "TCP Extensions for High Performance"),
    ("rfc8305", "Happy Eyeballs Version 2: Better Connectivity Using Concurrency"),
    ("rfc8684", "TCP Extensions for Multipath Operation with Multiple Addresses"),
    ("rfc8985", "The RACK-TLP Loss Detection Algorithm for TCP"),
    ("rfc9293", "Transmission Control Protocol (TCP)"),
];

const BEGINNING: &str = "\
# Conformance

The suite in [tests/conformance](../../tests/conformance/README.md), clause by clause. The same script is played against
the engine, in virtual time, and against Linux; tests check both results. Made by
`cargo run -p anabranch-conformance --bin page > docs/lab/conformance.md`.

";

/// The page for all scripts of the suite.
pub fn page(scripts: &[Script], mutations: &Mutations) -> String {
    let mut page = String::from(BEGINNING);
    counts(scripts, mutations, &mut page);
    let mut documents: BTreeMap<&str, Vec<&Script>> = BTreeMap::new();
    for script in scripts {
        documents.entry(&script.clauses[0].document).or_default().push(script);
    }
    for (document, mut scripts) in documents {
        let title = TITLES.iter().find(|(name, _)| *name == document).map_or("", |(_, title)| title);
        let _ = writeln!(page, "## RFC {}: {title}\n", document.trim_start_matches("rfc"));
        let _ = writeln!(page, "| clause | script | engine | Linux | mutations |\n|---|---|---|---|---|");
        scripts.sort_by_key(|script| (order(&script.clauses[0]), &script.file));
        scripts.iter().for_each(|script| row(script, mutations, &mut page));
        page.push('\n');
    }
    let by_engine = |pick: fn(&EngineWord) -> Option<&String>| {
        scripts.iter().filter_map(move |script| Some((script, pick(&script.engine)?))).collect::<Vec<_>>()
    };
    let left_out = by_engine(|word| if let EngineWord::LeavesOut(why) = word { Some(why) } else { None });
    list("Clauses that the engine leaves out on purpose", &left_out, &mut page);
    let defects = by_engine(|word| if let EngineWord::Fails(why) = word { Some(why) } else { None });
    list("Defects of the engine that scripts show", &defects, &mut page);
    let by_kernel = |pick: fn(&KernelWord) -> Option<&String>| {
        scripts.iter().filter_map(move |script| Some((script, pick(&script.kernel)?))).collect::<Vec<_>>()
    };
    let differs = by_kernel(|word| if let KernelWord::Differs(why) = word { Some(why) } else { None });
    list("Where Linux differs", &differs, &mut page);
    let skipped = by_kernel(|word| if let KernelWord::Skipped(why) = word { Some(why) } else { None });
    list("Clauses that cannot be tested with Linux", &skipped, &mut page);
    changes(mutations, &mut page);
    page
}

fn counts(scripts: &[Script], mutations: &Mutations, page: &mut String) {
    let clauses: std::collections::BTreeSet<&Clause> = scripts.iter().flat_map(|script| &script.clauses).collect();
    let engine = scripts.iter().filter(|script| script.engine == EngineWord::Passes).count();
    let asked = scripts.iter().filter(|script| !matches!(script.kernel, KernelWord::Skipped(_))).count();
    let kernel = scripts.iter().filter(|script| script.kernel == KernelWord::Passes).count();
    let _ = writeln!(
        page,
        "{} scripts for {} clauses: the engine passes {engine}, Linux {kernel} of the {asked} that can test it. {}
        mutations \
         of the engine are each caught by the scripts that they name; clauses that the engine leaves out have none.\n",
        scripts.len(),
        clauses.len(),
        mutations.mutation.len()
    );
}

/// Sections ordered by number, not by digits.
fn order(clause: &Clause) -> (Vec<u32>, &str) {
    (clause.section.split('.').map(|part| part.parse().unwrap_or(0)).collect(), &clause.rule)
}

fn link(script: &Script) -> String {
    let (file, name) = (&script.file, script.file.rsplit('/').next().unwrap_or_default().trim_end_matches(".script"));
    format!("[{name}](../../tests/conformance/{file})")
}

fn row(script: &Script, mutations: &Mutations, page: &mut String) {
    let clauses: Vec<String> = script.clauses.iter().enumerate().map(|(at, clause)| named(clause, at > 0)).collect();
    let engine = match &script.engine {
        EngineWord::Passes => "passes",
        EngineWord::Fails(_) => "**fails**",
        EngineWord::LeavesOut(_) => "left out",
    };
    let kernel = match &script.kernel {
        KernelWord::Passes => "passes",
        KernelWord::Differs(_) => "differs",
        KernelWord::Skipped(_) => "skipped",
    };
    let numbers: Vec<String> = (mutations.mutation.iter().zip(1..))
        .filter(|(mutation, _)| mutation.scripts.contains(&script.file))
        .map(|(_, number): (_, u32)| number.to_string())
        .collect();
    let (clauses, link, title) = (clauses.join("; "), link(script), &script.title);
    let _ = writeln!(page, "| {clauses} | {link}: {title} | {engine} | {kernel} | {} |", numbers.join(", "));
}

fn named(clause: &Clause, other: bool) -> String {
    let Clause { document, section, rule } = clause;
    let document = if other { format!("RFC {} ", document.trim_start_matches("rfc")) } else { String::new() };
    let space = if rule.is_empty() { "" } else { " " };
    format!("{document}§{section}{space}{rule}")
}

fn list(title: &str, scripts: &[(&Script, &String)], page: &mut String) {
    if scripts.is_empty() {
        return;
    }
    let _ = writeln!(page, "## {title}\n");
    for (script, why) in scripts {
        let clause = &script.clauses[0];
        let _ = writeln!(page, "- {} ({} {}): because {why}.", link(script), clause.document, named(clause, false));
    }
    page.push('\n');
}

fn changes(mutations: &Mutations, page: &mut String) {
    if mutations.mutation.is_empty() {
        return;
    }
    let _ = writeln!(page, "## Mutations\n\nEach makes the scripts fail that name it above.\n");
    let _ = writeln!(page, "| | file | text | replacement |\n|---|---|---|---|");
    for (mutation, number) in mutations.mutation.iter().zip(1..) {
        let code = |text: &str| {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
            if text.is_empty() { "nothing".to_owned() } else { format!("`` {text} ``") }
        };
        let number: u32 = number;
        let _ =
            writeln!(page, "| {number} | {} | {} | {} |", mutation.file, code(&mutation.find), code(&mutation.replace));
    }
}
