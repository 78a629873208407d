//! Samples a kernel's subflows at regular times.

use super::sock_diag::{SockDiag, SocketInfo};
use crate::{Clock, LabError, Namespace};
use anabranch_run::TcpInfo;
use anabranch_trace::{Event, WindowChange};
use anabranch_units::{Duration, Instant};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// Sockets of a host at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time.
    pub at: Instant,
    /// All open sockets.
    pub sockets: Vec<SocketInfo>,
}

/// A thread inside a namespace that samples until this value is dropped.
#[derive(Debug)]
pub struct Sampler {
    samples: Receiver<Sample>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

/// The sampling interval.
const STEP: std::time::Duration = std::time::Duration::from_millis(50);

impl Sampler {
    /// Starts sampling at once.
    ///
    /// # Errors
    /// The socket or the thread cannot be made.
    pub fn start(namespace: &Namespace, clock: Clock) -> Result<Self, LabError> {
        let opened = namespace.enter(SockDiag::open)?;
        let mut diag = opened.map_err(LabError::system("asking the kernel for its sockets"))?;
        let (tell, samples) = channel();
        let (stop, stopped) = channel();
        let thread = namespace.spawn("sampler", move || {
            while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                // A sample that the kernel refuses is skipped.
                let Ok(sockets) = diag.sockets() else { continue };
                let _ = tell.send(Sample { at: clock.now(), sockets });
            }
        })?;
        Ok(Self { samples, stop: Some(stop), thread: Some(thread) })
    }

    /// The next sample since the last call.
    pub fn poll(&self) -> Option<Sample> {
        self.samples.try_recv().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has no result.
            let _ = thread.join();
        }
    }
}

/// The events between two samples of a subflow, as far as `tcp_info` shows them.
pub fn events(before: Option<&TcpInfo>, now: &TcpInfo) -> Vec<Event> {
    let get = |info: &TcpInfo, name: &str| info.get(name).copied().unwrap_or(0);
    let word = |name: &str| get(now, name).min(u64::from(u32::MAX)) as u32;
    let window = Event::Window(WindowChange {
        cwnd: word("tcpi_snd_cwnd"),
        ssthresh: word("tcpi_snd_ssthresh"),
        in_flight: word("tcpi_unacked"),
        srtt: Duration::from_micros(get(now, "tcpi_rtt")),
        rtt: None,
    });
    let timeouts = get(now, "tcpi_total_rto").saturating_sub(before.map_or(0, |before| get(before, "tcpi_total_rto")));
    std::iter::repeat_n(Event::Timeout { n: 1 }, timeouts as usize).chain([window]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(fields: &[(&str, u64)]) -> TcpInfo {
        fields.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn timeouts_are_counted_once_and_windows_told_each_time() {
        let first = info(&[("tcpi_snd_cwnd", 10), ("tcpi_rtt", 50_000), ("tcpi_total_rto", 1)]);
        let then = info(&[("tcpi_snd_cwnd", 20), ("tcpi_rtt", 60_000), ("tcpi_total_rto", 3)]);
        let timeout = Event::Timeout { n: 1 };
        let (begun, went_on) = (events(None, &first), events(Some(&first), &then));
        assert_eq!((begun.len(), begun[0]), (2, timeout));
        assert_eq!((went_on.len(), went_on[1]), (3, timeout));
        let Event::Window(window) = went_on[2] else { panic!("{went_on:?}") };
        assert_eq!((window.cwnd, window.srtt), (20, Duration::from_millis(60)));
        assert_eq!(events(Some(&then), &then).len(), 1);
    }
}
