//! The contents of a request of a client of ours, as a server reads them.

use crate::message::{ClientMessage, MessageReader, PolicyMessage};
use crate::rules::built;
use crate::setup::path;
use crate::target::Target;
use anabranch_carrier::{Addresses, MAX_PATHS};
use anabranch_engine::Scheduler;
use anabranch_engine::connection::PathSetup;
use anabranch_engine::schedule::PathPolicy;
use anabranch_link::LinkError;
use anabranch_trace::SchedulerName;
use anabranch_units::{PathId, Side};

/// Reads the bytes of a client as a server does, and dials nothing: the target that they name, if they do. For fuzzing, and for tests of
/// other clients.
///
/// # Errors
/// The bytes do not keep to the format, or request what there is not.
pub fn read_request(bytes: &[u8]) -> Result<Option<Target>, LinkError> {
    let mut frames = MessageReader::default();
    frames.push(bytes);
    while let Some(ask) = frames.next_message::<ClientMessage>()? {
        if let ClientMessage::Open(open) = ask {
            let policies = open.policies.iter().all(is_policy);
            let known =
                scheduler(&open.scheduler).is_some() && policies && open.target.host.clone().checked().is_some();
            let what = "a target, a scheduler or a policy that there is not".to_owned();
            return if known { Ok(Some(open.target)) } else { Err(LinkError::Malformed { what }) };
        }
    }
    Ok(None)
}

/// A scheduler as a client names it.
pub(super) fn scheduler(text: &str) -> Option<(SchedulerName, Box<dyn Scheduler>)> {
    built(&anabranch_scenario::scheduler("client", text).ok()?)
}

/// A path with the policy that a client gives it, if that is one.
pub(super) fn described(addresses: Addresses, policy: &PolicyMessage) -> Option<PathSetup> {
    let PolicyMessage { path: id, price, cap, weight } = *policy;
    let stated = PathPolicy { price, cap, weight };
    is_policy(policy).then(|| PathSetup { policy: stated, ..path(addresses, Side::Server, PathId(id)) })
}

fn is_policy(policy: &PolicyMessage) -> bool {
    usize::from(policy.path) < MAX_PATHS
        && (0.0..f64::INFINITY).contains(&policy.price)
        && policy.weight.is_none_or(|weight| weight > 0.0 && weight.is_finite())
}
