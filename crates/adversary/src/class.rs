//! The classes of cases. They differ in the changes that the man in the middle may make, and so in the properties that
//! must hold.

use core::fmt;

/// A class of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Packets are lost, delayed, duplicated.
    Benign,
    /// Plain TCP, otherwise as [`Self::Benign`].
    Plain,
    /// Packets are split and coalesced, as offload engines do.
    Segments,
    /// Addresses, ports and sequence numbers are translated; TCP options and ADD_ADDR are dropped; windows are held
    /// small for a time.
    Nat,
    /// MPTCP options are removed; MP_CAPABLE has other flags or another version.
    Options,
    /// Payload is changed, with checksums on.
    Payload,
    /// Payload is changed on one of several paths, with checksums on.
    PayloadOnePath,
    /// Paths go dark and come back.
    Blackout,
    /// The applications make every call of the API; the network is benign.
    App,
    /// Segments forged by an attacker off the path: they must have no effect.
    Guess,
    /// Segments forged by an attacker on the path, and options changed at random.
    Forge,
    /// SYNs from spoofed addresses, joins that are never completed, stray segments.
    Floods,
    /// Several paths race for the first subflow; packets are lost and some paths are dark.
    Race,
    /// All MPTCP options are removed, by path, direction and position.
    Strip,
    /// Windows of at most 16 KiB, with fallbacks: options removed at random, payload changed.
    Tiny,
    /// Applications abort and reset paths, and resets, challenges and data are lost.
    Resets,
    /// A hundred thousand segments and more are under way; queues are short.
    Wide,
    /// ECN is on, and its marks and flags are cleared or set.
    Bleach,
    /// Paths drop packets above a size; routers say so, or are silent, or others forge their messages.
    Mtu,
    /// Pauses of minutes to weeks, around the wraps of clocks and sequence numbers, or round trips of up to two minutes.
    Clock,
}

/// The property that must hold of delivered bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// They equal the bytes written.
    Intact,
    /// They equal the bytes written, unless the connection has fallen back to plain TCP, which has no checksum of its
    /// own.
    IntactUntilFallback,
    /// None: a forger who knows all numbers can insert any byte.
    Anything,
}

impl Class {
    /// Every class, in the order of tables.
    pub const ALL: [Self; 20] = [
        Self::Benign,
        Self::Plain,
        Self::Segments,
        Self::Nat,
        Self::Options,
        Self::Payload,
        Self::PayloadOnePath,
        Self::Blackout,
        Self::App,
        Self::Guess,
        Self::Forge,
        Self::Floods,
        Self::Race,
        Self::Strip,
        Self::Tiny,
        Self::Resets,
        Self::Wide,
        Self::Bleach,
        Self::Mtu,
        Self::Clock,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Benign => "benign",
            Self::Plain => "plain",
            Self::Segments => "segments",
            Self::Nat => "nat",
            Self::Options => "options",
            Self::Payload => "payload",
            Self::PayloadOnePath => "payload-one-path",
            Self::Blackout => "blackout",
            Self::App => "app",
            Self::Guess => "guess",
            Self::Forge => "forge",
            Self::Floods => "floods",
            Self::Race => "race",
            Self::Strip => "strip",
            Self::Tiny => "tiny",
            Self::Resets => "resets",
            Self::Wide => "wide",
            Self::Bleach => "bleach",
            Self::Mtu => "mtu",
            Self::Clock => "clock",
        }
    }

    /// The class with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    pub(crate) fn bytes(self) -> Bytes {
        match self {
            Self::Payload | Self::PayloadOnePath | Self::Tiny => Bytes::IntactUntilFallback,
            Self::Forge => Bytes::Anything,
            _ => Bytes::Intact,
        }
    }

    /// No event of this class is a reason to give up, as long as the outages are short; some cases of `Strip` and `Mtu`
    /// are one.
    pub(crate) fn must_complete(self) -> bool {
        use Class::*;
        match self {
            Benign | Plain | Segments | Nat | Blackout | App | Guess | Floods | Race => true,
            Strip | Wide | Bleach | Mtu | Clock => true,
            Options | Payload | PayloadOnePath | Forge | Tiny | Resets => false,
        }
    }

    /// At least one side requires DSS checksums.
    pub(crate) fn needs_checksums(self) -> bool {
        matches!(self, Self::Payload | Self::PayloadOnePath | Self::Tiny)
    }

    /// Most packets of a case. Far more than 100,000 segments must leave before so many are under way.
    pub(crate) fn most_packets(self) -> u64 {
        if self == Self::Wide { 3_000_000 } else { 150_000 }
    }

    /// Most packets that one call may produce.
    pub(crate) fn most_at_once(self) -> u32 {
        if self == Self::Wide { 500_000 } else { 20_000 }
    }

    /// The bytes that a host holds are counted.
    pub(crate) fn counts_memory(self) -> bool {
        matches!(self, Self::Guess | Self::Forge | Self::Floods)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
