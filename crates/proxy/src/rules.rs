//! Which scheduler and which policy of the paths a connection gets, by its target: docs/proxy.md has the format.

use crate::target::{Host, Target};
use anabranch_engine::Scheduler;
use anabranch_engine::schedule::PathPolicy;
use anabranch_link::LinkError;
use anabranch_scenario::{PlugIn, nearest, parse_size};
use anabranch_trace::SchedulerName;
use core::ops::RangeInclusive;
use ipnet::IpNet;
use std::collections::BTreeMap;

const PATH_KEYS: [&str; 4] = ["backup", "price", "cap", "weight"];

/// The operator's policy for a path, and whether it is a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathRule {
    /// Use it only when no other path is usable.
    pub backup: bool,
    /// For schedulers.
    pub policy: PathPolicy,
}

/// A scheduler with its name; `None` if it cannot be built.
pub(super) fn built(scheduler: &PlugIn) -> Option<(SchedulerName, Box<dyn Scheduler>)> {
    let PlugIn { name, parameters } = scheduler;
    let label = anabranch_schedulers::resolve(name).ok()?.label();
    Some((label, anabranch_schedulers::build(name, parameters).ok()?))
}

/// Scheduler and policy of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Treatment {
    /// The scheduler, of both ends.
    pub scheduler: PlugIn,
    /// Path rules by interface; others have the default.
    pub paths: BTreeMap<String, PathRule>,
}

impl Treatment {
    /// The scheduler with its name; `None` if it cannot be built.
    pub(crate) fn build(&self) -> Option<(SchedulerName, Box<dyn Scheduler>)> {
        built(&self.scheduler)
    }

    /// The rule for the path through an interface.
    pub fn path(&self, interface: &str) -> PathRule {
        self.paths.get(interface).copied().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum HostPattern {
    Any,
    Name(String),
    /// All names that end so, with the point.
    Below(String),
    Block(IpNet),
}

impl HostPattern {
    fn parse(token: &str) -> Option<Self> {
        if token == "*" {
            return Some(Self::Any);
        }
        if let Some(block) = crate::address_filter::parse_block(token) {
            return Some(Self::Block(block));
        }
        let name = |text: &str| match Host::parse(text)? {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        };
        match token.strip_prefix('*') {
            Some(rest) => rest.starts_with('.').then(|| name(rest))?.map(Self::Below),
            None => name(token).map(Self::Name),
        }
    }

    fn contains(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(own), Host::Name(name)) => own == name,
            (Self::Below(end), Host::Name(name)) => name.ends_with(end),
            (Self::Block(block), Host::Address(address)) => block.contains(&address.to_canonical()),
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    hosts: HostPattern,
    /// None = all.
    ports: Vec<RangeInclusive<u16>>,
    treatment: Treatment,
}

/// Rules in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    rules: Vec<Rule>,
    usual: Treatment,
}

impl Rules {
    /// No rules: every connection gets this scheduler.
    pub fn none(scheduler: PlugIn) -> Self {
        Self { rules: Vec::new(), usual: Treatment { scheduler, paths: BTreeMap::new() } }
    }

    /// Rules in a text, one per line. A rule without a scheduler has `scheduler`; so has a connection without a rule. `interfaces` are
    /// those that there are.
    ///
    /// # Errors
    /// The first mistake, with its line. `file` names the text.
    pub fn parse(file: &str, text: &str, scheduler: PlugIn, interfaces: &[String]) -> Result<Self, LinkError> {
        let mut rules = Self::none(scheduler);
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let rule = rule(line, &rules.usual.scheduler, interfaces);
            let malformed = |mistake| LinkError::Malformed { what: format!("{file}: line {}: {mistake}", n + 1) };
            rules.rules.push(rule.map_err(malformed)?);
        }
        Ok(rules)
    }

    /// The treatment of a connection to `target`: by the first rule that fits.
    pub fn of(&self, target: &Target) -> &Treatment {
        let fits = |rule: &&Rule| {
            let port = rule.ports.is_empty() || rule.ports.iter().any(|ports| ports.contains(&target.port));
            port && rule.hosts.contains(&target.host)
        };
        self.rules.iter().find(fits).map_or(&self.usual, |rule| &rule.treatment)
    }

    /// The treatment of a connection without a rule.
    pub fn usual(&self) -> &Treatment {
        &self.usual
    }
}

fn rule(line: &str, scheduler: &PlugIn, interfaces: &[String]) -> Result<Rule, String> {
    let mut tokens = line.split_whitespace();
    let host = tokens.next().unwrap_or_default();
    let hosts = HostPattern::parse(host)
        .ok_or_else(|| format!("`{host}` is no host: write *, a name, *.DOMAIN, an address or ADDRESS/BITS"))?;
    let ports = ports(tokens.next().unwrap_or_default())?;
    let mut treatment = Treatment { scheduler: scheduler.clone(), paths: BTreeMap::new() };
    let mut any = false;
    for token in tokens {
        set(&mut treatment, token, interfaces)?;
        any = true;
    }
    if any {
        Ok(Rule { hosts, ports, treatment })
    } else {
        Err("nothing is set: write HOST PORTS KEY=VALUE…".to_owned())
    }
}

fn ports(token: &str) -> Result<Vec<RangeInclusive<u16>>, String> {
    if token == "*" {
        return Ok(Vec::new());
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse().ok()?..=last.parse().ok()?;
        (*range.start() > 0 && !range.is_empty()).then_some(range)
    };
    let all: Option<Vec<_>> = token.split(',').map(range).collect();
    all.ok_or_else(|| format!("`{token}` is no port: write *, 22, 80,443 or 6881-6889"))
}

/// `KEY=VALUE`.
fn set(treatment: &mut Treatment, token: &str, interfaces: &[String]) -> Result<(), String> {
    let (key, value) = token.split_once('=').ok_or_else(|| format!("`{token}` is no KEY=VALUE"))?;
    if key == "scheduler" {
        let read = anabranch_scenario::scheduler("rule", value);
        treatment.scheduler = read.map_err(|mistakes| mistakes.first().map(said).unwrap_or_default())?;
        return Ok(());
    }
    let Some((interface, setting)) = key.strip_prefix("path.").and_then(|path| path.rsplit_once('.')) else {
        let help = nearest(key, ["scheduler"]).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("`{key}`: there are scheduler and path.INTERFACE.SETTING{help}"));
    };
    if !interfaces.iter().any(|name| name == interface) {
        let near = nearest(interface, interfaces.iter().map(String::as_str));
        let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("`{interface}` is not among the interfaces of --via{help}"));
    }
    let path = treatment.paths.entry(interface.to_owned()).or_default();
    set_path(path, setting, value)
}

fn said(mistake: &anabranch_scenario::Diagnostic) -> String {
    let help = mistake.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{mistake}{help}")
}

fn set_path(path: &mut PathRule, setting: &str, value: &str) -> Result<(), String> {
    let wrong = |wanted: &str| format!("`{value}`: {setting} is {wanted}");
    let number = || value.parse::<f64>().ok().filter(|number| number.is_finite());
    let policy = &mut path.policy;
    match setting {
        "backup" => path.backup = value.parse().map_err(|_| wrong("true or false"))?,
        "price" => {
            policy.price = number().filter(|price| *price >= 0.0).ok_or_else(|| wrong("a number, not negative"))?
        }
        "cap" => policy.cap = Some(parse_size(value).ok_or_else(|| wrong("a size with a unit, such as 20GB"))?),
        "weight" => policy.weight = Some(number().filter(|w| *w > 0.0).ok_or_else(|| wrong("a number above zero"))?),
        _ => {
            let near = nearest(setting, PATH_KEYS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("`{setting}`: a path has {}{near}", PATH_KEYS.join(", ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minrtt() -> PlugIn {
        anabranch_scenario::scheduler("test", "minrtt").unwrap()
    }

    fn parse(text: &str) -> Result<Rules, String> {
        let interfaces = ["wlan0".to_owned(), "eth0.7".to_owned()];
        Rules::parse("rules", text, minrtt(), &interfaces).map_err(|error| error.to_string())
    }

    const TEXT: &str = "# a comment\n\nexample.net 22,80-90 scheduler=blest(delta=0.01)\n*.example.net * path.eth0.7.backup=true\n\
                        10.0.0.0/8 * path.wlan0.cap=1KB path.wlan0.price=2.5 path.wlan0.weight=3\n* 443 scheduler=redundant # the rest\n";

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = parse(TEXT).unwrap();
        let scheduler = |target: &str| rules.of(&Target::parse(target).unwrap()).scheduler.with_parameters();
        assert_eq!(scheduler("example.net:22"), "blest(delta=0.01)");
        assert_eq!(scheduler("EXAMPLE.net:85"), "blest(delta=0.01)");
        assert_eq!(scheduler("example.net:91"), "minrtt", "no rule");
        assert_eq!(scheduler("example.net:443"), "redundant");
        let www = rules.of(&Target::parse("www.example.net:443").unwrap());
        assert!(www.path("eth0.7").backup && !www.path("wlan0").backup);
        assert_eq!(www.scheduler, minrtt(), "a rule without one");
        let policy = rules.of(&Target::parse("10.1.2.3:1").unwrap()).path("wlan0").policy;
        assert_eq!(policy, PathPolicy { price: 2.5, cap: Some(1_000), weight: Some(3.0) });
        assert_eq!(Rules::none(minrtt()).of(&Target::parse("a:1").unwrap()), rules.usual());
    }

    #[test]
    fn mistakes_are_named_with_their_line_and_the_nearest_word() {
        let cases = [
            ("* * schedular=blest", "line 1: `schedular`: there are scheduler", "did you mean `scheduler`?"),
            ("\n* * scheduler=blesst", "line 2: there is no scheduler \"blesst\"", "did you mean \"blest\""),
            ("* * path.wlan1.backup=true", "`wlan1` is not among the interfaces", "did you mean `wlan0`?"),
            ("* * path.wlan0.backop=true", "`backop`: a path has backup", "did you mean `backup`?"),
            ("* * path.wlan0.backup=yes", "`yes`: backup is true or false", ""),
            ("* * path.wlan0.cap=3", "`3`: cap is a size", ""),
            ("* * path.wlan0.price=-1", "`-1`: price is", ""),
            ("* * path.wlan0.weight=0", "`0`: weight is", ""),
            ("* 0 scheduler=blest", "`0` is no port", ""),
            ("* 90-80 scheduler=blest", "`90-80` is no port", ""),
            ("*x.net * scheduler=blest", "`*x.net` is no host", ""),
            ("* *", "nothing is set", ""),
            ("example.net", "`` is no port", ""),
            ("* * blest", "`blest` is no KEY=VALUE", ""),
        ];
        for (text, first, second) in cases {
            let said = parse(text).unwrap_err();
            assert!(
                said.starts_with("rules: line ") && said.contains(first) && said.contains(second),
                "{text}: {said}"
            );
        }
    }
}
