//! The two halves of an application: a writer of the pattern, and a reader that verifies it.

use crate::{Fault, Stream, pattern};

/// Writes the pattern from the beginning of its stream on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writer {
    written: u64,
    finished: bool,
}

impl Writer {
    /// Bytes handed over so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Writes up to the offset `until`, as far as there is room. True if all of it is written.
    pub fn write(&mut self, io: &mut dyn Stream, until: u64) -> bool {
        while self.written < until {
            let len = (until - self.written).min(io.writable()).min(pattern::LONGEST as u64) as usize;
            let taken = if len > 0 { io.write(pattern::piece(self.written, len)) } else { 0 };
            self.written += taken as u64;
            if taken == 0 {
                return false;
            }
        }
        true
    }

    /// Ends the stream, once.
    pub fn finish(&mut self, io: &mut dyn Stream) {
        if !self.finished {
            self.finished = true;
            io.finish();
        }
    }
}

/// Reads a stream and verifies that it is the pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reader {
    received: u64,
    ended: bool,
    fault: Option<Fault>,
}

impl Reader {
    /// Bytes read so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The peer has finished, and everything is read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The first fault.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Reads all available data. True if the end has just come.
    pub fn read(&mut self, io: &mut dyn Stream) -> bool {
        while let Some(data) = io.read() {
            if self.fault.is_none() {
                self.fault = pattern::mismatch(self.received, &data).map(|offset| Fault::WrongByte { offset });
            }
            self.received += data.len() as u64;
        }
        let ends = io.read_finished() && !self.ended;
        self.ended |= ends;
        ends
    }

    /// Records a fault if the stream is longer than `len` bytes, or ended before.
    pub fn expect(&mut self, len: u64) {
        let got = self.received;
        if self.fault.is_none() && (got > len || self.ended && got < len) {
            self.fault = Some(Fault::WrongLength { got, expected: len });
        }
    }

    /// Reads all available data of a peer that must send none.
    pub fn refuse(&mut self, io: &mut dyn Stream) {
        self.read(io);
        self.expect(0);
    }
}
