//! Digests that other programs compute, too.

use sha2::{Digest, Sha256};

/// SHA-256 of a text in hexadecimal, as `sha256sum` prints it.
pub fn sha256(text: impl AsRef<[u8]>) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
