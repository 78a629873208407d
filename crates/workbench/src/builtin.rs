//! Scenarios that come with the program.

/// `(name, text)` of every file in `scenarios/`, in the order of the names.
pub const SCENARIOS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// `(name, text)` of every path set of `scenarios/frontier/`, in the order of the names.
pub const FRONTIER: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/frontier.rs"));

/// `(name, text)` of every path set of `scenarios/wavering/`, in the order of the names.
pub const WAVERING: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/wavering.rs"));

/// The `.toml` files of a folder with their texts, in the order of the names.
type Files = &'static [(&'static str, &'static str)];

/// `(key, files)` of every paper in `papers/`, in the order of the keys.
pub const PAPERS: &[(&str, Files)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// The text of the scenario `name`; `.toml` may follow the name.
pub fn find(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The description of a scenario: the first sentence of its leading comment.
pub fn about(text: &str) -> String {
    let comment = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    let paragraph: Vec<&str> = comment.take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    text.find(". ").map_or(text.as_str(), |end| &text[..end]).trim_end_matches('.').to_owned()
}

/// The entry under this label on the first line of a path set, `# Kind: near/far. Part: basic.`; `own` if there is none.
pub fn labelled<'a>(text: &'a str, label: &str) -> &'a str {
    let first = text.lines().next().and_then(|line| line.strip_prefix('#')).unwrap_or_default();
    let after = first.split(". ").find_map(|part| part.trim().strip_prefix(label)?.strip_prefix(':'));
    after.map_or("own", |value| value.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_speaks_in_its_first_sentence() {
        assert_eq!(about("# Two paths\n# alike. And more.\n\n# Else"), "Two paths alike");
        assert_eq!(about("# One.\n#\n# Else"), "One");
        assert_eq!(about("name = 1"), "");
    }

    #[test]
    fn a_path_set_names_its_kind() {
        let text = "# Kind: near/far. Part: basic.\nname = 1";
        assert_eq!((labelled(text, "Kind"), labelled(text, "Part")), ("near/far", "basic"));
        assert_eq!((labelled("name = 1", "Kind"), labelled("# Kind: x", "Part")), ("own", "own"));
    }

    #[test]
    fn every_scenario_is_found_checked_and_described() {
        for (name, text) in FRONTIER.iter().chain(WAVERING) {
            assert!(anabranch_scenario::Document::parse(name, text).is_ok(), "{name}");
            assert!(labelled(text, "Kind") != "own", "{name}");
            assert!(["basic", "extended", "wavering"].contains(&labelled(text, "Part")), "{name}");
        }
        for (name, text) in SCENARIOS {
            assert_eq!(find(&format!("{name}.toml")), Some(*text));
            assert!(anabranch_scenario::Document::parse(name, text).is_ok(), "{name}");
            assert!(!about(text).is_empty(), "{name}");
        }
        assert_eq!(find("nonsense"), None);
    }
}
