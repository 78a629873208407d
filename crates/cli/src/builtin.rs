//! Scenarios that come with the program.

/// `(name, text)` of every file in `scenarios/`, in the order of the names.
pub const SCENARIOS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The text of the scenario `name`; `.toml` may follow the name.
pub fn find(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// What a scenario says of itself: the first line of its leading comment.
pub fn about(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix('#')).unwrap_or_default().trim()
}
