//! A registry's entry for a plug-in: its name, its parameters, its reference page, how to build it.

/// A numeric parameter of a plug-in. A yes/no parameter has the unit `"bool"` and the values 0 and 1. Of two that are called
/// `X_min` and `X_max`, the first is at most the second: [`contradiction`].
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name as scenario files write it.
    pub name: &'static str,
    /// Value if the scenario is silent.
    pub default: f64,
    /// Least allowed value.
    pub min: f64,
    /// Greatest allowed value.
    pub max: f64,
    /// Unit, `""` for a bare number, `"bool"` for yes/no.
    pub unit: &'static str,
    /// One line.
    pub about: &'static str,
}

impl Parameter {
    /// True if the parameter may have `value`: inside its range, and a whole yes or no where that is asked. Never NaN.
    pub fn accepts(&self, value: f64) -> bool {
        let whole = self.unit != "bool" || value == 0.0 || value == 1.0;
        whole && (self.min..=self.max).contains(&value)
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

    /// The value of `name`: as given, else its default.
    ///
    /// # Panics
    /// If the entry does not list `name`: whoever builds every entry of a registry finds that.
    pub fn get(&self, name: &str) -> f64 {
        let known = self.known.iter().find(|p| p.name == name);
        let default = known.unwrap_or_else(|| panic!("{name} is not among the parameters")).default;
        self.given.iter().find(|(n, _)| n == name).map_or(default, |(_, v)| *v)
    }

    /// A yes/no parameter.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) != 0.0
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
    fn values_are_in_range_and_flags_whole() {
        let number = Parameter { name: "n", default: 1.0, min: 0.0, max: 4.0, unit: "", about: "" };
        assert!([0.0, 0.5, 4.0].iter().all(|value| number.accepts(*value)));
        assert!(![-0.1, 4.1, f64::NAN, f64::INFINITY].iter().any(|value| number.accepts(*value)));
        let flag = Parameter { max: 1.0, unit: "bool", ..number };
        assert!(flag.accepts(0.0) && flag.accepts(1.0) && !flag.accepts(0.5));
    }

    #[test]
    #[should_panic(expected = "delay is not among the parameters")]
    fn a_parameter_that_is_not_listed_has_no_value() {
        Parameters::new(&[], &[("delay".into(), 1.0)]).get("delay");
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
        let number = |name, default| Parameter { name, default, min: 0.0, max: 9.0, unit: "", about: "" };
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
