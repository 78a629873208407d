//! Arguments of `anabranch playground`.

use clap::Args;
use std::path::PathBuf;

pub(super) const PLAYGROUND_EXAMPLES: &str = "\
Examples:
  anabranch playground --open
  anabranch playground --port 8080
  anabranch playground --out site

The page runs the simulator in the browser. The server accepts connections from this machine only, until Ctrl-C. `--out` writes the same files \
as a static site, which any web server can serve. docs/playground.md says what the page shows.";

/// `anabranch playground`.
#[derive(Debug, Args)]
pub struct PlaygroundArguments {
    /// TCP port on 127.0.0.1; 0 = any free port
    #[arg(long, value_name = "PORT", default_value_t = 8686)]
    pub port: u16,
    /// Open the page in a browser
    #[arg(long, conflicts_with = "out")]
    pub open: bool,
    /// Write the files of the site into a new directory, and serve nothing
    #[arg(long, value_name = "DIR", conflicts_with = "port")]
    pub out: Option<PathBuf>,
}
