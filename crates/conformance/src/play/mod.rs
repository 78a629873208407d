//! Plays a script against a host: the peer's packets, the application's calls, the expected packets.

mod application;
mod compare;
mod failure;
mod make;
mod packets;
mod resolve;
mod show;
mod stream;
mod subject;
pub mod world;

pub use failure::Failure;
pub use subject::{Got, Sent, Status, Subject};

use crate::packet::TcpPacket;
use crate::script::{Most, Need, Pattern, Script, Step, What};
use core::time::Duration;
use std::collections::VecDeque;
use world::{InOut, World};

/// Lines of the exchange that a failure shows.
const LOG: usize = 60;

/// Plays `script` against `subject`; returns the end of the exchange, one line each.
///
/// # Errors
/// The first line that was not followed.
pub fn play(script: &Script, subject: &mut dyn Subject) -> Result<Vec<String>, Box<Failure>> {
    let player = Player {
        script,
        subject,
        world: World::new(script),
        last: Duration::ZERO,
        pending: VecDeque::new(),
        welcome: Vec::new(),
        read: 0,
        log: VecDeque::new(),
    };
    player.run()
}

/// A packet of the host's that no line has taken yet.
struct Pending {
    at: Duration,
    path: u8,
    packet: TcpPacket,
    shown: String,
}

/// A packet that may come at any time from here on.
struct Welcome {
    path: u8,
    pattern: Pattern,
    /// The segment may come more than once.
    again: bool,
}

/// Why the present line failed.
#[derive(Default)]
struct Wrong {
    /// The line, if not the present one.
    line: Option<(usize, String)>,
    came: String,
    differences: Vec<String>,
}

impl From<String> for Wrong {
    fn from(came: String) -> Self {
        Self { came, ..Self::default() }
    }
}

struct Player<'a> {
    script: &'a Script,
    subject: &'a mut dyn Subject,
    world: World,
    /// When the previous step was done.
    last: Duration,
    pending: VecDeque<Pending>,
    welcome: Vec<Welcome>,
    /// Bytes of the peer's stream that the application has read.
    read: u64,
    log: VecDeque<String>,
}

impl Player<'_> {
    fn run(mut self) -> Result<Vec<String>, Box<Failure>> {
        let steps = &self.script.steps;
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            let group = group(&steps[at..]);
            let done = if group > 0 { self.expect(&steps[at..at + group]) } else { self.step(step) };
            done.map_err(|wrong| self.failure(step, wrong))?;
            at += group.max(1);
        }
        let until = self.subject.now() + self.subject.afterwards();
        match self.listen(until).and_then(|()| self.nothing_pending("nothing more")) {
            Ok(()) => Ok(self.log.into()),
            Err(wrong) => {
                let end = Step {
                    text: "the end of the script: nothing more".into(),
                    ..self.script.steps[steps.len() - 1].clone()
                };
                Err(self.failure(&end, wrong))
            }
        }
    }

    fn failure(&mut self, step: &Step, wrong: Wrong) -> Box<Failure> {
        let (line, expected) = wrong.line.unwrap_or((step.line, step.text.clone()));
        Box::new(Failure {
            file: self.script.file.clone(),
            line,
            expected,
            came: wrong.came,
            differences: wrong.differences,
            log: self.log.drain(..).collect(),
        })
    }

    fn note(&mut self, at: Duration, line: &str) {
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(format!("{:9.6} {line}", at.as_secs_f64()));
    }

    /// Any step except an expected packet.
    fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        let at = self.last + step.after.least;
        self.listen(at)?;
        if !step.after.least.is_zero() {
            self.nothing_pending("that this line comes next")?;
        }
        // In real time a step may be late.
        self.last = at.max(self.subject.now());
        match &step.what {
            What::In(path, pattern) => self.inject(*path, pattern)?,
            What::Out(..) => {}
            What::Quiet(time) => {
                self.nothing_pending("nothing")?;
                self.last += *time;
                self.listen(self.last)?;
                self.nothing_pending("nothing")?;
            }
            What::Call(call) => {
                self.note(at, &step.text);
                self.call(call)?;
            }
            What::State(state) => self.expect_state(*state)?,
            What::Count(counter, name, expected) => match self.subject.count(*counter, name)? {
                Some(came) if came != *expected => return Err(format!("{name} is {came}").into()),
                _ => {}
            },
            What::Anew(path) => self.forget(*path),
        }
        Ok(())
    }

    fn inject(&mut self, path: u8, pattern: &Pattern) -> Result<(), Wrong> {
        let packet = make::make(&mut self.world, path, pattern)?;
        let bytes = packet.to_bytes().ok_or("the options take more than 40 bytes".to_owned())?;
        let shown = show::show(&self.world, path, InOut::In, &packet);
        let now = self.subject.now();
        self.note(now, &shown);
        Ok(self.subject.inject(&bytes)?)
    }

    /// A new connection uses the path: the host's numbers are learned again.
    fn forget(&mut self, number: u8) {
        let client = self.script.is_client();
        let path = &mut self.world.paths[usize::from(number)];
        path.local_isn = None;
        path.local_port = path.local_port.filter(|_| !client);
    }

    /// Collects the host's packets until `until`.
    fn listen(&mut self, until: Duration) -> Result<(), Wrong> {
        while self.hear(until)? {}
        Ok(())
    }

    /// Takes the next packet; false if none came until `until`.
    fn hear(&mut self, until: Duration) -> Result<bool, Wrong> {
        loop {
            let Some(Sent { at, bytes }) = self.subject.receive(until)? else { return Ok(false) };
            let Some(packet) = TcpPacket::from_bytes(&bytes) else { continue };
            let Some(path) = self.world.path_of(&packet) else {
                let TcpPacket { src, src_port, dst, dst_port, .. } = &packet;
                return Err(format!("a packet between unknown ends: {src} {src_port} > {dst} {dst_port}").into());
            };
            self.world.observe(path, &packet);
            let shown = show::show(&self.world, path, InOut::Out, &packet);
            self.note(at, &shown);
            self.pending.push_back(Pending { at, path, packet, shown });
            return Ok(true);
        }
    }

    fn is_welcome(&mut self, path: u8, packet: &TcpPacket) -> bool {
        let fits = |welcome: &Welcome| {
            welcome.path == path && compare::differences(&self.world, path, &welcome.pattern, packet).is_empty()
        };
        let Some(at) = self.welcome.iter().position(fits) else { return false };
        if !self.welcome[at].again {
            self.welcome.remove(at);
        }
        true
    }

    fn nothing_pending(&mut self, expected: &str) -> Result<(), Wrong> {
        // Lines since its arrival may permit some of the pending packets.
        while let Some(Pending { path, packet, .. }) = self.pending.front() {
            let (path, packet) = (*path, packet.clone());
            if !self.is_welcome(path, &packet) {
                break;
            }
            self.pending.pop_front();
        }
        match self.pending.front() {
            None => Ok(()),
            Some(Pending { at, shown, .. }) => {
                let when = at.saturating_sub(self.last).as_secs_f64();
                let differences = vec![format!("a packet that no line has; expected was {expected}")];
                Err(Wrong { came: format!("+{when} {shown}"), differences, ..Wrong::default() })
            }
        }
    }
}

/// How many steps from the first on expect packets of the same time.
fn group(steps: &[Step]) -> usize {
    let is_out = |step: &&Step| matches!(step.what, What::Out(..));
    let joined = |step: &&Step| is_out(step) && step.after.least.is_zero() && step.after.most == Most::Exactly;
    match steps.first() {
        Some(first) if is_out(&first) => 1 + steps[1..].iter().take_while(joined).count(),
        _ => 0,
    }
}

/// One line of a group.
struct Wanted<'a> {
    step: &'a Step,
    path: u8,
    pattern: &'a Pattern,
    need: Need,
}

#[cfg(test)]
mod tests;
