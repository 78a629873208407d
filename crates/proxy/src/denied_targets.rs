//! Notices for the user about targets that the server does not dial.

use crate::target::Target;
use anabranch_units::{Duration, Instant};

/// The least time between two notices: a program may try for ever.
const PAUSE: Duration = Duration::from_secs(10);

/// Targets that the server does not dial, because they are not public and its owner does not allow them.
#[derive(Debug, Default)]
pub(crate) struct DeniedTargets {
    /// The first since the last notice.
    first: Option<String>,
    /// Those after it.
    others: u64,
    /// Nothing is said before.
    next: Instant,
}

impl DeniedTargets {
    /// One more.
    pub fn note(&mut self, target: &Target) {
        match self.first {
            None => self.first = Some(line(target)),
            Some(_) => self.others += 1,
        }
    }

    /// The notice that is due now.
    pub fn notice(&mut self, now: Instant) -> Option<String> {
        let first = self.first.take_if(|_| now >= self.next)?;
        self.next = now + PAUSE;
        Some(match core::mem::take(&mut self.others) {
            0 => first,
            others => format!("{first} ({others} more requests were refused like this)"),
        })
    }
}

fn line(target: &Target) -> String {
    let address = target.host.address();
    let allowed = address.map_or_else(|| "ADDRESS".to_owned(), |address| address.to_string());
    let which = if address.is_some() { "is not public" } else { "has no public address" };
    format!("the server does not dial {target}, which {which}: `serve --proxy --allow {allowed}` there lets it through")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_and_the_option_are_named_once_in_a_while() {
        let mut denied = DeniedTargets::default();
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        assert_eq!(denied.notice(at(1)), None);
        denied.note(&Target::parse("192.168.7.9:80").unwrap());
        let said = denied.notice(at(1)).unwrap();
        assert!(said.contains("192.168.7.9:80") && said.contains("--allow 192.168.7.9`"), "{said}");
        for target in ["intranet.example:443", "10.0.0.1:80", "10.0.0.2:80"] {
            denied.note(&Target::parse(target).unwrap());
        }
        assert_eq!(denied.notice(at(10)), None);
        let said = denied.notice(at(11)).unwrap();
        assert!(said.contains("intranet.example:443") && said.contains("2 more requests"), "{said}");
        assert_eq!(denied.notice(at(99)), None);
    }
}
