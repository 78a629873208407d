//! The list of all rules of bitrate adaptation.

use super::Abr;
use anabranch_plugin::registry::Entry;

static ALL: [&Entry<dyn Abr>; 4] =
    [&super::bola::ENTRY, &super::bba::ENTRY, &super::throughput::ENTRY, &super::fixed::ENTRY];

/// All rules, in the order in which lists show them; the first is the usual one.
pub fn all() -> &'static [&'static Entry<dyn Abr>] {
    &ALL
}

/// The rule with this name or alias.
pub fn find(name: &str) -> Option<&'static Entry<dyn Abr>> {
    all().iter().copied().find(|entry| entry.answers_to(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_plugin::registry::contradiction;

    #[test]
    fn entries_are_whole_and_found_by_their_names() {
        for entry in all() {
            assert_eq!(entry.lacking(), [""; 0], "{}", entry.name);
            assert!(find(entry.name).is_some_and(|found| found.name == entry.name));
            assert!(entry.parameters.iter().all(|p| p.accepts(p.default) && !p.about.is_empty()));
            assert!(contradiction(&entry.parameters.iter().collect::<Vec<_>>(), &[]).is_none());
        }
        assert!(find("pensieve").is_none());
    }
}
