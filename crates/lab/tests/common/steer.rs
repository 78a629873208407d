//! An application that a test steers while it runs, the same on an engine's connection and on a kernel's socket.

use anabranch_units::{Duration, Instant};
use anabranch_workload::{Fault, Stream, Workload, pattern};
use std::sync::{Arc, Mutex, MutexGuard};

/// The interval at which it checks for new requests.
const LOOK: Duration = Duration::from_millis(5);

/// The requests so far, and the progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Writes up to this offset.
    pub to_write: u64,
    /// Finishes after that.
    pub to_finish: bool,
    /// Reads up to this offset at least.
    pub to_read: u64,
    pub established: bool,
    pub written: u64,
    pub finished: bool,
    pub received: u64,
    /// The peer has finished, and all of it was read.
    pub ended: bool,
    /// The first byte that differs from the peer's.
    pub fault: Option<Fault>,
    /// Wrong bytes do not stop it.
    pub tolerant: bool,
}

/// The test's handle on an application; clones share it.
#[derive(Clone, Debug)]
pub struct Steer(Arc<Mutex<Progress>>);

impl Steer {
    /// Writes nothing, reads everything, finishes on request.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Progress {
            to_write: 0,
            to_finish: false,
            to_read: u64::MAX,
            established: false,
            written: 0,
            finished: false,
            received: 0,
            ended: false,
            fault: None,
            tolerant: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().expect("no application panics")
    }

    /// The progress.
    pub fn progress(&self) -> Progress {
        *self.lock()
    }

    /// Writes `bytes` more.
    pub fn send(&self, bytes: u64) {
        self.lock().to_write += bytes;
    }

    /// Finishes after the bytes requested so far.
    pub fn finish(&self) {
        self.lock().to_finish = true;
    }

    /// Reads about `bytes` more and then nothing: the rest stays in the receive buffer.
    pub fn read_only(&self, bytes: u64) {
        let mut progress = self.lock();
        progress.to_read = progress.received + bytes;
    }

    /// Reads everything again.
    pub fn read_all(&self) {
        self.lock().to_read = u64::MAX;
    }

    /// Wrong bytes are only recorded.
    pub fn tolerate_faults(&self) {
        self.lock().tolerant = true;
    }

    /// The workload for a host.
    pub fn workload(&self) -> Box<dyn Workload> {
        Box::new(Steered { steer: self.clone(), next: Instant::ZERO })
    }
}

#[derive(Debug)]
struct Steered {
    steer: Steer,
    next: Instant,
}

impl Steered {
    fn go_on(&mut self, now: Instant, io: &mut dyn Stream) {
        let mut progress = self.steer.lock();
        write(&mut progress, io);
        read(&mut progress, io);
        self.next = now + LOOK;
    }
}

fn write(progress: &mut Progress, io: &mut dyn Stream) {
    while progress.written < progress.to_write && !progress.finished {
        let left = (progress.to_write - progress.written).min(pattern::LONGEST as u64).min(io.writable());
        let taken = if left > 0 { io.write(pattern::piece(progress.written, left as usize)) } else { 0 };
        progress.written += taken as u64;
        if taken == 0 {
            return;
        }
    }
    if progress.to_finish && !progress.finished {
        progress.finished = true;
        io.finish();
    }
}

fn read(progress: &mut Progress, io: &mut dyn Stream) {
    while progress.received < progress.to_read
        && let Some(data) = io.read()
    {
        let wrong = pattern::mismatch(progress.received, &data);
        progress.fault = progress.fault.or(wrong.map(|offset| Fault::WrongByte { offset }));
        progress.received += data.len() as u64;
    }
    progress.ended |= io.read_finished();
}

impl Workload for Steered {
    fn on_established(&mut self, now: Instant, io: &mut dyn Stream) {
        self.steer.lock().established = true;
        self.go_on(now, io);
    }

    fn on_writable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn on_readable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn on_wakeup(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn is_done(&self) -> bool {
        let progress = self.steer.lock();
        progress.finished && progress.ended
    }

    fn fault(&self) -> Option<Fault> {
        let progress = self.steer.lock();
        progress.fault.filter(|_| !progress.tolerant)
    }
}
