//! Metric values by name.

use anabranch_metrics::MetricRef;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// A metric's name: nearly always one of the metrics' table.
pub(crate) type Name = Cow<'static, str>;

/// Metric values by name, in the order of the metrics' table. A metric that does not apply is absent.
///
/// Runs of one shape hold their names together.
#[derive(Clone, Default, PartialEq)]
pub struct Values {
    names: Arc<Vec<Name>>,
    values: Vec<f64>,
}

impl Values {
    /// Values, as many as names.
    pub(crate) fn new(names: Arc<Vec<Name>>, values: Vec<f64>) -> Self {
        Self { names, values }
    }

    /// The names, which runs may hold together.
    pub(crate) fn names(&self) -> &Arc<Vec<Name>> {
        &self.names
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&f64> {
        self.place(name).map(|place| &self.values[place])
    }

    /// True if `name` has a value.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &f64)> {
        self.keys().zip(&self.values)
    }

    /// The names.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Gives `name` a value: a new one at the end.
    pub fn insert(&mut self, name: String, value: f64) {
        match self.place(&name) {
            Some(place) => self.values[place] = value,
            None => {
                Arc::make_mut(&mut self.names).push(name.into());
                self.values.push(value);
            }
        }
    }

    /// Adds values under names that are new.
    pub(crate) fn append(&mut self, named: impl IntoIterator<Item = (String, f64)>) {
        let named = named.into_iter().map(|(name, value)| (name.into(), value));
        *self = self.pairs().chain(named).collect();
    }

    /// Adds the metrics of an application.
    pub(crate) fn extend(&mut self, application: &str, values: &[(&'static str, f64)]) {
        self.append(values.iter().map(|(name, value)| (MetricRef::of_application(application, name), *value)));
    }

    /// As [`Self::insert`]; `None` takes the value away.
    pub(crate) fn set(&mut self, name: &'static str, value: Option<f64>) {
        match value {
            Some(value) => self.insert(name.to_owned(), value),
            None => *self = self.pairs().filter(|(known, _)| known != name).collect(),
        }
    }

    /// Keeps the values for which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(f64) -> bool) {
        if !self.values.iter().all(|value| keep(*value)) {
            *self = self.pairs().filter(|(_, value)| keep(*value)).collect();
        }
    }

    /// Sorts by a key of the names; equal ones keep their order.
    pub fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&str) -> K) {
        let mut pairs: Vec<(Name, f64)> = self.pairs().collect();
        pairs.sort_by_key(|(name, _)| key(name));
        *self = pairs.into_iter().collect();
    }

    fn pairs(&self) -> impl Iterator<Item = (Name, f64)> {
        self.names.iter().cloned().zip(self.values.iter().copied())
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Index<&str> for Values {
    type Output = f64;

    /// # Panics
    /// The name has no value.
    fn index(&self, name: &str) -> &f64 {
        self.get(name).unwrap_or_else(|| panic!("no value of {name}"))
    }
}

impl<N: Into<Name>> FromIterator<(N, f64)> for Values {
    fn from_iter<I: IntoIterator<Item = (N, f64)>>(pairs: I) -> Self {
        let (names, values): (Vec<Name>, Vec<f64>) =
            pairs.into_iter().map(|(name, value)| (name.into(), value)).unzip();
        Self { names: Arc::new(names), values }
    }
}

impl<const N: usize> From<[(String, f64); N]> for Values {
    fn from(pairs: [(String, f64); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut pairs: Vec<(String, f64)> = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, f64)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn they_are_a_map_in_json() {
        let own = values(&[("b", 1.0), ("a", 2.5)]);
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(text, r#"{"b":1.0,"a":2.5}"#);
        assert_eq!(serde_json::from_str::<Values>(&text).unwrap(), own);
        assert!(serde_json::from_str::<Values>("[1]").is_err());
    }

    #[test]
    fn names_held_together_are_apart_again_when_one_changes() {
        let first = values(&[("a", 1.0), ("b", 2.0)]);
        let mut second = Values::new(first.names().clone(), vec![3.0, 4.0]);
        second.insert("c".into(), 5.0);
        second.insert("a".into(), 6.0);
        assert_eq!((first.len(), second.get("c"), second["a"]), (2, Some(&5.0), 6.0));
        second.retain(|value| value != 4.0);
        second.sort_by_key(|name| std::cmp::Reverse(name.to_owned()));
        assert_eq!(second, values(&[("c", 5.0), ("a", 6.0)]));
        assert_eq!(format!("{first:?}"), r#"{"a": 1.0, "b": 2.0}"#);
    }
}
