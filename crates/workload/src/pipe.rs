//! Connections without a network, for tests.

use crate::Stream;
use anabranch_units::Instant;
use bytes::Bytes;
use std::collections::VecDeque;

/// A connection without a network: one end reads the bytes that it writes. Accepts `per_write` bytes at once.
#[derive(Default)]
pub struct Pipe {
    pub buffer: VecDeque<Bytes>,
    pub held: u64,
    pub room: u64,
    pub per_write: usize,
    pub messages: Vec<u64>,
    pub finished: u32,
}

impl Pipe {
    pub fn new(room: u64, per_write: usize) -> Self {
        Self { room, per_write, ..Self::default() }
    }
}

impl Stream for Pipe {
    fn begin_message(&mut self, len: u64, _: Option<Instant>) {
        self.messages.push(len);
    }
    fn write(&mut self, mut data: Bytes) -> usize {
        assert!(self.finished == 0 && data.len() as u64 <= self.room - self.held, "more than there is room for");
        data.truncate(self.per_write);
        self.held += data.len() as u64;
        self.buffer.push_back(data.clone());
        data.len()
    }
    fn writable(&self) -> u64 {
        self.room - self.held
    }
    fn finish(&mut self) {
        self.finished += 1;
    }
    fn read(&mut self) -> Option<Bytes> {
        let data = self.buffer.pop_front()?;
        self.held -= data.len() as u64;
        Some(data)
    }
    fn read_finished(&self) -> bool {
        self.finished > 0 && self.buffer.is_empty()
    }
}

/// Two pipes, one per direction, as one end sees them.
pub struct Both<'a>(pub &'a mut Pipe, pub &'a mut Pipe);

impl Stream for Both<'_> {
    fn begin_message(&mut self, len: u64, deadline: Option<Instant>) {
        self.0.begin_message(len, deadline);
    }
    fn write(&mut self, data: Bytes) -> usize {
        self.0.write(data)
    }
    fn writable(&self) -> u64 {
        self.0.writable()
    }
    fn finish(&mut self) {
        self.0.finish();
    }
    fn read(&mut self) -> Option<Bytes> {
        self.1.read()
    }
    fn read_finished(&self) -> bool {
        self.1.read_finished()
    }
}
