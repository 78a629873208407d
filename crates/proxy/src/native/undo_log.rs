//! The changes of a keeper on the machine: each is written down before it is made, so that another can take it back if the keeper is
//! killed.

use super::plan;
use super::system::{Rule, shown};
use anabranch_lab::tool;
use anabranch_link::LinkError;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where records are: gone after a restart of the system, as are the changes.
const FOLDER: &str = "/run/anabranch-native";

/// A switch that was set from 0 to 1: `net.ipv4.conf.INTERFACE.forwarding`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forwarding {
    pub interface: String,
    /// `net.ipv4.ip_forward` at that time. Who changes that one changes all switches.
    pub all: String,
}

/// The changes of one keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UndoLog {
    keeper: u32,
    /// When it began, in ticks of the system's clock: another process may get its number.
    began: u64,
    /// The network namespace.
    namespace: PathBuf,
    pub interfaces: Vec<String>,
    /// The table of nftables.
    pub table: String,
    /// The engine's addresses: each has rules and a routing table.
    pub addresses: Vec<Ipv4Addr>,
    pub forwarding: Vec<Forwarding>,
}

/// The switch of an interface.
fn switch(interface: &str) -> PathBuf {
    ["/proc/sys/net/ipv4/conf", interface, "forwarding"].iter().collect()
}

/// Whether an interface forwards; `None` if there is none of that name.
pub(super) fn forwards(interface: &str) -> Option<bool> {
    Some(fs::read_to_string(switch(interface)).ok()?.trim() == "1")
}

/// Switches forwarding on.
pub(super) fn set_forwarding(interface: &str) -> Result<(), LinkError> {
    let file = switch(interface);
    fs::write(&file, "1").map_err(LinkError::system(format!("setting {}", file.display())))
}

/// `net.ipv4.ip_forward`
pub(super) fn all_forward() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap_or_default()
}

fn namespace() -> Result<PathBuf, LinkError> {
    let own = "/proc/thread-self/ns/net";
    fs::read_link(own).map_err(LinkError::system(format!("reading {own}")))
}

/// When a process began; `None` if there is none, or it has ended and was not reaped yet. proc_pid_stat(5): behind the name in brackets
/// stands the state, and 19 fields later the beginning.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    fields.next().filter(|state| !["Z", "X"].contains(state))?;
    fields.nth(18)?.parse().ok()
}

/// The folder, which root alone may write to: what stands in records is done as root.
fn folder() -> Result<&'static Path, LinkError> {
    let folder = Path::new(FOLDER);
    let failed = || LinkError::system(format!("making {FOLDER}"));
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed()(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(folder).map_err(failed())?;
    if !found.is_dir() || found.uid() != 0 || found.mode() & 0o022 != 0 {
        let what = format!("{FOLDER} is no directory of root's alone");
        return Err(LinkError::Network { what, help: Some(format!("remove it: `rm -r {FOLDER}`")) });
    }
    Ok(folder)
}

impl UndoLog {
    /// The record of this process, which has changed nothing yet.
    pub fn new(interfaces: Vec<String>, addresses: Vec<Ipv4Addr>) -> Result<Self, LinkError> {
        let keeper = std::process::id();
        let (began, namespace) = (began(keeper).unwrap_or_default(), namespace()?);
        let table = format!("anabranch-{keeper}");
        Ok(Self { keeper, began, namespace, interfaces, table, addresses, forwarding: Vec::new() })
    }

    fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{}.json", self.keeper))
    }

    /// Lets one keeper at a time look at the records and write its own. The system lets the next one in when the file is closed, even
    /// if its keeper is killed.
    pub fn lock() -> Result<File, LinkError> {
        let path = folder()?.join("lock");
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        locked.map_err(LinkError::system(format!("locking {}", path.display())))
    }

    /// Writes it down, in the place of the one before.
    pub fn save(&self) -> Result<(), LinkError> {
        let path = folder()?.join(format!("{}.json", self.keeper));
        let new = path.with_extension("new");
        let text = serde_json::to_vec(self).unwrap_or_default();
        let written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).and_then(|mut file| {
                file.set_permissions(Permissions::from_mode(0o600))?;
                file.write_all(&text)
            });
        let named = written.and_then(|()| fs::rename(&new, &path));
        named.map_err(LinkError::system(format!("writing {}", path.display())))
    }

    /// The record's keeper is at work.
    fn is_kept(&self) -> bool {
        began(self.keeper) == Some(self.began)
    }

    /// Takes back what keepers left that were killed, in this network namespace.
    ///
    /// # Errors
    /// Something cannot be taken back; or a keeper that is at work uses one of these interfaces.
    pub fn clear(interfaces: &[String]) -> Result<(), LinkError> {
        let own = namespace()?;
        let listed = fs::read_dir(folder()?).map_err(LinkError::system(format!("reading {FOLDER}")))?;
        for path in listed.flatten().map(|entry| entry.path()) {
            // A namespace that is gone took its network with it; of one that lives, its own next start takes care.
            if let Some(log) = Self::read(&path).filter(|log| log.namespace == own) {
                log.give_way(interfaces)?;
            } else if is_unfinished(&path) {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    fn read(path: &Path) -> Option<Self> {
        path.extension().filter(|extension| *extension == "json")?;
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn give_way(&self, interfaces: &[String]) -> Result<(), LinkError> {
        if !self.is_kept() {
            return if self.is_here()? { self.undo() } else { self.forget() };
        }
        let Some(used) = self.interfaces.iter().find(|name| interfaces.contains(name)) else { return Ok(()) };
        let what = format!("{used} is in use by another proxy or server (its keeper is process {})", self.keeper);
        Err(LinkError::Network { what, help: Some("end it first, or name other interfaces".to_owned()) })
    }

    /// Takes everything back, however much of it was done. What fails keeps nothing else from being taken back, but for the table: it is
    /// made first and deleted last.
    pub fn undo(&self) -> Result<(), LinkError> {
        let switches = self.forwarding.iter().map(restore).fold(Ok(()), Result::and);
        self.remove_rules().and(switches)?;
        if self.has_table()? {
            tool::run("nft", &["delete", "table", "inet", &self.table], "")?;
        }
        self.forget()
    }

    fn forget(&self) -> Result<(), LinkError> {
        let path = self.path();
        fs::remove_file(&path).map_err(LinkError::system(format!("removing {}", path.display())))
    }

    /// Something of it is in this namespace. If not, nothing was done, or that was in another one: numbers of namespaces are given again.
    /// The table alone does not decide: who flushes all rules of nftables removes it.
    fn is_here(&self) -> Result<bool, LinkError> {
        Ok(self.has_table()? || self.ruled()?.is_some())
    }

    /// The table of nftables is there.
    pub fn has_table(&self) -> Result<bool, LinkError> {
        let own = format!("table inet {}", self.table);
        Ok(tool::run("nft", &["list", "tables", "inet"], "")?.lines().any(|line| line.trim() == own))
    }

    /// An address that has policy rules.
    fn ruled(&self) -> Result<Option<Ipv4Addr>, LinkError> {
        let rules: Vec<Rule> = shown(&["rule", "show"])?;
        let own = |address: &Ipv4Addr| Some(plan::table(*address).to_string());
        Ok(self.addresses.iter().copied().find(|address| rules.iter().any(|rule| rule.table == own(address))))
    }

    /// Missing rules and tables are no failure; those that remain are.
    fn remove_rules(&self) -> Result<(), LinkError> {
        let script: String = self.addresses.iter().copied().map(plan::removal).collect();
        let _ = tool::run("ip", &["-4", "-force", "-batch", "-"], &script);
        match self.ruled()? {
            Some(address) => {
                Err(LinkError::Network { what: format!("the policy rules of {address} cannot be removed"), help: None })
            }
            None => Ok(()),
        }
    }
}

/// A record that was being written when its keeper was killed; the one before counts.
fn is_unfinished(path: &Path) -> bool {
    let keeper = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
    path.extension().is_some_and(|extension| extension == "new") && keeper.and_then(began).is_none()
}

/// Switches forwarding off again, unless that of all interfaces was changed meanwhile.
fn restore(Forwarding { interface, all }: &Forwarding) -> Result<(), LinkError> {
    let file = switch(interface);
    if *all != all_forward() {
        return Ok(());
    }
    match fs::write(&file, "0") {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(LinkError::system(format!("setting {}", file.display()))(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper that was killed together with its proxy, in a container whose first process reaps no other.
    #[test]
    fn a_keeper_that_was_not_reaped_is_at_work_no_more() {
        use nix::sys::wait::{Id, WaitPidFlag, waitid};
        let mut keeper = std::process::Command::new("true").spawn().unwrap();
        let id = Id::Pid(nix::unistd::Pid::from_raw(keeper.id() as i32));
        waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(Path::new(&format!("/proc/{}/stat", keeper.id())).exists(), "it is a zombie");
        assert_eq!(began(keeper.id()), None);
        keeper.wait().unwrap();
    }

    #[test]
    fn a_process_that_got_the_number_of_another_is_another() {
        let log = UndoLog::new(vec!["wlan0".into()], Vec::new()).unwrap();
        assert!(log.is_kept());
        assert!(!UndoLog { began: log.began + 1, ..log.clone() }.is_kept());
        assert!(!UndoLog { keeper: u32::MAX, ..log.clone() }.is_kept());
        let used = log.give_way(&["wlan0".into()]).unwrap_err().to_string();
        assert!(used.starts_with("wlan0 is in use by another proxy"), "{used}");
        assert!(log.give_way(&["usb0".into()]).is_ok());
        let text = serde_json::to_vec(&log).unwrap();
        assert_eq!(serde_json::from_slice::<UndoLog>(&text).unwrap(), log);
    }
}
