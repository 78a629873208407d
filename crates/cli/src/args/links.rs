//! Arguments of the commands for real links.

use clap::Subcommand;
use std::path::PathBuf;

pub(super) const KEY_EXAMPLES: &str = "\
Examples:
  anabranch key new laptop.key
  anabranch key show laptop.key
  anabranch key show laptop.key --authorize laptop >> authorized

A key file has a private key and a pre-shared key; only its owner may read it (mode 0600). docs/links.md says how far links go.";

/// `anabranch key`.
#[derive(Debug, Subcommand)]
pub enum KeyAction {
    /// Write a new key to a file, and print its public half
    New {
        /// A file that does not exist yet
        file: PathBuf,
    },
    /// Print the public half of a key
    Show {
        /// The key's file
        file: PathBuf,
        /// Print the line for a server's list of authorised keys instead. The line has the pre-shared key: it is a secret
        #[arg(long, value_name = "NAME")]
        authorize: Option<String>,
    },
}
