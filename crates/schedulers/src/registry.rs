//! The registry: names, aliases, suffixes, parameters.

use anabranch_plugin::registry::{Entry, Parameter, contradiction};
use anabranch_plugin::schedule::{Scheduler, Then};
use anabranch_units::SchedulerName;
use core::fmt;

/// How a scheduler binds data, which decides whether it may have a suffix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binds {
    /// A segment at a time, when a window has room: takes a suffix.
    Pull,
    /// Ahead of time, by a plan or into queues; it retransmits, if at all, by its own rules.
    Ahead,
    /// The scheduler copies everything in any case.
    Copies,
    /// The scheduler binds by an operator's rule, which copies on other paths would break.
    Policy,
}

const REGISTRY: &[(&Entry<dyn Scheduler>, Binds)] = &[
    (&crate::fifo::ENTRY, Binds::Pull),
    (&crate::roundrobin::ENTRY, Binds::Pull),
    (&crate::minrtt::ENTRY, Binds::Pull),
    (&crate::daps::ENTRY, Binds::Ahead),
    (&crate::daps::ENTRY_PULL, Binds::Ahead),
    (&crate::daps::ENTRY_ACK, Binds::Ahead),
    (&crate::daps2::ENTRY, Binds::Ahead),
    (&crate::otias::ENTRY, Binds::Ahead),
    (&crate::otias::ENTRY_MODULE, Binds::Ahead),
    (&crate::otias::ENTRY_PAPER, Binds::Ahead),
    (&crate::blest::ENTRY, Binds::Pull),
    (&crate::blest_linux::ENTRY, Binds::Pull),
    (&crate::cp::ENTRY, Binds::Pull),
    (&crate::hsr::ENTRY, Binds::Pull),
    (&crate::lws::ENTRY, Binds::Pull),
    (&crate::lts::ENTRY, Binds::Pull),
    (&crate::fps::ENTRY, Binds::Pull),
    (&crate::f2pdps::ENTRY, Binds::Pull),
    (&crate::ocps::ENTRY_FPS, Binds::Pull),
    (&crate::ocps::ENTRY_F2PDPS, Binds::Pull),
    (&crate::fdps::ENTRY, Binds::Pull),
    (&crate::fdps::ENTRY_STAR, Binds::Pull),
    (&crate::kim2012::ENTRY, Binds::Pull),
    (&crate::mtcs::ENTRY, Binds::Pull),
    (&crate::lssctp::ENTRY, Binds::Pull),
    (&crate::bas::ENTRY, Binds::Pull),
    (&crate::barre::ENTRY, Binds::Pull),
    (&crate::ecf::ENTRY, Binds::Pull),
    (&crate::ecf_linux::ENTRY, Binds::Pull),
    (&crate::stms::ENTRY, Binds::Pull),
    (&crate::dems::ENTRY, Binds::Copies),
    (&crate::redundant::ENTRY, Binds::Copies),
    (&crate::qaware::ENTRY, Binds::Pull),
    (&crate::peekaboo::ENTRY, Binds::Pull),
    (&crate::srpt_ecf::ENTRY, Binds::Pull),
    (&crate::sttf::ENTRY, Binds::Ahead),
    (&crate::linux_default::ENTRY, Binds::Ahead),
    (&crate::weighted::ENTRY, Binds::Pull),
    (&crate::active_backup::ENTRY, Binds::Policy),
    (&crate::cost::ENTRY, Binds::Policy),
    (&crate::playahead::ENTRY, Binds::Pull),
];

static ALL: [&Entry<dyn Scheduler>; REGISTRY.len()] = {
    let mut all = [REGISTRY[0].0; REGISTRY.len()];
    let mut i = 1;
    while i < all.len() {
        all[i] = REGISTRY[i].0;
        i += 1;
    }
    all
};

static SUFFIXES: [&Entry<dyn Scheduler>; 2] = [&crate::opportunistic::ENTRY_PR, &crate::opportunistic::ENTRY_OR];

/// Every scheduler, without suffixes.
pub fn all() -> &'static [&'static Entry<dyn Scheduler>] {
    &ALL
}

/// `+pr` and `+or`. Their `build` makes the part that acts after the scheduler.
pub fn suffixes() -> &'static [&'static Entry<dyn Scheduler>] {
    &SUFFIXES
}

/// The scheduler or suffix with this name or alias, for its page and parameters.
pub fn find(name: &str) -> Option<&'static Entry<dyn Scheduler>> {
    ALL.iter().chain(&SUFFIXES).find(|e| e.answers_to(name)).copied()
}

/// True if `+pr` and `+or` may follow: it binds a segment at a time (pull), and copies on other paths do not defeat it.
pub fn takes_suffix(entry: &Entry<dyn Scheduler>) -> bool {
    REGISTRY.iter().any(|(e, binds)| e.name == entry.name && *binds == Binds::Pull)
}

/// The parts of a scheduler's name.
#[derive(Clone, Copy)]
pub struct Resolved {
    /// The scheduler.
    pub base: &'static Entry<dyn Scheduler>,
    /// The part that acts after it.
    pub suffix: Option<&'static Entry<dyn Scheduler>>,
}

impl Resolved {
    /// The canonical name, suffix included.
    pub fn name(&self) -> String {
        self.label().to_string()
    }

    /// The canonical name, for traces.
    pub fn label(&self) -> SchedulerName {
        SchedulerName { base: self.base.name, suffix: self.suffix.map_or("", |s| s.name) }
    }

    /// The parameters of both parts.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.base.parameters.iter().chain(self.suffix.map_or(&[][..], |s| s.parameters))
    }

    /// Builds it. Errors: a parameter that neither part has, a value out of its range, or two that contradict each
    /// other.
    pub fn build(&self, given: &[(String, f64)]) -> Result<Box<dyn Scheduler>, BuildError> {
        for (name, value) in given {
            let Some(parameter) = self.parameters().find(|p| p.name == name) else {
                return Err(BuildError::UnknownParameter { scheduler: *self, name: name.clone() });
            };
            if !parameter.accepts(*value) {
                return Err(BuildError::OutOfRange { parameter, value: *value });
            }
        }
        if let Some((least, greatest)) = contradiction(&self.parameters().collect::<Vec<_>>(), given) {
            return Err(BuildError::Contradiction { least, greatest });
        }
        let base = self.base.build(given);
        Ok(match self.suffix {
            None => base,
            Some(suffix) => Box::new(Then(base, suffix.build(given))),
        })
    }
}

/// Resolves a name such as `blest`, `rr` or `minrtt+pr`.
pub fn resolve(name: &str) -> Result<Resolved, BuildError> {
    let (base, suffix) = match name.find('+') {
        Some(at) => (&name[..at], Some(&name[at..])),
        None => (name, None),
    };
    let unknown = || BuildError::UnknownName { name: name.into() };
    let base = ALL.iter().find(|e| e.answers_to(base)).copied().ok_or_else(unknown)?;
    let suffix = match suffix {
        None => None,
        Some(s) => Some(SUFFIXES.iter().find(|e| e.answers_to(s)).copied().ok_or_else(unknown)?),
    };
    match suffix {
        Some(suffix) if !takes_suffix(base) => Err(BuildError::NoSuffix { base, suffix }),
        _ => Ok(Resolved { base, suffix }),
    }
}

/// Builds the scheduler of a name with an optional suffix.
pub fn build(name: &str, parameters: &[(String, f64)]) -> Result<Box<dyn Scheduler>, BuildError> {
    resolve(name)?.build(parameters)
}

/// Why a scheduler cannot be built.
#[derive(Clone)]
pub enum BuildError {
    /// No scheduler or no suffix has this name.
    UnknownName {
        /// As given.
        name: String,
    },
    /// The scheduler takes no suffix.
    NoSuffix {
        /// The scheduler.
        base: &'static Entry<dyn Scheduler>,
        /// The suffix.
        suffix: &'static Entry<dyn Scheduler>,
    },
    /// The scheduler has no such parameter.
    UnknownParameter {
        /// The scheduler.
        scheduler: Resolved,
        /// As given.
        name: String,
    },
    /// A value outside the parameter's range.
    OutOfRange {
        /// The parameter.
        parameter: &'static Parameter,
        /// As given.
        value: f64,
    },
    /// A lower bound above its upper bound.
    Contradiction {
        /// The lower bound.
        least: &'static Parameter,
        /// The upper bound.
        greatest: &'static Parameter,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |entries: &[&Entry<dyn Scheduler>]| entries.iter().map(|e| e.name).collect::<Vec<_>>().join(", ");
        match self {
            Self::UnknownName { name } => {
                write!(f, "unknown scheduler `{name}`; known are {}", names(&ALL))?;
                write!(f, "; a pull scheduler may be followed by {}", names(&SUFFIXES))
            }
            Self::NoSuffix { base, suffix } => {
                write!(f, "`{}` cannot be followed by `{}`: it is not a pull scheduler", base.name, suffix.name)
            }
            Self::UnknownParameter { scheduler, name } => {
                let known: Vec<_> = scheduler.parameters().map(|p| p.name).collect();
                write!(f, "`{}` has no parameter `{name}`; it has ", scheduler.name())?;
                f.write_str(if known.is_empty() { "none" } else { "" })?;
                f.write_str(&known.join(", "))
            }
            Self::OutOfRange { parameter, value } => {
                let Parameter { name, min, max, unit, .. } = parameter;
                write!(f, "`{name}` = {value} is outside {min}..{max} {unit}, or not whole")
            }
            Self::Contradiction { least, greatest } => write!(f, "`{}` is above `{}`", least.name, greatest.name),
        }
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for BuildError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_built_is_listed() {
        for name in ["minrtt", "roundrobin", "redundant", "blest", "ecf", "daps-ack", "otias", "linux-default"] {
            assert!(build(name, &[]).is_ok());
            assert!(all().iter().any(|entry| entry.name == name), "{name}");
        }
        assert_eq!(suffixes().iter().map(|entry| entry.name).collect::<Vec<_>>(), ["+pr", "+or"]);
    }

    #[test]
    fn every_scheduler_builds_by_each_of_its_names() {
        for entry in all() {
            for name in entry.aliases.iter().chain([&entry.name]) {
                assert_eq!(resolve(name).unwrap().name(), entry.name);
                assert!(build(name, &[]).is_ok());
            }
            assert_eq!(build(&format!("{}+pr", entry.name), &[]).is_ok(), takes_suffix(entry), "{}", entry.name);
        }
    }

    #[test]
    fn every_parameter_reaches_its_scheduler() {
        for entry in all().iter().chain(suffixes()) {
            for p in entry.parameters {
                let built = |value: f64| format!("{:?}", entry.build(&[(p.name.to_owned(), value)]));
                assert_ne!(built(p.min), built(p.max), "{} of {}", p.name, entry.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_pages_complete() {
        let entries: Vec<_> = all().iter().chain(suffixes()).collect();
        let mut names: Vec<_> = entries.iter().flat_map(|e| e.aliases.iter().chain([&e.name])).collect();
        names.sort();
        assert!(names.windows(2).all(|w| w[0] != w[1]));
        for entry in entries {
            let lacking = entry.lacking();
            assert!(lacking.is_empty(), "the page of `{}` is incomplete: {}", entry.name, lacking.join(", "));
            for p in entry.parameters {
                assert!(p.accepts(p.default), "{} {}", entry.name, p.name);
                assert!(!p.about.is_empty());
            }
        }
    }

    #[test]
    fn a_page_that_is_not_written_is_told_part_by_part() {
        let lacking = crate::template::ENTRY.lacking();
        assert_eq!(lacking.len(), 7, "`about` and six headings: {lacking:?}");
    }

    #[test]
    fn no_scheduler_is_or_calls_itself_what_another_is() {
        let entries: Vec<_> = all().iter().chain(suffixes()).collect();
        for (i, one) in entries.iter().enumerate() {
            for other in &entries[..i] {
                let built = |e: &Entry<dyn Scheduler>| format!("{:?}", e.build(&[]));
                assert_ne!(built(one), built(other), "{} and {}", one.name, other.name);
                assert_ne!(one.about, other.about, "{} and {}", one.name, other.name);
            }
        }
    }

    #[test]
    fn aliases_resolve_with_suffixes() {
        assert_eq!(resolve("lowrtt+pr").unwrap().name(), "minrtt+pr");
        assert_eq!(resolve("rr+or").unwrap().name(), "roundrobin+or");
        assert_eq!(find("+pr").unwrap().name, "+pr");
    }

    #[test]
    fn errors_say_what_is_known() {
        let text = |name: &str, given: &[(String, f64)]| build(name, given).err().unwrap().to_string();
        let unknown = text("blst", &[]);
        assert!(all().iter().all(|e| unknown.contains(e.name)), "{unknown}");
        assert!(text("blest+xx", &[]).contains("+or"));
        assert!(text("redundant+pr", &[]).contains("redundant"));
        assert!(text("minrtt", &[("delta".into(), 1.0)]).contains("none"));
        assert!(text("blest+pr", &[("beta".into(), 1.0)]).contains("delta"));
        assert!(text("blest", &[("delta".into(), f64::NAN)]).contains("delta"));
        let contradiction = text("blest+pr", &[("lambda_min".into(), 3.0), ("lambda_max".into(), 2.0)]);
        assert_eq!(contradiction, "`lambda_min` is above `lambda_max`");
        let shown = build("blst", &[]).err().map(|error| format!("{error:?}"));
        assert_eq!(shown, Some(unknown), "who unwraps it is told, too");
        assert!(build("blest+pr", &[("delta".into(), 0.01), ("rtt_guard".into(), 0.0)]).is_ok());
    }
}
