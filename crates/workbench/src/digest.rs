//! Digests that other programs compute, too.

use sha2::{Digest, Sha256};

/// SHA-256 of `text` in hexadecimal, as `sha256sum` prints it.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
