//! Terms that plug-ins and the events of a run share.

/// A name that a plug-in has built in.
pub type Name = &'static str;

/// Why bytes were put on a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum SendKind {
    /// For the first time on the connection.
    First,
    /// Opportunistic retransmission by a scheduler (PR, OR).
    Opportunistic,
    /// After a timeout or the death of the subflow that carried them.
    Rescue,
    /// A redundant copy.
    Copy,
    /// Again on the same subflow: a TCP retransmission.
    Retransmission,
}

/// Loss recovery (RFC 5681, 6675, 8985, 5682), in Linux's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RecoveryPhase {
    /// No loss or reordering.
    #[default]
    Open,
    /// SACKs or duplicate ACKs, no loss marked yet.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// A scheduler's canonical name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SchedulerName {
    /// Without suffix.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::deserialize_name"))]
    pub base: Name,
    /// `+pr`, `+or`, or empty.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::deserialize_name"))]
    pub suffix: Name,
}

impl core::fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}{}", self.base, self.suffix)
    }
}

/// The name of a scheduler's value without the scheduler's: λ is `lambda`, whichever scheduler has it.
pub fn value_name(name: &'static str) -> &'static str {
    name.rsplit_once('.').map_or(name, |(_, value)| value)
}
