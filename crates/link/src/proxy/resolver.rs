//! Names to addresses, on threads of their own: the system's resolver blocks.

use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Names that are resolved at once, for all clients.
const THREADS: usize = 4;
/// Names that wait for a thread; more are refused.
const WAITING: usize = 256;

/// Resolves a name, once per call.
pub type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// The system's resolver.
pub fn system() -> Lookup {
    Arc::new(|name| Ok((name, 0).to_socket_addrs()?.map(|found| found.ip()).collect()))
}

struct Job {
    token: u64,
    name: String,
    inbox: Sender<Resolved>,
    bell: Arc<EventFd>,
}

/// Threads that resolve names.
#[derive(Clone)]
pub struct Resolver {
    jobs: SyncSender<Job>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// The addresses of a name, or why there are none.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The line that it is for.
    pub token: u64,
    pub found: io::Result<Vec<IpAddr>>,
}

impl Resolver {
    /// Threads that ask `lookup`; they end with the last clone of this.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(lookup: Lookup) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(WAITING);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, lookup) = (queue.clone(), lookup.clone());
            thread::Builder::new().name("resolver".into()).spawn(move || resolve(&queue, &lookup))?;
        }
        Ok(Self { jobs })
    }
}

fn resolve(queue: &Mutex<Receiver<Job>>, lookup: &Lookup) {
    loop {
        // The lock is held while nothing comes, and given on with the first job.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { token, name, inbox, bell }) = job else { return };
        let found = lookup(&name);
        // There is no receiver any more if the client is gone.
        if inbox.send(Resolved { token, found }).is_ok() {
            let _ = bell.write(1);
        }
    }
}

/// One client's names: the answers come back here.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Resolver,
    inbox: Sender<Resolved>,
    found: Receiver<Resolved>,
    bell: Arc<EventFd>,
}

impl Names {
    /// Names for one client.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(resolver: Resolver) -> io::Result<Self> {
        let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let (inbox, found) = channel();
        Ok(Self { resolver, inbox, found, bell: Arc::new(bell) })
    }

    /// Has a name resolved for `token`. False if too many wait.
    pub fn ask(&self, token: u64, name: String) -> bool {
        let job = Job { token, name, inbox: self.inbox.clone(), bell: self.bell.clone() };
        !matches!(self.resolver.jobs.try_send(job), Err(TrySendError::Full(_) | TrySendError::Disconnected(_)))
    }

    /// The next answer.
    pub fn next(&self) -> Option<Resolved> {
        self.found.try_recv().ok()
    }

    /// It is readable when there are answers.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// From now on it is readable with the next answer.
    pub fn hush(&self) {
        let _ = self.bell.read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_slow_name_delays_no_other_and_the_queue_is_bounded() {
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let lookup: Lookup = Arc::new(move |name| match name {
            "slow" => {
                let _ = gate.lock().unwrap().recv_timeout(Duration::from_secs(20));
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => Ok(vec![[192, 0, 2, 1].into()]),
        });
        let names = Names::new(Resolver::start(lookup).unwrap()).unwrap();
        assert!(names.ask(1, "slow".into()) && names.ask(2, "quick".into()));
        let first = names.found.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((first.token, first.found.unwrap()), (2, vec![IpAddr::from([192, 0, 2, 1])]));
        names.hush();
        // All threads are busy, and the queue is full.
        let taken = (0..2 * WAITING as u64).take_while(|n| names.ask(*n, "slow".into())).count();
        assert!((WAITING..=WAITING + THREADS).contains(&taken), "{taken}");
        drop(release);
        assert!(names.found.recv_timeout(Duration::from_secs(20)).unwrap().found.is_err());
    }
}
