//! The application's calls and the state that it sees.

use super::{Got, Player, Wrong};
use crate::script::{Call, Sort, State};
use core::time::Duration;

/// The pause before looking again, for a host in real time.
const NAP: Duration = Duration::from_millis(2);

impl Player<'_> {
    pub(super) fn call(&mut self, call: &Call) -> Result<(), Wrong> {
        match call {
            Call::Read(len, sort) => self.read_pattern(*len, sort),
            Call::ReadText(text) => self.read_bytes(text),
            Call::ReadEnd => match self.read_soon(1)? {
                Got::End => Ok(()),
                got => Err(shown(&got).into()),
            },
            Call::ReadNothing => {
                // The time in which an unwanted packet may still arrive.
                let until = self.subject.now() + self.subject.afterwards();
                self.listen(until)?;
                match self.subject.read(1) {
                    Got::Nothing => Ok(()),
                    got => Err(shown(&got).into()),
                }
            }
            Call::Accept => self.patiently(|player| player.subject.call(call, Vec::new())),
            Call::Write(len) => {
                let data = self.world.written.bytes(self.world.written_len, *len);
                self.world.written_len += *len as u64;
                Ok(self.subject.call(call, data)?)
            }
            Call::WriteText(text) => {
                let start = self.world.written_len;
                self.world.written.put(start, text);
                self.world.written_len += text.len() as u64;
                Ok(self.subject.call(call, text.clone())?)
            }
            _ => Ok(self.subject.call(call, Vec::new())?),
        }
    }

    fn read_pattern(&mut self, len: usize, sort: &Sort) -> Result<(), Wrong> {
        let stream = self.world.sent.bytes(self.read, len);
        match sort {
            Sort::Changed => {
                let changed: Vec<u8> = stream.iter().map(|byte| byte ^ 0xff).collect();
                self.read_bytes(&changed)
            }
            Sort::Any => self.read_exactly(len).map(drop),
            _ => self.read_bytes(&stream),
        }
    }

    fn read_bytes(&mut self, expected: &[u8]) -> Result<(), Wrong> {
        let start = self.read;
        let came = self.read_exactly(expected.len())?;
        match (0..expected.len()).find(|at| came[*at] != expected[*at]) {
            None => Ok(()),
            Some(at) => {
                let place = start + at as u64;
                Err(format!("byte {place} of the stream is {:#04x}, not {:#04x}", came[at], expected[at]).into())
            }
        }
    }

    fn read_exactly(&mut self, len: usize) -> Result<Vec<u8>, Wrong> {
        let mut all = Vec::with_capacity(len);
        while all.len() < len {
            match self.read_soon(len - all.len())? {
                Got::Bytes(bytes) => all.extend(bytes),
                got => return Err(format!("{} bytes, then {}", all.len(), shown(&got)).into()),
            }
        }
        self.read += len as u64;
        Ok(all)
    }

    /// Reads, and waits a little for a host in real time.
    fn read_soon(&mut self, most: usize) -> Result<Got, Wrong> {
        let until = self.subject.now() + self.subject.patience();
        loop {
            match self.subject.read(most) {
                Got::Nothing if self.subject.now() < until => self.listen((self.subject.now() + NAP).min(until))?,
                got => return Ok(got),
            }
        }
    }

    fn patiently(&mut self, mut act: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), Wrong> {
        let until = self.subject.now() + self.subject.patience();
        loop {
            match act(self) {
                Err(_) if self.subject.now() < until => self.listen((self.subject.now() + NAP).min(until))?,
                done => return Ok(done?),
            }
        }
    }

    pub(super) fn expect_state(&mut self, state: State) -> Result<(), Wrong> {
        self.patiently(|player| {
            let status = player.subject.status()?;
            let is = match state {
                State::Established => status.established,
                State::Opening => !status.established,
                State::Multipath => status.multipath,
                State::Fallback => !status.multipath,
                State::Closed(how) => status.closed == Some(how),
                State::Open => status.closed.is_none(),
            };
            if is { Ok(()) } else { Err(format!("{status:?}")) }
        })
    }
}

fn shown(got: &Got) -> String {
    match got {
        Got::Bytes(bytes) => format!("{} bytes to read", bytes.len()),
        Got::Nothing => "nothing to read".into(),
        Got::End => "the end of the stream".into(),
        Got::Broken(why) => why.clone(),
    }
}
