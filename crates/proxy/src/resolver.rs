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
pub(crate) struct LookupLimits {
    /// Names that are resolved at once.
    pub running: usize,
    /// Names that wait for a thread; more are refused.
    pub waiting: usize,
}

impl LookupLimits {
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

struct LookupJob {
    token: u64,
    name: String,
    inbox: Sender<Resolved>,
    wakeup: Arc<EventFd>,
}

/// The names of one client, until the last has been resolved: who begins a new session begins with the same.
#[derive(Default)]
struct ClientQueue {
    waiting: VecDeque<LookupJob>,
    running: usize,
}

/// Names of all clients. Each client has its turn.
#[derive(Default)]
struct LookupQueue {
    clients: BTreeMap<Ipv4Addr, ClientQueue>,
    /// The client that was served last.
    last: Option<Ipv4Addr>,
    /// No resolver is left.
    over: bool,
}

impl LookupQueue {
    /// The next job, of the next client that may have one more under way.
    fn next(&mut self, running: usize) -> Option<(Ipv4Addr, LookupJob)> {
        let may = |(_, client_queue): &(&Ipv4Addr, &ClientQueue)| {
            client_queue.running < running && !client_queue.waiting.is_empty()
        };
        let after = self.clients.iter().filter(may).find(|(client, _)| self.last.is_none_or(|last| **client > last));
        let client = *after.or_else(|| self.clients.iter().find(may))?.0;
        let client_queue = self.clients.get_mut(&client)?;
        client_queue.running += 1;
        self.last = Some(client);
        Some((client, client_queue.waiting.pop_front()?))
    }

    /// A job of this client is done.
    fn done(&mut self, client: Ipv4Addr) {
        if let Some(client_queue) = self.clients.get_mut(&client) {
            client_queue.running -= 1;
            if client_queue.running == 0 && client_queue.waiting.is_empty() {
                self.clients.remove(&client);
            }
        }
    }
}

/// The queue, and its news.
type Shared = Arc<(Mutex<LookupQueue>, Condvar)>;

/// Has the threads end.
struct Shutdown(Shared);

impl Drop for Shutdown {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.0.1.notify_all();
    }
}

/// Threads that resolve names.
#[derive(Clone)]
pub struct Resolver {
    shared: Shared,
    limits: LookupLimits,
    _shutdown: Arc<Shutdown>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// The addresses of a name, or why there are none.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The flow that it is for.
    pub token: u64,
    pub found: io::Result<Vec<IpAddr>>,
}

impl Resolver {
    /// Threads that ask `lookup`, for several clients; they end with the last clone of this.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(lookup: Lookup) -> io::Result<Self> {
        Self::with(lookup, LookupLimits::SHARED)
    }

    /// The same with other limits.
    pub(crate) fn with(lookup: Lookup, limits: LookupLimits) -> io::Result<Self> {
        let shared = Shared::default();
        for _ in 0..THREADS {
            let (shared, lookup) = (shared.clone(), lookup.clone());
            thread::Builder::new().name("resolver".into()).spawn(move || resolve(&shared, limits.running, &lookup))?;
        }
        Ok(Self { _shutdown: Arc::new(Shutdown(shared.clone())), limits, shared })
    }
}

fn resolve(shared: &(Mutex<LookupQueue>, Condvar), running: usize, lookup: &Lookup) {
    let news = &shared.1;
    let mut queue = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !queue.over {
        let Some((client, LookupJob { token, name, inbox, wakeup })) = queue.next(running) else {
            queue = news.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(queue);
        let found = lookup(&name);
        // There is no receiver any more if the client is gone.
        if inbox.send(Resolved { token, found }).is_ok() {
            let _ = wakeup.write(1);
        }
        queue = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.done(client);
        news.notify_one();
    }
}

/// One client's names: the answers come back here.
#[derive(Debug)]
pub(crate) struct NameLookups {
    resolver: Resolver,
    client: Ipv4Addr,
    inbox: Sender<Resolved>,
    found: Receiver<Resolved>,
    wakeup: Arc<EventFd>,
}

impl NameLookups {
    /// Names for the client with this inner address.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(resolver: Resolver, client: Ipv4Addr) -> io::Result<Self> {
        let wakeup = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let (inbox, found) = channel();
        Ok(Self { resolver, client, inbox, found, wakeup: Arc::new(wakeup) })
    }

    /// Has a name resolved for `token`. False if too many wait.
    pub fn ask(&self, token: u64, name: String) -> bool {
        let (queue, news) = &*self.resolver.shared;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let client_queue = queue.clients.entry(self.client).or_default();
        let room = client_queue.waiting.len() < self.resolver.limits.waiting;
        if room {
            client_queue.waiting.push_back(LookupJob {
                token,
                name,
                inbox: self.inbox.clone(),
                wakeup: self.wakeup.clone(),
            });
            news.notify_one();
        }
        room
    }

    /// The next answer.
    pub fn next(&self) -> Option<Resolved> {
        self.found.try_recv().ok()
    }

    /// A descriptor that is readable when there are answers.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// From now on it is readable with the next answer.
    pub fn clear_wakeup(&self) {
        let _ = self.wakeup.read();
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
        let (begun, lookups) = channel();
        let (release, latch) = channel::<()>();
        let latch = Mutex::new(latch);
        let (begun, count) = (Mutex::new(begun), 1_000);
        let lookup: Lookup = Arc::new(move |_| {
            begun.lock().unwrap().send(()).unwrap();
            let _ = latch.lock().unwrap().recv();
            Ok(Vec::new())
        });
        let alone = NameLookups::new(Resolver::with(lookup, LookupLimits::alone(count)).unwrap(), [10, 0, 0, 1].into())
            .unwrap();
        assert!((0..count as u64).all(|n| alone.ask(n, "slow".into())));
        assert!((0..THREADS).all(|_| lookups.recv_timeout(Duration::from_secs(20)).is_ok()));
        drop(release);
        assert!((0..count).all(|_| alone.found.recv_timeout(Duration::from_secs(20)).is_ok()));
    }

    #[test]
    fn no_client_keeps_the_names_of_another_from_being_resolved() {
        let (release, latch) = channel::<()>();
        let latch = Mutex::new(latch);
        let lookup: Lookup = Arc::new(move |name| match name {
            "slow" => {
                let _ = latch.lock().unwrap().recv_timeout(Duration::from_secs(20));
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => Ok(vec![[192, 0, 2, 1].into()]),
        });
        let resolver = Resolver::start(lookup).unwrap();
        let client = |n| NameLookups::new(resolver.clone(), [10, 0, 0, n].into()).unwrap();
        let (greedy, other) = (client(1), client(2));
        let taken = (0..1_000).take_while(|n| greedy.ask(*n, "slow".into())).count();
        let LookupLimits { running, waiting } = LookupLimits::SHARED;
        assert!((waiting..=waiting + running).contains(&taken), "{taken}");
        // A new session of the same client has no more.
        assert!((0..1_000).take_while(|n| client(1).ask(*n, "slow".into())).count() <= running);
        assert!(other.ask(7, "quick".into()));
        let first = other.found.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((first.token, first.found.unwrap()), (7, vec![IpAddr::from([192, 0, 2, 1])]));
        other.clear_wakeup();
        drop(release);
        assert!(greedy.found.recv_timeout(Duration::from_secs(20)).unwrap().found.is_err());
    }
}
