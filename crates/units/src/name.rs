//! Names of schedulers and of their values, in events that come from another host.

use crate::Name;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Names that another host may make up, and their greatest length in bytes: each is kept until the process ends.
const MOST: usize = 512;
const LONGEST: usize = 64;

static KNOWN: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());

/// The text for as long as the process lasts; `None` beyond the limits.
fn kept(text: &str) -> Option<Name> {
    // A set is whole after a panic elsewhere.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = known.get(text) {
        return Some(name);
    }
    if text.len() > LONGEST || known.len() >= MOST {
        return None;
    }
    let name: Name = Box::leak(text.into());
    known.insert(name);
    Some(name)
}

/// A name from another host: at most 64 bytes, and at most 512 of them in a process.
pub fn deserialize_name<'de, D: Deserializer<'de>>(source: D) -> Result<Name, D::Error> {
    let text = String::deserialize(source)?;
    kept(&text).ok_or_else(|| de::Error::custom("too many names, or one that is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_bounded_memory() {
        let (first, again) = (kept("blest.lambda").unwrap(), kept("blest.lambda").unwrap());
        assert!(std::ptr::eq(first, again));
        assert_eq!(kept(&"x".repeat(LONGEST + 1)), None);
        let fit = (0..2 * MOST).filter(|n| kept(&format!("name {n}")).is_some()).count();
        assert!(fit < MOST && kept("blest.lambda").is_some(), "{fit}");
    }
}
