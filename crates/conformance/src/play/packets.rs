//! Packets that the host must send. Consecutive expectations are one group: on each path their order holds; between
//! paths it is free, because RFC 8684 has no order between subflows.

use super::compare::differences;
use super::{Pending, Player, Wanted, Welcome, Wrong};
use crate::script::{Need, Step, What};
use core::time::Duration;

impl Player<'_> {
    /// Waits for the packets of a group.
    pub(super) fn expect(&mut self, steps: &[Step]) -> Result<(), Wrong> {
        let base = self.last;
        let first = &steps[0];
        let (earliest, mut latest) = self.subject.bounds(&first.after);
        let mut wanted = self.wanted(steps);
        while wanted.iter().any(|line| line.need == Need::Required) {
            let Some(next) = self.next(base + latest)? else {
                let missing = wanted.iter().find(|line| line.need == Need::Required).map(|line| line.step);
                let line = missing.map(|step| (step.line, step.text.clone()));
                let came = format!(
                    "nothing up to {:.3}, {:.3} after the line before",
                    (base + latest).as_secs_f64(),
                    latest.as_secs_f64()
                );
                return Err(Wrong { line, came, differences: Vec::new() });
            };
            let Some(at) = self.fitting(&wanted, &next) else {
                // It may be a packet that is optional here and elsewhere.
                if self.is_welcome(next.path, &next.packet) {
                    continue;
                }
                return Err(self.unfitting(&wanted, &next));
            };
            let line = wanted.remove(at);
            self.in_time(&line, &next, (base, earliest))?;
            self.last = self.last.max(next.at);
            // The rest of the group comes directly after this packet.
            let tolerance = self
                .subject
                .bounds(&crate::script::After { least: Duration::ZERO, most: crate::script::Most::Exactly });
            latest = latest.max(next.at.saturating_sub(base) + tolerance.1);
        }
        let left =
            wanted.into_iter().map(|line| Welcome { path: line.path, pattern: line.pattern.clone(), again: false });
        let left: Vec<Welcome> = left.collect();
        self.welcome.extend(left);
        // A packet that is permitted now may have come already.
        let pending: Vec<Pending> = self.pending.drain(..).collect();
        for next in pending {
            if !self.is_welcome(next.path, &next.packet) {
                self.pending.push_back(next);
            }
        }
        Ok(())
    }

    fn wanted<'s>(&mut self, steps: &'s [Step]) -> Vec<Wanted<'s>> {
        let mut wanted = Vec::new();
        for step in steps {
            match &step.what {
                What::Out(path, pattern, Need::Ignored) => {
                    self.welcome.push(Welcome { path: *path, pattern: pattern.clone(), again: true });
                }
                What::Out(path, pattern, need) => wanted.push(Wanted { step, path: *path, pattern, need: *need }),
                _ => {}
            }
        }
        wanted
    }

    fn next(&mut self, until: Duration) -> Result<Option<Pending>, Wrong> {
        if self.pending.is_empty() {
            self.hear(until)?;
        }
        Ok(self.pending.pop_front())
    }

    /// The line that the packet matches: the first required one of its path, or an optional one before it.
    fn fitting(&self, wanted: &[Wanted<'_>], next: &Pending) -> Option<usize> {
        for (at, line) in wanted.iter().enumerate().filter(|(_, line)| line.path == next.path) {
            if differences(&self.world, next.path, line.pattern, &next.packet).is_empty() {
                return Some(at);
            }
            if line.need == Need::Required {
                return None;
            }
        }
        None
    }

    fn unfitting(&self, wanted: &[Wanted<'_>], next: &Pending) -> Wrong {
        let required = |line: &&Wanted<'_>| line.need == Need::Required;
        let on_path = wanted.iter().filter(required).find(|line| line.path == next.path);
        let line = on_path.or_else(|| wanted.iter().find(required));
        let differs = |line: &Wanted<'_>| match line.path == next.path {
            true => differences(&self.world, next.path, line.pattern, &next.packet),
            false => vec![format!("path {}, not {}", next.path, line.path)],
        };
        Wrong {
            line: line.map(|line| (line.step.line, line.step.text.clone())),
            came: format!("+{} {}", next.at.saturating_sub(self.last).as_secs_f64(), next.shown),
            differences: line.map_or_else(Vec::new, differs),
        }
    }

    /// Only the first of a group has a time; the others have none.
    fn in_time(&self, line: &Wanted<'_>, next: &Pending, (base, earliest): (Duration, Duration)) -> Result<(), Wrong> {
        if earliest.is_zero() || next.at >= base + earliest {
            return Ok(());
        }
        let when = next.at.saturating_sub(base).as_secs_f64();
        Err(Wrong {
            line: Some((line.step.line, line.step.text.clone())),
            came: format!("+{when} {}", next.shown),
            differences: vec![format!("too early: {when} s after the line before")],
        })
    }
}
