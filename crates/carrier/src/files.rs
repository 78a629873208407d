//! The texts of a key file and of a list of authorised keys. Reading the files, and their permissions, is the caller's.

use crate::keys::{PublicKey, Secret, StaticKey};
use core::fmt;
use zeroize::Zeroizing;

/// A host's key, and the pre-shared key that a server must know too.
#[derive(Clone, Debug)]
pub struct KeyFile {
    /// The static key.
    pub key: StaticKey,
    /// Mixed into every handshake of a client with this key.
    pub preshared: Secret,
}

/// A client that a server admits.
#[derive(Clone, Debug)]
pub struct Client {
    /// Static key of the client.
    pub public: PublicKey,
    /// Pre-shared key of the client.
    pub preshared: Secret,
    /// Name in logs: at most 64 letters, digits, `.`, `_`, `-`.
    pub name: String,
}

/// A mistake in one of these texts. It shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The first line is 1; one past the last line if something is missing.
    pub line: usize,
    /// The mistake in words.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl core::error::Error for Mistake {}

/// Lines with something on them but a comment, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

impl KeyFile {
    const PRIVATE: &str = "private";
    const PRESHARED: &str = "preshared";

    /// Reads lines of the form `private = BASE64` and `preshared = BASE64`.
    ///
    /// # Errors
    /// A line is missing, repeated, unknown, or no key.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let (mut private, mut preshared) = (None, None);
        for (line, content) in lines(text) {
            let mistake = |what: String| Mistake { line, what };
            let Some((name, value)) = content.split_once('=') else {
                return Err(mistake("`private = KEY` or `preshared = KEY` is wanted".into()));
            };
            let place = match name.trim() {
                Self::PRIVATE => &mut private,
                Self::PRESHARED => &mut preshared,
                _ => return Err(mistake("the names are `private` and `preshared`".into())),
            };
            if place.is_some() {
                return Err(mistake("this key stands there twice".into()));
            }
            *place = Some(Secret::parse(value.trim()).map_err(|error| mistake(error.to_string()))?);
        }
        let line = text.lines().count() + 1;
        let missing = |name: &str| Mistake { line, what: format!("there is no line `{name} = KEY`") };
        let key = StaticKey::new(private.ok_or_else(|| missing(Self::PRIVATE))?);
        Ok(Self { key, preshared: preshared.ok_or_else(|| missing(Self::PRESHARED))? })
    }

    /// The text that [`Self::parse`] reads. The caller keeps it secret.
    pub fn text(&self) -> Zeroizing<String> {
        const HEAD: &str = "# A key of anabranch: nobody but its host may read it.\n";
        let [private, preshared] = [self.key.secret(), &self.preshared].map(Secret::reveal);
        let parts = [HEAD, Self::PRIVATE, " = ", &private, "\n", Self::PRESHARED, " = ", &preshared, "\n"];
        // `concat` allocates once: a text that grows leaves copies behind.
        Zeroizing::new(parts.concat())
    }

    /// The line that admits this key under `name`, for [`authorized`]. It contains the pre-shared key.
    ///
    /// # Errors
    /// No such name is possible.
    pub fn authorization(&self, name: &str) -> Result<Zeroizing<String>, Mistake> {
        if !is_name(name) {
            return Err(Mistake { line: 1, what: format!("`{}` is no {NAME}", name.escape_default()) });
        }
        let (public, preshared) = (self.key.public().to_string(), self.preshared.reveal());
        Ok(Zeroizing::new([&public, " ", &preshared, " ", name, "\n"].concat()))
    }
}

const NAME: &str = "name: at most 64 letters, digits, `.`, `_` and `-`";

/// A key is no name: its text ends with `=`.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

/// Reads a list of authorised keys: lines of the form `PUBLIC PRESHARED NAME`.
///
/// # Errors
/// A line is malformed, or a key or a name stands there twice.
pub fn authorized(text: &str) -> Result<Vec<Client>, Mistake> {
    let mut clients: Vec<Client> = Vec::new();
    for (line, content) in lines(text) {
        let client = client(content).map_err(|what| Mistake { line, what })?;
        if let Some(other) = clients.iter().find(|other| other.public == client.public || other.name == client.name) {
            return Err(Mistake { line, what: format!("the key or the name is already that of `{}`", other.name) });
        }
        clients.push(client);
    }
    Ok(clients)
}

fn client(line: &str) -> Result<Client, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [public, preshared, name] = words[..] else {
        return Err(format!("{} words; `PUBLIC PRESHARED NAME` is wanted", words.len()));
    };
    if !is_name(name) {
        // The word is not shown: it may be a key in the wrong place.
        return Err(format!("the third word is no {NAME}"));
    }
    let public = PublicKey::parse(public).map_err(|error| format!("the public key: {error}"))?;
    let preshared = Secret::parse(preshared).map_err(|error| format!("the pre-shared key: {error}"))?;
    Ok(Client { public, preshared, name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(byte: u8) -> KeyFile {
        KeyFile { key: StaticKey::new(Secret::new([byte; 32])), preshared: Secret::new([byte + 1; 32]) }
    }

    #[test]
    fn a_key_file_is_read_as_it_is_written() {
        let read = KeyFile::parse(&file(1).text()).unwrap();
        assert_eq!(read.key.public(), file(1).key.public());
        assert_eq!(read.preshared.bytes(), &[2; 32]);
    }

    #[test]
    fn an_authorization_is_a_line_of_the_list() {
        let text =
            format!("# laptops\n\n{}  {}", *file(1).authorization("a").unwrap(), *file(3).authorization("b").unwrap());
        let clients = authorized(&text).unwrap();
        let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(clients[1].public, file(3).key.public());
        assert_eq!(clients[1].preshared.bytes(), &[4; 32]);
    }

    #[test]
    fn mistakes_name_their_line_and_show_no_secret() {
        let line = file(1).authorization("a").unwrap();
        let secret = file(1).preshared.reveal();
        let twice = format!("{}{}", *line, *line);
        let cut = line.replace(secret.as_str(), &secret[1..]);
        for (text, expected) in [
            (twice.as_str(), "line 2: the key or the name is already that of `a`"),
            ("\nx", "line 2: 1 words; `PUBLIC PRESHARED NAME` is wanted"),
            (cut.as_str(), "line 1: the pre-shared key: a key is 32 bytes"),
            (&line.replace(" a\n", " a;rm\n"), "line 1: the third word is no name: at most 64"),
        ] {
            let mistake = authorized(text).unwrap_err().to_string();
            assert!(mistake.starts_with(expected), "{mistake}");
            assert!(!mistake.contains(&secret[1..]), "{mistake}");
        }
        for (text, expected) in [
            ("private = x", "line 1: a key is"),
            ("private", "line 1: `private = KEY`"),
            ("", "line 1: there is no line `private = KEY`"),
            ("public = x", "line 1: the names are"),
        ] {
            let mistake = KeyFile::parse(text).unwrap_err().to_string();
            assert!(mistake.starts_with(expected), "{mistake}");
        }
        let mistake = file(1).authorization("two words").unwrap_err().to_string();
        assert!(mistake.starts_with("line 1: `two words` is no name: at most 64"), "{mistake}");
    }

    #[test]
    fn keys_in_the_wrong_place_are_not_shown() {
        let KeyFile { key, preshared } = file(1);
        let secrets = [key.secret().reveal(), preshared.reveal()];
        let public = key.public();
        let [private, preshared] = secrets.each_ref().map(|secret| secret.as_str());
        for text in [
            file(1).text().as_str(),
            &format!("{public} laptop {preshared}"),
            &format!("laptop {public} {preshared}"),
            &format!("{preshared} {public} {private}"),
            &format!("{public} {preshared} {private} laptop"),
        ] {
            let mistake = authorized(text).unwrap_err().to_string();
            // Neither the whole nor a part: eight characters are 48 bits.
            for secret in [private, preshared] {
                let shown = (0..secret.len() - 8).find(|at| mistake.contains(&secret[*at..at + 8]));
                assert_eq!(shown, None, "{mistake}");
            }
        }
    }
}
