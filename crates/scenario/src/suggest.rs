//! The nearest valid word.

/// The candidate most similar to `word`: the one with the fewest typing mistakes, the first among equals; `None` if
/// none is near. Case, `-` and `_` are ignored.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    // A long word is garbage without a neighbour, and a comparison costs its length squared.
    if word.len() > 64 {
        return None;
    }
    // One mistake in short words, one per three letters in longer ones.
    let tolerated = (word.chars().count() / 3).max(1);
    // Each letter that one has and the other lacks is a mistake.
    let length = word.chars().count();
    let like = |candidate: &&str| candidate.chars().count().abs_diff(length) <= tolerated;
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &plain(candidate));
    let near =
        candidates.into_iter().filter(like).map(|c| (distance(c), c)).filter(|(d, c)| *d <= tolerated && *d < c.len());
    near.min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_word_wins_and_a_far_one_does_not() {
        let words = ["rate", "delay", "loss", "queue", "rto_min"];
        assert_eq!(nearest("rat", words), Some("rate"));
        assert_eq!(nearest("dealy", words), Some("delay"));
        assert_eq!(nearest("RTO-MIN", words), Some("rto_min"));
        assert_eq!(nearest("bandwidth", words), None);
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest(&"x".repeat(100_000), words), None);
    }
}
