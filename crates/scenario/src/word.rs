//! Words that keys take as values: `web` of `traffic.kind`.

use crate::keys::{Form, Key, keys};
use crate::sections::jitter;

/// A word as the value of one key.
#[derive(Clone, Copy, Debug)]
pub struct NamedValue {
    /// The word.
    pub name: &'static str,
    /// The key that takes it.
    pub key: &'static Key,
}

impl Form {
    /// The words that a value of this form may be; empty if it may be other things alone.
    pub const fn words(&self) -> &'static [&'static str] {
        match self {
            Self::Words(words) => words,
            Self::FirstPath => &["first", "race"],
            Self::TraceStart => &["begin", "seed"],
            Self::DelayDistribution => jitter::NAMES,
            Self::Arrivals => &["together"],
            Self::Options => anabranch_network::OptionKind::NAMES,
            _ => &[],
        }
    }
}

/// Every word of every key, in the order of the keys.
pub fn words() -> impl Iterator<Item = NamedValue> {
    keys().iter().flat_map(|key| key.form.words().iter().map(move |name| NamedValue { name, key }))
}

impl NamedValue {
    /// Meaning of the value: the clause of the key's text that has it as a label, else the whole text.
    pub fn about(&self) -> &'static str {
        clause(self.key.about, self.siblings(), self.name).unwrap_or(self.key.about)
    }

    /// If it is a kind: the other keys of its section that apply to it, with their meaning for it.
    pub fn keys(&self) -> Vec<(&'static Key, &'static str)> {
        let others = self.key.section.keys().filter(|key| self.key.name == "kind" && key.name != "kind");
        others.filter(|key| key.counts_for(self.name)).map(|key| (key, key.about)).collect()
    }

    fn siblings(&self) -> &'static [&'static str] {
        self.key.form.words()
    }
}

/// The clause of `text` that applies to `word`. A clause may begin with a label, which names words of `words`, as in
/// `frames, request: how many`. A text without labels applies to every word; `None` if all labels name other words.
fn clause(text: &'static str, words: &[&str], word: &str) -> Option<&'static str> {
    let labelled: Vec<(usize, &str, usize)> = starts(text).filter_map(|at| label(text, at, words)).collect();
    if labelled.is_empty() {
        return Some(text);
    }
    let index = labelled.iter().position(|(_, label, _)| label.split(", ").any(|one| one == word))?;
    let end = labelled.get(index + 1).map_or(text.len(), |(at, ..)| *at);
    Some(text[labelled[index].2..end].trim_end_matches([';', ' ']))
}

/// Where clauses may begin.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let after = |mark| text.match_indices(mark).map(|(at, mark)| at + str::len(mark));
    let mut all: Vec<usize> = [0].into_iter().chain(after("; ")).chain(after(": ")).chain(after(". ")).collect();
    all.sort_unstable();
    all.into_iter()
}

/// The label at `at`, and where the text behind it begins.
fn label<'t>(text: &'t str, at: usize, words: &[&str]) -> Option<(usize, &'t str, usize)> {
    let (label, _) = text[at..].split_once(": ")?;
    label.split(", ").all(|one| words.contains(&one)).then_some((at, label, at + label.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(key: &str, name: &str) -> NamedValue {
        words().find(|word| word.name == name && word.key.full_name() == key).expect("the key takes it")
    }

    #[test]
    fn a_clause_is_found_by_its_label() {
        let words = ["a", "b", "c"];
        let text = "in general: a: one; two. b, c: three: four";
        assert_eq!(clause(text, &words, "a"), Some("one; two."));
        assert_eq!(clause(text, &words, "c"), Some("three: four"));
        assert_eq!(clause("a: one", &words, "b"), None);
        assert_eq!(clause("nothing: of them", &words, "b"), Some("nothing: of them"));
    }

    #[test]
    fn kinds_have_the_keys_that_count_for_them() {
        let names = |word: NamedValue| word.keys().iter().map(|(key, _)| key.name).collect::<Vec<_>>();
        let web = names(word("traffic.kind", "web"));
        assert!(["size", "objects", "connections", "request"].iter().all(|key| web.contains(key)), "{web:?}");
        assert!(!web.contains(&"interval"), "{web:?}");
        let bulk = names(word("traffic.kind", "bulk"));
        assert!(bulk.contains(&"flows") && !bulk.contains(&"objects"), "{bulk:?}");
        assert!(names(word("tcp.recovery", "rack")).is_empty());
        let udp = word("cross.kind", "udp");
        assert_eq!(udp.about(), "constant bit rate");
        assert!(
            udp.keys()
                .iter()
                .any(|(key, about)| key.name == "packet" && about.starts_with("mean size of one IP packet"))
        );
    }

    #[test]
    fn kinds_say_each_what_they_are() {
        for word in words().filter(|word| word.key.name == "kind" && word.key.form.words().len() > 1) {
            assert_ne!(word.about(), word.key.about, "{} of {} has no clause", word.name, word.key.full_name());
        }
    }
}
