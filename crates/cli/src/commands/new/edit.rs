//! The texts of a new scheduler, and of the files that list it.

use anabranch_schedulers::TEMPLATE;

/// The names of a scheduler.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// In scenarios and on the command line: `my-rule`.
    pub name: String,
    /// File and module: `my_rule`.
    pub module: String,
    /// Type: `MyRule`.
    pub kind: String,
}

/// Words that are no names: Rust's keywords, and what options understand.
#[rustfmt::skip] // A list of words needs few lines.
const TAKEN: &[&str] = &[
    "abstract", "all", "as", "async", "auto", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
    "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The names that follow from `name`; else what is wrong with it.
pub fn names(name: &str) -> Result<Names, &'static str> {
    let words: Vec<&str> = name.split('-').collect();
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !words.iter().all(is_word) {
        return Err("small letters and digits are wanted, with a single - between words");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err("it must begin with a letter");
    }
    if TAKEN.contains(&name) {
        return Err("Rust or the command line has this word for something else");
    }
    let capital = |word: &&str| word[..1].to_ascii_uppercase() + &word[1..];
    Ok(Names { name: name.into(), module: words.join("_"), kind: words.iter().map(capital).collect() })
}

/// The source of a new scheduler.
pub fn source(names: &Names) -> String {
    let text = TEMPLATE.replace("\"template\"", &format!("\"{}\"", names.name));
    text.replace("//! template:", &format!("//! {}:", names.name)).replace("Template", &names.kind)
}

/// `lib.rs` with one module more, in the order of the names; `None` if it has none so far.
pub fn with_module(library: &str, module: &str) -> Option<String> {
    let name = |line: &str| Some(line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
    let lines: Vec<&str> = library.lines().collect();
    let last = lines.iter().rposition(|line| name(line).is_some())?;
    let behind = lines.iter().position(|line| name(line).is_some_and(|name| name.as_str() > module));
    let mut at = behind.unwrap_or(last + 1);
    // An attribute stays with its module.
    while at > 0 && lines[at - 1].starts_with("#[") {
        at -= 1;
    }
    Some(inserted(&lines, at, &format!("pub mod {module};")))
}

/// `registry.rs` with one entry more, the last; `None` if it has no table of entries.
pub fn registered(registry: &str, module: &str) -> Option<String> {
    let lines: Vec<&str> = registry.lines().collect();
    let begin = lines.iter().position(|line| line.starts_with("const REGISTRY: "))?;
    let at = begin + lines[begin..].iter().position(|line| *line == "];")?;
    Some(inserted(&lines, at, &format!("    (&crate::{module}::ENTRY, Binds::Pull),")))
}

fn inserted(lines: &[&str], at: usize, line: &str) -> String {
    let (before, behind) = lines.split_at(at);
    before.iter().chain([&line]).chain(behind).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_module_and_a_type() {
        let names = |name| names(name).map(|names| (names.module, names.kind));
        assert_eq!(names("my-rule2"), Ok(("my_rule2".into(), "MyRule2".into())));
        for name in ["", "My", "a_b", "a--b", "-a", "2fast", "fn", "all", "é", "a/b", "type"] {
            assert!(names(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_module_stands_in_the_order_of_the_names() {
        let library = "mod b;\n#[cfg(test)]\nmod d;\npub mod f;\n\npub use b::x;\n";
        let with = |module| with_module(library, module).unwrap();
        assert_eq!(with("a"), format!("pub mod a;\n{library}"));
        assert_eq!(with("c"), library.replace("mod b;\n", "mod b;\npub mod c;\n"));
        assert_eq!(with("g"), library.replace("mod f;\n", "mod f;\npub mod g;\n"));
        assert_eq!(with_module("pub use b::x;\n", "a"), None);
    }

    #[test]
    fn an_entry_is_the_last_of_the_table() {
        let registry = "const REGISTRY: &[E] = &[\n    (&crate::a::ENTRY, Binds::Pull),\n];\nstatic X: [E] = [\n];\n";
        let expected = registry.replacen("];", "    (&crate::b_c::ENTRY, Binds::Pull),\n];", 1);
        assert_eq!(registered(registry, "b_c"), Some(expected));
        assert_eq!(registered("fn main() {}\n", "b"), None);
    }
}
