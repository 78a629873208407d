//! Users of a listener that other hosts can reach (RFC 1929).

use anabranch_link::{LinkError, secrets};
use std::collections::BTreeMap;
use std::path::Path;
use zeroize::Zeroizing;

/// Bytes of a user's name or password.
const LONGEST: usize = 255;

/// Users with their passwords.
#[derive(Clone)]
pub struct Credentials {
    users: BTreeMap<Vec<u8>, Zeroizing<Vec<u8>>>,
}

/// Without passwords.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The users in a file that its owner alone may use, `USER:PASSWORD` in each line.
    ///
    /// # Errors
    /// Others may use it, it cannot be read, has no user, or is malformed. No message has a password.
    pub fn read(file: &Path) -> Result<Self, LinkError> {
        let text = secrets::read(file)?;
        let malformed = |what: String| LinkError::Malformed { what: format!("{}: {what}", file.display()) };
        Self::parse(&text).map_err(malformed)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut users = BTreeMap::new();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let fits = |part: &str| (1..=LONGEST).contains(&part.len());
            let parts = line.split_once(':').filter(|(user, password)| fits(user) && fits(password));
            let (user, password) =
                parts.ok_or_else(|| format!("line {} is not USER:PASSWORD, of 255 bytes at most each", n + 1))?;
            if users.insert(user.as_bytes().to_vec(), Zeroizing::new(password.as_bytes().to_vec())).is_some() {
                return Err(format!("line {}: {user} stands there twice", n + 1));
            }
        }
        if users.is_empty() { Err("there is no user".to_owned()) } else { Ok(Self { users }) }
    }

    /// True for a user with this password. The time that it takes says nothing about the password.
    pub fn admit(&self, user: &[u8], password: &[u8]) -> bool {
        let Some(own) = self.users.get(user) else { return false };
        let at = |bytes: &[u8], n| bytes.get(n).copied().unwrap_or_default();
        let differs = (0..LONGEST).fold(0, |differs, n| differs | (at(own, n) ^ at(password, n)));
        std::hint::black_box(differs) == 0 && own.len() == password.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_admitted_with_their_password_alone() {
        let credentials = Credentials::parse("ann:se:cret\nbob:x\n").unwrap();
        assert!(credentials.admit(b"ann", b"se:cret") && credentials.admit(b"bob", b"x"));
        for (user, password) in [("ann", "x"), ("ann", ""), ("ann", "se:cret\0"), ("", ""), ("eve", "x"), ("bob", "xx")]
        {
            assert!(!credentials.admit(user.as_bytes(), password.as_bytes()), "{user}:{password}");
        }
        assert!(!format!("{credentials:?}").contains("cret"));
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        for (text, said) in
            [("", "no user"), ("ann", "line 1"), ("ann:a\n:b", "line 2"), ("ann:a\nann:b", "ann stands there twice")]
        {
            assert!(Credentials::parse(text).unwrap_err().contains(said), "{text}");
        }
        assert!(!Credentials::parse("secret").unwrap_err().contains("secret"));
    }
}
