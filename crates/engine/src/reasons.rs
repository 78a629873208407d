//! Reasons that MP_TCPRST gives (RFC 8684 §3.6).

use anabranch_wire::Reason;

pub(crate) const UNSPECIFIED: Reason = Reason { code: 0, transient: false };
pub(crate) const MPTCP_ERROR: Reason = Reason { code: 1, transient: false };
/// Lack of resources.
pub(crate) const NO_RESOURCES: Reason = Reason { code: 2, transient: true };
/// Too much outstanding data.
pub(crate) const OUTSTANDING: Reason = Reason { code: 4, transient: false };
/// Unacceptable performance.
pub(crate) const TOO_POOR: Reason = Reason { code: 5, transient: false };
/// Middlebox interference.
pub(crate) const INTERFERENCE: Reason = Reason { code: 6, transient: true };
