//! `anabranch key` as a process: files, permissions, what is printed.

#![cfg(target_os = "linux")]

use assert_cmd::Command;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn key(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).arg("key").args(arguments);
    command
}

fn printed(mut command: Command) -> String {
    String::from_utf8(command.assert().success().stderr("").get_output().stdout.clone()).unwrap()
}

#[test]
fn a_key_is_made_once_and_shown_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let public = printed(key(&["new", "a.key"], folder.path()));
    let file = folder.path().join("a.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(printed(key(&["show", "a.key"], folder.path())), public);
    assert_eq!(public.trim().len(), 44);
    let text = fs::read_to_string(&file).unwrap();
    let secrets: Vec<&str> = text.lines().filter_map(|line| line.split_once(" = ")).map(|(_, value)| value).collect();
    assert!(secrets.len() == 2 && !secrets.contains(&public.trim()));

    let line = printed(key(&["show", "a.key", "--authorize", "laptop"], folder.path()));
    assert_eq!(line, format!("{} {} laptop\n", public.trim(), secrets[1]));
    assert!(!line.contains(secrets[0]), "the private key stays where it is");

    let refused = key(&["new", "a.key"], folder.path()).assert().code(1).stdout("").get_output().stderr.clone();
    assert!(String::from_utf8(refused).unwrap().contains("making a.key"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "no key is overwritten");
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    printed(key(&["new", "a.key"], folder.path()));
    let file = folder.path().join("a.key");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let refused = key(&["show", "a.key"], folder.path()).assert().code(2).stdout("").get_output().stderr.clone();
    let said = String::from_utf8(refused).unwrap();
    assert!(said.contains("mode 0644") && said.contains("chmod 600 a.key"), "{said}");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    printed(key(&["new", "a.key"], folder.path()));
    key(&["show", "a.key", "--authorize", "two words"], folder.path()).assert().code(2).stdout("");
    key(&["show", "none.key"], folder.path()).assert().code(1).stdout("");
    key(&[], folder.path()).assert().code(2).stdout("");
    let file = folder.path().join("a.key");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("preshared", "shared")).unwrap();
    let refused = key(&["show", "a.key"], folder.path()).assert().code(2).stdout("").get_output().stderr.clone();
    let said = String::from_utf8(refused).unwrap();
    assert!(said.contains("a.key: line 3: the names are `private` and `preshared`"), "{said}");
    for secret in text.lines().filter_map(|line| line.split_once(" = ")).map(|(_, value)| value) {
        assert!(!said.contains(secret), "{said}");
    }
}
