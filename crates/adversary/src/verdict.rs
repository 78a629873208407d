//! What may be wrong with a transfer, and how one went.

use anabranch_trace::CloseReason;
use anabranch_units::Instant;
use core::fmt;

/// What was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The code panicked.
    Panic,
    /// An endpoint goes on sending, or its timers go on firing, while time stands still.
    Livelock,
    /// More packets than any transfer of that size needs.
    Storm,
    /// A byte was delivered that was not written there.
    Corrupt,
    /// More was delivered than was written.
    Surplus,
    /// A clean end of stream before all bytes.
    FalseEnd,
    /// A writer was told that all went well, and bytes are missing.
    SilentLoss,
    /// Nothing is under way, no timer runs, and the transfer is not over.
    Stuck,
    /// There is something to read or room to write, and the application is not told.
    Unwoken,
    /// The transfer is not over after hours.
    Late,
    /// The connection ended with an error although nothing gave reason to.
    Error,
    /// A path of the client's was never established although nothing kept it away but a flood.
    ShutOut,
    /// A host holds more bytes than its buffers.
    Memory,
    /// A connection is kept after its end.
    Leak,
    /// A scheduler left data although nothing would call it again.
    Stall,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Livelock => "livelock",
            Self::Storm => "storm",
            Self::Corrupt => "corrupt",
            Self::Surplus => "surplus",
            Self::FalseEnd => "false end",
            Self::SilentLoss => "silent loss",
            Self::Stuck => "stuck",
            Self::Unwoken => "unwoken",
            Self::Late => "late",
            Self::Error => "error",
            Self::ShutOut => "shut out",
            Self::Memory => "memory",
            Self::Leak => "leak",
            Self::Stall => "stall",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A transfer that broke something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub kind: Kind,
    /// When.
    pub at: Instant,
    /// In words.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.kind, self.at, self.text)
    }
}

/// How a transfer went that broke nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets that the hosts sent.
    pub packets: u64,
    /// Bytes that client and server got.
    pub delivered: [u64; 2],
    /// Why client and server ended.
    pub ended: [Option<CloseReason>; 2],
    /// Client and server fell back to plain TCP.
    pub fell_back: [bool; 2],
    /// When it was over.
    pub over: Instant,
    /// One end was left alone, as TCP may leave it, and was ended by its application.
    pub half_open: bool,
}
