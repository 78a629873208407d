//! Named options, and their removal from a segment.

use anabranch_wire::{Dss, MptcpOption, Options, SackBlock, Segment};

/// Declares [`OptionKind`] with the name of each kind.
macro_rules! option_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A kind of option that a box may remove.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OptionKind {
            $($(#[$doc])* $kind,)*
        }

        impl OptionKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];
            /// Their names as scenario files write them, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),*];
        }
    };
}

option_kinds! {
    /// All options of Multipath TCP.
    Mptcp = "mptcp",
    /// MP_CAPABLE.
    Capable = "mp-capable",
    /// MP_JOIN.
    Join = "mp-join",
    /// DSS.
    Dss = "dss",
    /// The mapping of a DSS.
    Mapping = "mapping",
    /// ADD_ADDR.
    AddAddr = "add-addr",
    /// REMOVE_ADDR.
    RemoveAddr = "remove-addr",
    /// MP_PRIO.
    Prio = "mp-prio",
    /// MP_FAIL.
    Fail = "mp-fail",
    /// MP_FASTCLOSE.
    FastClose = "mp-fastclose",
    /// MP_TCPRST.
    TcpRst = "mp-tcprst",
    /// SACK-permitted.
    SackPermitted = "sack-permitted",
    /// SACK blocks.
    Sack = "sack",
    /// Timestamps.
    Timestamps = "timestamps",
    /// Window scale.
    WindowScale = "window-scale",
    /// Maximum segment size.
    Mss = "mss",
}

/// A set of kinds of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionSet(u32);

impl From<OptionKind> for OptionSet {
    fn from(kind: OptionKind) -> Self {
        Self::default().with(kind)
    }
}

impl OptionSet {
    /// The set with one more kind.
    #[must_use]
    pub const fn with(self, kind: OptionKind) -> Self {
        Self(self.0 | 1 << kind as u32)
    }

    /// Whether it has this kind; the set of all of Multipath TCP has each of its options.
    pub const fn has(self, kind: OptionKind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds in it.
    pub fn iter(self) -> impl Iterator<Item = OptionKind> {
        OptionKind::ALL.iter().copied().filter(move |kind| self.has(*kind))
    }

    /// Whether a segment has one of the options.
    pub fn is_on(self, segment: &Segment) -> bool {
        !self.is_empty() && sift(&segment.options, &|kind| !self.has(kind), &|block| block) != segment.options
    }
}

/// The kind of an MPTCP option other than DSS.
const fn kind_of(option: &MptcpOption) -> OptionKind {
    match option {
        MptcpOption::Capable(_) => OptionKind::Capable,
        MptcpOption::Join(_) => OptionKind::Join,
        MptcpOption::AddAddr(_) => OptionKind::AddAddr,
        MptcpOption::RemoveAddr(_) => OptionKind::RemoveAddr,
        MptcpOption::Prio { .. } => OptionKind::Prio,
        MptcpOption::Fail { .. } => OptionKind::Fail,
        MptcpOption::FastClose { .. } => OptionKind::FastClose,
        MptcpOption::TcpRst(_) => OptionKind::TcpRst,
    }
}

/// The options of `old` that pass: of each kind that `keeps` says, with SACK blocks as `sack` translates them.
pub fn sift(old: &Options, keeps: &dyn Fn(OptionKind) -> bool, sack: &dyn Fn(SackBlock) -> SackBlock) -> Options {
    let mut new = Options::new();
    old.mss().filter(|_| keeps(OptionKind::Mss)).map(|mss| new.set_mss(mss));
    old.timestamps().filter(|_| keeps(OptionKind::Timestamps)).map(|stamps| new.set_timestamps(stamps));
    if old.sack_permitted() && keeps(OptionKind::SackPermitted) {
        new.set_sack_permitted();
    }
    old.window_scale().filter(|_| keeps(OptionKind::WindowScale)).map(|shift| new.set_window_scale(shift));
    if let Some(dss) = old.dss().filter(|_| keeps(OptionKind::Mptcp) && keeps(OptionKind::Dss)) {
        let mapping = dss.mapping.filter(|_| keeps(OptionKind::Mapping));
        let dss = Dss { mapping, data_fin: dss.data_fin && mapping.is_some(), ..*dss };
        if dss.ack.is_some() || mapping.is_some() {
            new.set_dss(dss);
        }
    }
    for option in old.mptcp().iter().filter(|_| keeps(OptionKind::Mptcp)) {
        if keeps(kind_of(option)) {
            new.push_mptcp(*option);
        }
    }
    if keeps(OptionKind::Sack) {
        let mut blocks = [SackBlock::default(); 4];
        let count = old.sack().len();
        blocks.iter_mut().zip(old.sack()).for_each(|(new, old)| *new = sack(*old));
        new.set_sack(&blocks[..count]);
    }
    new
}

/// Removes options from a segment; true if there was one.
pub fn remove(segment: &mut Segment, what: OptionSet) -> bool {
    let options = sift(&segment.options, &|kind| !what.has(kind), &|block| block);
    let removed = options != segment.options;
    segment.options = options;
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Timestamps;

    #[test]
    fn only_the_named_option_is_taken_off() {
        let mut segment = Segment::default();
        segment.options.set_timestamps(Timestamps { val: 1, ecr: 2 });
        segment.options.set_dss(Dss { ack: Some(anabranch_wire::DataAck::Long(1)), ..Dss::default() });
        segment.options.push_mptcp(MptcpOption::Prio { backup: true });
        let before = segment.options.clone();
        assert!(!remove(&mut segment, OptionKind::AddAddr.into()) && segment.options == before);
        assert!(!OptionSet::default().is_on(&segment) && OptionSet::from(OptionKind::Prio).is_on(&segment));
        assert!(remove(&mut segment, OptionKind::Dss.into()));
        assert!(segment.options.dss().is_none() && segment.options.mptcp().len() == 1);
        assert!(remove(&mut segment, OptionKind::Mptcp.into()));
        assert!(segment.options.mptcp().is_empty() && segment.options.timestamps().is_some());
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = OptionSet::from(OptionKind::Mss).with(OptionKind::Join);
        assert_eq!(set.iter().collect::<Vec<_>>(), [OptionKind::Join, OptionKind::Mss]);
        assert_eq!(OptionKind::ALL.len(), OptionKind::NAMES.len());
    }
}
