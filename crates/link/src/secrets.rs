//! Keys in files that only their owner may read, and random numbers of the system.

use crate::LinkError;
use anabranch_carrier::files::{self, KeyFile};
use anabranch_carrier::{Secret, StaticKey};
use getrandom::SysRng;
use nix::fcntl::OFlag;
use rand_core::{CryptoRng, UnwrapErr};
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Permissions of a file with secrets: its owner reads and writes it.
const MODE: u32 = 0o600;
/// The directory of a service's credentials, which no other user can enter: systemd.exec(5).
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// Bytes of a list of authorised keys: some thousand lines.
const MAX_LEN: usize = 1 << 20;

/// The system's random numbers.
///
/// # Panics
/// When the system has none, which Linux excludes from boot on.
pub fn random() -> impl CryptoRng + Send + 'static {
    UnwrapErr(SysRng)
}

/// An unpredictable seed.
pub fn seed() -> u64 {
    rand_core::Rng::next_u64(&mut random())
}

/// A new key, with its pre-shared key.
pub fn new_key() -> KeyFile {
    let mut rng = random();
    KeyFile { key: StaticKey::new(Secret::random(&mut rng)), preshared: Secret::random(&mut rng) }
}

/// Writes a key to a file that does not exist yet.
///
/// # Errors
/// The file exists, or cannot be made.
pub fn write_key(file: &Path, key: &KeyFile) -> Result<(), LinkError> {
    let failed = || LinkError::system(format!("making {}", file.display()));
    let opened = OpenOptions::new().write(true).create_new(true).mode(MODE).open(file);
    let mut sink = opened.map_err(failed())?;
    let written = sink.write_all(key.text().as_bytes()).and_then(|()| sink.sync_all());
    written.map_err(|error| {
        // Half a key would keep the next one from being made.
        let _ = std::fs::remove_file(file);
        failed()(error)
    })
}

/// The key in a file.
///
/// # Errors
/// Users other than its owner may use the file, it cannot be read, or it is malformed.
pub fn read_key(file: &Path) -> Result<KeyFile, LinkError> {
    let text = read(file)?;
    KeyFile::parse(&text).map_err(|mistake| malformed(file, &mistake))
}

/// The clients in a list of authorised keys.
///
/// # Errors
/// Users other than its owner may use the file, it cannot be read, or it is malformed.
pub fn read_authorized(file: &Path) -> Result<Vec<files::Client>, LinkError> {
    let text = read(file)?;
    files::authorized(&text).map_err(|mistake| malformed(file, &mistake))
}

fn malformed(file: &Path, mistake: &dyn Display) -> LinkError {
    LinkError::Malformed { what: format!("{}: {mistake}", file.display()) }
}

/// The text of a file with secrets.
///
/// # Errors
/// Users other than its owner may use the file, it cannot be read, is longer than 1 MiB, or is no regular file.
pub fn read(file: &Path) -> Result<Zeroizing<String>, LinkError> {
    read_with(file, std::env::var_os(CREDENTIALS).as_deref().map(Path::new))
}

/// Kind and permissions are those of the file that was opened, whatever the name means later.
fn read_with(file: &Path, credentials: Option<&Path>) -> Result<Zeroizing<String>, LinkError> {
    let failed = || LinkError::system(format!("reading {}", file.display()));
    // A pipe without a writer must not keep us waiting.
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(file);
    let source = opened.map_err(failed())?;
    let metadata = source.metadata().map_err(failed())?;
    if !metadata.is_file() {
        return Err(malformed(file, &"no regular file"));
    }
    let mode = metadata.mode() & 0o7777;
    // systemd lends a file to one user by an access control list, whose mask stands in the place of the group.
    let is_credential = credentials.is_some_and(|folder| file.parent() == Some(folder));
    let allowed = if is_credential { MODE | 0o040 } else { MODE };
    if mode & !allowed != 0 {
        return Err(LinkError::Exposed { file: file.display().to_string(), mode });
    }
    // It never grows: growing would leave copies behind that are not overwritten.
    let mut text = Zeroizing::new(String::with_capacity(MAX_LEN + 1));
    source.take(MAX_LEN as u64 + 1).read_to_string(&mut text).map_err(failed())?;
    if text.len() > MAX_LEN {
        return Err(malformed(file, &format_args!("longer than {MAX_LEN} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_read_from_its_file_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let key = new_key();
        write_key(&file, &key).unwrap();
        assert_eq!(File::open(&file).unwrap().metadata().unwrap().mode() & 0o7777, MODE);
        assert_eq!(read_key(&file).unwrap().key.public(), key.key.public());
        assert!(write_key(&file, &new_key()).is_err());
        assert_ne!(new_key().key.public(), key.key.public());
    }

    #[test]
    fn a_file_that_others_may_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authorized");
        write(&file, new_key().authorization("laptop").unwrap().as_bytes()).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o700, 0o4600] {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert!(matches!(read_authorized(&file), Err(LinkError::Exposed { mode: found, .. }) if found == mode));
        }
        for mode in [0o600, 0o400] {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_authorized(&file).unwrap()[0].name, "laptop");
        }
    }

    #[test]
    fn systemd_lends_credentials_with_the_mode_0440() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        write(&file, "text").unwrap();
        for (mode, fits) in [(0o440, true), (0o400, true), (0o460, false), (0o444, false)] {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_with(&file, Some(folder.path())).is_ok(), fits, "{mode:o}");
        }
        set_permissions(&file, Permissions::from_mode(0o440)).unwrap();
        for elsewhere in [None, Some(Path::new("/run/credentials/x"))] {
            assert!(matches!(read_with(&file, elsewhere), Err(LinkError::Exposed { .. })));
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_and_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authorized");
        let line = new_key().authorization("laptop").unwrap();
        for (len, fits) in [(MAX_LEN, true), (MAX_LEN + 1, false), (2 * MAX_LEN, false)] {
            let comment = "#".repeat(len - line.len());
            write(&file, [line.as_str(), &comment].concat()).unwrap();
            set_permissions(&file, Permissions::from_mode(MODE)).unwrap();
            let text = read(&file);
            assert_eq!(text.is_ok(), fits, "{len}");
            match text {
                Ok(text) => assert_eq!((text.len(), text.capacity()), (len, MAX_LEN + 1), "it has not grown"),
                Err(error) => assert!(error.to_string().ends_with("authorized: longer than 1048576 bytes"), "{error}"),
            }
        }
    }

    /// Without a writer a pipe would keep its reader waiting.
    #[test]
    fn a_pipe_and_a_folder_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(MODE)).unwrap();
        for path in [pipe.as_path(), folder.path()] {
            let said = read_key(path).unwrap_err().to_string();
            assert!(said.ends_with(": no regular file"), "{said}");
        }
    }

    #[test]
    fn a_mistake_names_the_file_and_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authorized");
        write(&file, "# one\nx y\n").unwrap();
        set_permissions(&file, Permissions::from_mode(MODE)).unwrap();
        let said = read_authorized(&file).unwrap_err().to_string();
        assert!(said.ends_with("authorized: line 2: 2 words; `PUBLIC PRESHARED NAME` is wanted"), "{said}");
    }
}
