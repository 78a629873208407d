//! A registry's entry for a plug-in: its name, its parameters, its reference page, how to build it.

use anabranch_units::Duration;
use core::ops::RangeInclusive;

/// The values that a parameter may have, inside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any number.
    Number,
    /// A whole number.
    Whole,
    /// No or yes: 0 or 1.
    Flag,
}

/// A parameter of a plug-in, as scenario files and reference pages know it. Of two that are called `X_min` and `X_max`, the
/// first is at most the second: [`contradiction`].
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name as scenario files write it.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Value if the scenario is silent.
    pub default: f64,
    /// Least allowed value.
    pub min: f64,
    /// Greatest allowed value.
    pub max: f64,
    /// Unit, `""` for a bare number.
    pub unit: &'static str,
    /// One line.
    pub about: &'static str,
}

impl Parameter {
    /// True if the parameter may have `value`: inside its range, and whole where it must be. Never NaN.
    pub fn accepts(&self, value: f64) -> bool {
        let whole = self.kind == Kind::Number || value == libm::trunc(value);
        whole && (self.min..=self.max).contains(&value)
    }
}

/// A parameter whose value is a `T`. Declared as a constant, once: an entry lists its `parameter`, and [`Handle::of`] reads
/// its value.
#[derive(Clone, Copy, Debug)]
pub struct Handle<T> {
    /// The handle's entry in the list of the plug-in.
    pub parameter: Parameter,
    read: fn(f64) -> T,
}

/// A number from `range`.
pub const fn number(name: &'static str, default: f64, range: RangeInclusive<f64>) -> Handle<f64> {
    Handle::new(name, Kind::Number, default, range, |value| value)
}

/// A whole number from `range`.
pub const fn whole(name: &'static str, default: u64, range: RangeInclusive<u64>) -> Handle<u64> {
    let range = *range.start() as f64..=*range.end() as f64;
    Handle::new(name, Kind::Whole, default as f64, range, |value| value as u64)
}

/// Yes or no.
pub const fn flag(name: &'static str, default: bool) -> Handle<bool> {
    Handle::new(name, Kind::Flag, if default { 1.0 } else { 0.0 }, 0.0..=1.0, |value| value != 0.0)
}

/// A length of time, which scenario files give in seconds.
pub const fn seconds(name: &'static str, default: f64, range: RangeInclusive<f64>) -> Handle<Duration> {
    Handle::new(name, Kind::Number, default, range, Duration::from_secs_f64).unit("s")
}

/// A length of time, which scenario files give in milliseconds.
pub const fn milliseconds(name: &'static str, default: f64, range: RangeInclusive<f64>) -> Handle<Duration> {
    Handle::new(name, Kind::Number, default, range, |value| Duration::from_secs_f64(value / 1e3)).unit("ms")
}

impl<T> Handle<T> {
    const fn new(name: &'static str, kind: Kind, default: f64, range: RangeInclusive<f64>, read: fn(f64) -> T) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self { parameter: Parameter { name, kind, default, min, max, unit: "", about: "" }, read }
    }

    /// The same with a unit.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.parameter.unit = unit;
        self
    }

    /// The same with its line for reference pages.
    pub const fn about(mut self, about: &'static str) -> Self {
        self.parameter.about = about;
        self
    }

    /// The value: as given, else the default that the entry lists. A debug build panics if the entry does not list the
    /// parameter: the tests that build every entry of a registry find that.
    pub fn of(&self, parameters: &Parameters<'_>) -> T {
        (self.read)(parameters.value(&self.parameter))
    }
}

/// Two of the `known` parameters, `X_min` and `X_max`, of which the first is above the second, with the `given` values over
/// the defaults.
pub fn contradiction<'p>(known: &[&'p Parameter], given: &[(String, f64)]) -> Option<(&'p Parameter, &'p Parameter)> {
    let value = |p: &Parameter| given.iter().find(|(name, _)| name == p.name).map_or(p.default, |(_, value)| *value);
    let pair = |least: &&'p Parameter| {
        let stem = least.name.strip_suffix("_min")?;
        let greatest = known.iter().find(|p| p.name.strip_suffix("_max") == Some(stem))?;
        Some((*least, *greatest))
    };
    known.iter().filter_map(pair).find(|(least, greatest)| value(least) > value(greatest))
}

/// One plug-in: a scheduler (`Entry<dyn Scheduler>`) or a congestion control.
pub struct Entry<T: ?Sized> {
    /// Canonical name.
    pub name: &'static str,
    /// Other names that scenario files may use.
    pub aliases: &'static [&'static str],
    /// One line for lists.
    pub about: &'static str,
    /// The reference page: headings *Idea*, *Rule*, *When it helps*, *When it hurts*, *Departures*, *References*.
    pub page: &'static str,
    /// Parameters.
    pub parameters: &'static [Parameter],
    /// Builds one for a connection.
    pub build: fn(&Parameters<'_>) -> Box<T>,
}

/// Values for the parameters of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    known: &'a [Parameter],
    given: &'a [(String, f64)],
}

impl<'a> Parameters<'a> {
    /// `given` values over the defaults of `known`. Callers have checked names and ranges.
    pub const fn new(known: &'a [Parameter], given: &'a [(String, f64)]) -> Self {
        Self { known, given }
    }

    fn value(&self, parameter: &Parameter) -> f64 {
        let listed = self.known.iter().find(|known| known.name == parameter.name);
        debug_assert!(listed.is_some(), "{} is not among the parameters", parameter.name);
        let given = self.given.iter().find(|(name, _)| name == parameter.name);
        given.map_or(listed.unwrap_or(parameter).default, |(_, value)| *value)
    }
}

/// The headings of every reference page, in their order.
pub const HEADINGS: [&str; 6] = ["Idea", "Rule", "When it helps", "When it hurts", "Departures", "References"];

/// The placeholder for a text that a template leaves open.
pub const TO_BE_WRITTEN: &str = "To be written";

impl<T: ?Sized> Entry<T> {
    /// The missing parts of its `about` and its page, one phrase each: a heading, or the text below one.
    pub fn lacking(&self) -> Vec<String> {
        let is_written = |text: &str| !text.is_empty() && !text.starts_with(TO_BE_WRITTEN);
        let about = (!is_written(self.about)).then(|| "`about` is to be written".to_owned());
        let lacks = |heading: &&str| match self.page.split_once(&format!("# {heading}\n")) {
            None => Some(format!("no heading `# {heading}`")),
            Some((_, below)) => {
                let text = below.split("\n#").next().unwrap_or_default().trim();
                (!is_written(text)).then(|| format!("`# {heading}` is to be written"))
            }
        };
        about.into_iter().chain(HEADINGS.iter().filter_map(lacks)).collect()
    }

    /// Builds with `given` over the defaults.
    pub fn build(&self, given: &[(String, f64)]) -> Box<T> {
        (self.build)(&Parameters::new(self.parameters, given))
    }

    /// True if `name` is its name or an alias.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_range_and_whole_where_they_must_be() {
        let ratio = number("n", 1.0, 0.0..=4.0).parameter;
        assert!([0.0, 0.5, 4.0].iter().all(|value| ratio.accepts(*value)));
        assert!(![-0.1, 4.1, f64::NAN, f64::INFINITY].iter().any(|value| ratio.accepts(*value)));
        let count = whole("n", 1, 0..=4).parameter;
        assert!(count.accepts(3.0) && !count.accepts(2.5) && !count.accepts(5.0));
        let flag = flag("n", true).parameter;
        assert!(flag.accepts(0.0) && flag.accepts(1.0) && !flag.accepts(0.5));
    }

    #[test]
    fn a_handle_reads_the_given_value_or_the_listed_default_as_its_type() {
        const WAIT: Handle<Duration> = milliseconds("wait", 20.0, 0.0..=100.0);
        const TIMEOUT: Handle<Duration> = seconds("timeout", 1.5, 0.0..=9.0);
        const PACKETS: Handle<u64> = whole("packets", 7, 0..=9).unit("packets");
        const STRICT: Handle<bool> = flag("strict", true);
        const GAIN: Handle<f64> = number("gain", 0.25, 0.0..=1.0);
        let listed = [WAIT.parameter, TIMEOUT.parameter, PACKETS.parameter, STRICT.parameter, GAIN.parameter];
        let silent = Parameters::new(&listed, &[]);
        assert_eq!((WAIT.of(&silent), TIMEOUT.of(&silent)), (Duration::from_millis(20), Duration::from_millis(1500)));
        assert_eq!((PACKETS.of(&silent), STRICT.of(&silent), GAIN.of(&silent)), (7, true, 0.25));
        let given = [("wait".into(), 5.0), ("packets".into(), 2.0), ("strict".into(), 0.0)];
        let given = Parameters::new(&listed, &given);
        assert_eq!((WAIT.of(&given), PACKETS.of(&given), STRICT.of(&given)), (Duration::from_millis(5), 2, false));
        // An entry may list it with another default.
        let other = [Parameter { default: 0.5, ..GAIN.parameter }];
        assert_eq!(GAIN.of(&Parameters::new(&other, &[])), 0.5);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "delay is not among the parameters")]
    fn a_parameter_that_is_not_listed_is_not_read() {
        flag("delay", false).of(&Parameters::new(&[], &[("delay".into(), 1.0)]));
    }

    #[test]
    fn a_page_says_what_it_lacks() {
        let page = "# Idea\n\nOne.\n\n# Rule\n\n# When it helps\n\nTo be written.\n\n# When it hurts\n\nNever.\n\n# References\n\nNone.\n";
        let entry: Entry<str> =
            Entry { name: "x", aliases: &[], about: "", page, parameters: &[], build: |_| String::new().into() };
        assert_eq!(
            entry.lacking(),
            [
                "`about` is to be written",
                "`# Rule` is to be written",
                "`# When it helps` is to be written",
                "no heading `# Departures`"
            ]
        );
    }

    #[test]
    fn a_least_value_above_the_greatest_contradicts() {
        let number = |name, default| number(name, default, 0.0..=9.0).parameter;
        let known = [number("delay_max", 1.0), number("x_min", 2.0), number("x_max", 4.0)];
        let names = |given: &[(&str, f64)]| {
            let given: Vec<(String, f64)> = given.iter().map(|(name, value)| ((*name).into(), *value)).collect();
            contradiction(&known.each_ref(), &given).map(|(least, greatest)| (least.name, greatest.name))
        };
        assert_eq!(names(&[]), None);
        assert_eq!(names(&[("x_min", 4.0), ("delay_max", 0.0)]), None);
        assert_eq!(names(&[("x_min", 4.5)]), Some(("x_min", "x_max")));
        assert_eq!(names(&[("x_max", 1.0)]), Some(("x_min", "x_max")));
    }
}
