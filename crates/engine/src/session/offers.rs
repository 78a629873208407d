//! The MPTCP handshake options of a segment: offers, keys, joins (RFC 8684 §3.1, §3.2, §3.6).

use crate::settings::Settings;
use crate::subflow::half_open::Offer;
use anabranch_wire::{MpCapable, MpJoin, MptcpOption, Reason, Segment};

/// RFC 8684 §3.1: version 1 with HMAC-SHA256. Anything else is ignored after the first SYN.
pub(super) fn is_spoken(capable: &MpCapable) -> bool {
    capable.version == 1 && capable.hmac_sha256
}

/// MP_CAPABLE in a form that is spoken here.
pub(super) fn capable(segment: &Segment) -> Option<&MpCapable> {
    capable_if(segment, is_spoken)
}

/// The offer of a first SYN, if it can be answered. A version is the highest that the peer knows: a later one than ours
/// is answered with ours (RFC 8684 §3.1).
fn offered(syn: &Segment) -> Option<&MpCapable> {
    capable_if(syn, |c| c.version >= 1 && c.hmac_sha256 && c.sender_key.is_none())
}

fn capable_if(segment: &Segment, is_wanted: impl Fn(&MpCapable) -> bool) -> Option<&MpCapable> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Capable(c) if is_wanted(c) => Some(c),
        _ => None,
    })
}

/// An option that follows the keys.
pub(super) fn speaks_later(segment: &Segment) -> bool {
    let follows = |o: &MptcpOption| !matches!(o, MptcpOption::Capable(_));
    segment.options.dss().is_some() || segment.options.mptcp().iter().any(follows)
}

/// MP_JOIN.
pub(super) fn join(segment: &Segment) -> Option<&MpJoin> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Join(j) => Some(j),
        _ => None,
    })
}

/// Why a peer says that it resets: RFC 8684 §3.6.
pub(crate) fn reason_in(segment: &Segment) -> Option<Reason> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::TcpRst(reason) => Some(*reason),
        _ => None,
    })
}

/// The offer in the first SYN of a connection, with our `key` if it is MPTCP. An offer that is not spoken here is
/// answered as plain TCP (RFC 8684 §3.1).
pub(crate) fn asked(syn: &Segment, settings: &Settings, key: impl FnOnce() -> u64) -> Offer {
    let offer = offered(syn).filter(|_| settings.mptcp);
    offer.map_or(Offer::Plain, |c| Offer::Capable {
        key: key(),
        checksum: settings.checksum || c.checksum,
        bare: false,
    })
}

/// A SYN offers MPTCP in a form that can be answered.
pub(crate) fn offers_multipath(syn: &Segment) -> bool {
    offered(syn).is_some()
}
