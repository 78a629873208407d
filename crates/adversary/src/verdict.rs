//! The properties that a transfer may break, and its outcome.

use anabranch_trace::CloseReason;
use anabranch_units::Instant;
use core::fmt;

/// The property that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The code panicked.
    Panic,
    /// An endpoint keeps sending, or its timers keep firing, while time stands still.
    Livelock,
    /// More packets than any transfer of that size needs.
    Storm,
    /// A byte was delivered that was not written there.
    Corrupt,
    /// More bytes were delivered than written.
    Surplus,
    /// A clean end of stream before all bytes.
    FalseEnd,
    /// A writer's connection ended without error, and bytes are missing.
    SilentLoss,
    /// No packet is under way, no timer runs, and the transfer is not over.
    Stuck,
    /// There is data to read or room to write, and no event announced it.
    Unwoken,
    /// The transfer is not over after hours.
    Late,
    /// The connection ended with an error that no event of the case explains.
    Error,
    /// A client's path was never established, although only a flood delayed it.
    ShutOut,
    /// A host holds more bytes than its buffers.
    Memory,
    /// A connection is kept after its end.
    Leak,
    /// A scheduler left data waiting without a future call.
    Stall,
}

impl Kind {
    /// Name in tables.
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

/// A transfer that broke a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The property.
    pub kind: Kind,
    /// The virtual time.
    pub at: Instant,
    /// A description.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.kind, self.at, self.text)
    }
}

/// The outcome of a transfer that broke no property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets that the hosts sent.
    pub packets: u64,
    /// Bytes that client and server received.
    pub delivered: [u64; 2],
    /// Why the connection ended at client and server.
    pub ended: [Option<CloseReason>; 2],
    /// Client and server fell back to plain TCP.
    pub fell_back: [bool; 2],
    /// The virtual time of the end.
    pub over: Instant,
    /// One end remained half-open, as TCP permits, and its application ended it.
    pub half_open: bool,
}
