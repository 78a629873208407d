//! Names to addresses, on threads of their own: the system's resolver blocks.

use crate::message::Refusal;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::{io, thread};

/// Names that are resolved at once, for all clients.
const THREADS: usize = 8;

/// The share of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Names that are resolved at once.
    pub running: usize,
    /// Names that wait for a thread; more are refused.
    pub waiting: usize,
}

impl Limits {
    /// Limits of a client among others.
    pub const SHARED: Self = Self { running: 2, waiting: 32 };

    /// Limits of the only client, whose programs have at most so many names.
    pub const fn alone(waiting: usize) -> Self {
        Self { running: THREADS, waiting }
    }
}

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

/// The names of one client, until the last has been resolved: who begins a new session begins with the same.
#[derive(Default)]
struct Turn {
    waiting: VecDeque<Job>,
    running: usize,
}

/// Names of all clients. Each client has its turn.
#[derive(Default)]
struct Queue {
    turns: BTreeMap<Ipv4Addr, Turn>,
    /// The client that was served last.
    last: Option<Ipv4Addr>,
    /// No resolver is left.
    over: bool,
}

impl Queue {
    /// The next job, of the next client that may have one more under way.
    fn next(&mut self, running: usize) -> Option<(Ipv4Addr, Job)> {
        let may = |(_, turn): &(&Ipv4Addr, &Turn)| turn.running < running && !turn.waiting.is_empty();
        let after = self.turns.iter().filter(may).find(|(client, _)| self.last.is_none_or(|last| **client > last));
        let client = *after.or_else(|| self.turns.iter().find(may))?.0;
        let turn = self.turns.get_mut(&client)?;
        turn.running += 1;
        self.last = Some(client);
        Some((client, turn.waiting.pop_front()?))
    }

    /// A job of this client is done.
    fn done(&mut self, client: Ipv4Addr) {
        if let Some(turn) = self.turns.get_mut(&client) {
            turn.running -= 1;
            if turn.running == 0 && turn.waiting.is_empty() {
                self.turns.remove(&client);
            }
        }
    }
}

/// The queue, and its news.
type Shared = Arc<(Mutex<Queue>, Condvar)>;

/// Has the threads end.
struct Ending(Shared);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.0.1.notify_all();
    }
}

/// Threads that resolve names.
#[derive(Clone)]
pub struct Resolver {
    shared: Shared,
    limits: Limits,
    _ending: Arc<Ending>,
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
    /// Threads that ask `lookup`, for several clients; they end with the last clone of this.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(lookup: Lookup) -> io::Result<Self> {
        Self::with(lookup, Limits::SHARED)
    }

    /// The same with other limits.
    pub(crate) fn with(lookup: Lookup, limits: Limits) -> io::Result<Self> {
        let shared = Shared::default();
        for _ in 0..THREADS {
            let (shared, lookup) = (shared.clone(), lookup.clone());
            thread::Builder::new().name("resolver".into()).spawn(move || resolve(&shared, limits.running, &lookup))?;
        }
        Ok(Self { _ending: Arc::new(Ending(shared.clone())), limits, shared })
    }
}

fn resolve(shared: &(Mutex<Queue>, Condvar), running: usize, lookup: &Lookup) {
    let news = &shared.1;
    let mut queue = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !queue.over {
        let Some((client, Job { token, name, inbox, bell })) = queue.next(running) else {
            queue = news.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(queue);
        let found = lookup(&name);
        // There is no receiver any more if the client is gone.
        if inbox.send(Resolved { token, found }).is_ok() {
            let _ = bell.write(1);
        }
        queue = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.done(client);
        news.notify_one();
    }
}

/// One client's names: the answers come back here.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Resolver,
    client: Ipv4Addr,
    inbox: Sender<Resolved>,
    found: Receiver<Resolved>,
    bell: Arc<EventFd>,
}

impl Names {
    /// Names for the client with this inner address.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(resolver: Resolver, client: Ipv4Addr) -> io::Result<Self> {
        let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let (inbox, found) = channel();
        Ok(Self { resolver, client, inbox, found, bell: Arc::new(bell) })
    }

    /// Has a name resolved for `token`. False if too many wait.
    pub fn ask(&self, token: u64, name: String) -> bool {
        let (queue, news) = &*self.resolver.shared;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = queue.turns.entry(self.client).or_default();
        let room = turn.waiting.len() < self.resolver.limits.waiting;
        if room {
            turn.waiting.push_back(Job { token, name, inbox: self.inbox.clone(), bell: self.bell.clone() });
            news.notify_one();
        }
        room
    }

    /// The next answer.
    pub fn next(&self) -> Option<Resolved> {
        self.found.try_recv().ok()
    }

    /// A descriptor that is readable when there are answers.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// From now on it is readable with the next answer.
    pub fn hush(&self) {
        let _ = self.bell.read();
    }
}

/// Why a name has no address. The system's resolver gives no kind for a name that is not known.
pub(super) fn unresolved(kind: io::ErrorKind) -> Refusal {
    if kind == io::ErrorKind::TimedOut { Refusal::TimedOut } else { Refusal::NoSuchName }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// As many as there are threads are resolved at once, and all others wait.
    #[test]
    fn a_client_that_is_alone_has_every_thread() {
        let (begun, names) = channel();
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let (begun, count) = (Mutex::new(begun), 1_000);
        let lookup: Lookup = Arc::new(move |_| {
            begun.lock().unwrap().send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            Ok(Vec::new())
        });
        let alone = Names::new(Resolver::with(lookup, Limits::alone(count)).unwrap(), [10, 0, 0, 1].into()).unwrap();
        assert!((0..count as u64).all(|n| alone.ask(n, "slow".into())));
        assert!((0..THREADS).all(|_| names.recv_timeout(Duration::from_secs(20)).is_ok()));
        drop(release);
        assert!((0..count).all(|_| alone.found.recv_timeout(Duration::from_secs(20)).is_ok()));
    }

    #[test]
    fn no_client_keeps_the_names_of_another_from_being_resolved() {
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let lookup: Lookup = Arc::new(move |name| match name {
            "slow" => {
                let _ = gate.lock().unwrap().recv_timeout(Duration::from_secs(20));
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => Ok(vec![[192, 0, 2, 1].into()]),
        });
        let resolver = Resolver::start(lookup).unwrap();
        let client = |n| Names::new(resolver.clone(), [10, 0, 0, n].into()).unwrap();
        let (greedy, other) = (client(1), client(2));
        let taken = (0..1_000).take_while(|n| greedy.ask(*n, "slow".into())).count();
        let Limits { running, waiting } = Limits::SHARED;
        assert!((waiting..=waiting + running).contains(&taken), "{taken}");
        // A new session of the same client has no more.
        assert!((0..1_000).take_while(|n| client(1).ask(*n, "slow".into())).count() <= running);
        assert!(other.ask(7, "quick".into()));
        let first = other.found.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((first.token, first.found.unwrap()), (7, vec![IpAddr::from([192, 0, 2, 1])]));
        other.hush();
        drop(release);
        assert!(greedy.found.recv_timeout(Duration::from_secs(20)).unwrap().found.is_err());
    }
}
