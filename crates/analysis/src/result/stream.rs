//! The data of one direction.

use super::verdict::name;
use crate::connection::{Curve, Vantage, Waits, half};
use anabranch_units::{Duration, Instant, Side};
use serde::Serialize;

/// The out-of-order queue of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OutOfOrder {
    /// Greatest number of bytes.
    pub peak_bytes: u64,
    /// When, in seconds since the connection's first packet.
    pub peak_s: Option<f64>,
    /// Mean over the connection's time.
    pub mean_bytes: f64,
    /// Greatest sum of the subflows' own queues, as a near receiver sees them.
    pub subflows_peak_bytes: Option<u64>,
}

/// Waits of data for the bytes before it, by the subflow that brought them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waited {
    /// The subflow's number, from 1.
    pub subflow: usize,
    /// How many waits.
    pub count: u64,
    /// How long, together.
    pub time_s: f64,
}

/// A data-level window that had no room for another segment (RFC 8684 §3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Blocked {
    /// Greatest window.
    pub largest_window_bytes: u64,
    /// How often it filled.
    pub count: u64,
    /// How long it was full.
    pub time_s: f64,
}

/// The data of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    /// `client` or `server`.
    pub from: &'static str,
    /// How the receiver's side is known: `arrivals` beside the receiver, else `acknowledgments`.
    pub known_by: &'static str,
    /// Bytes that the receiver has in order.
    pub delivered_bytes: u64,
    /// The first data, in seconds since the connection's first packet.
    pub first_s: f64,
    /// The last delivery.
    pub last_s: f64,
    /// Bits per second between them.
    pub goodput_bps: Option<f64>,
    /// Bytes that came to the connection twice; a near receiver knows them.
    pub duplicate_bytes: Option<u64>,
    /// The out-of-order queue.
    pub out_of_order: OutOfOrder,
    /// Head-of-line waits by the subflow that ended them.
    pub waits: Vec<Waited>,
    /// The longest wait: when it began, how long it lasted, and the subflow that ended it.
    pub longest_wait: Option<(f64, f64, usize)>,
    /// Since when data has waited at the end of the capture.
    pub waits_since_s: Option<f64>,
    /// The window; a near sender knows it.
    pub window: Option<Blocked>,
    /// Width of the intervals of the following rows.
    pub interval_s: f64,
    /// Bytes delivered in each interval of the connection's time.
    pub delivered: Vec<u64>,
    /// Payload bytes by subflow in each interval: sent by a near sender, else arrived.
    pub carried: Vec<Vec<u64>>,
}

/// The stream that `from` sends; `None` without data.
pub(super) fn stream(vantages: &[Option<Vantage>; 2], first: Instant, from: Side, last: Instant) -> Option<Stream> {
    let sender = vantages[half(from)].as_ref();
    let receiver = vantages[1 - half(from)].as_ref();
    let (waits, curve, known_by) = match (receiver, sender) {
        (Some(v), _) => (&v.fold.incoming.waits, &v.fold.incoming.curve, "arrivals"),
        (None, Some(v)) => (&v.fold.outgoing.waits, &v.fold.outgoing.curve, "acknowledgments"),
        (None, None) => return None,
    };
    let begins = sender.map(|v| v.fold.outgoing.first).or_else(|| receiver.map(|v| v.fold.incoming.first)).flatten()?;
    let ends = receiver.map(|v| v.fold.incoming.last).or_else(|| sender.map(|v| v.fold.outgoing.last_acked)).flatten();
    let delivered =
        receiver.map(|v| v.fold.incoming.waits.next()).or(sender.map(|v| v.fold.outgoing.acked)).unwrap_or(0);
    let since = |at: Instant| at.since(first).as_secs_f64();
    let took = ends.map(|ends| ends.since(begins)).filter(|took| !took.is_zero());
    let carried = sender.map_or(curve, |v| &v.fold.outgoing.curve);
    Some(Stream {
        from: name(from),
        known_by,
        delivered_bytes: delivered,
        first_s: since(begins),
        last_s: ends.map_or(since(begins), since),
        goodput_bps: took.map(|took| delivered as f64 * 8.0 / took.as_secs_f64()),
        duplicate_bytes: receiver.map(|v| v.fold.incoming.waits.duplicate),
        out_of_order: OutOfOrder {
            peak_bytes: waits.peak.0,
            peak_s: waits.peak.1.map(since),
            mean_bytes: waits.mean(last.since(first)),
            subflows_peak_bytes: receiver.map(|v| v.fold.incoming.own_queues),
        },
        waits: waited(waits),
        longest_wait: waits.longest.map(|wait| (since(wait.from), wait.lasted.as_secs_f64(), wait.path + 1)),
        waits_since_s: waits.open().map(since),
        window: sender.map(|v| Blocked {
            largest_window_bytes: v.fold.outgoing.largest_window,
            count: v.fold.outgoing.full_count,
            time_s: v.fold.outgoing.full_time.as_secs_f64(),
        }),
        interval_s: curve.width.as_secs_f64(),
        delivered: curve.columns.first().cloned().unwrap_or_default(),
        carried: columns(carried, curve.width),
    })
}

fn waited(waits: &Waits) -> Vec<Waited> {
    let by = waits.by.iter().enumerate().filter(|(_, (count, _))| *count > 0);
    by.map(|(path, (count, time))| Waited { subflow: path + 1, count: *count, time_s: time.as_secs_f64() }).collect()
}

/// The columns of the subflows; where their intervals are narrower than `width`, several become one.
fn columns(curve: &Curve, width: Duration) -> Vec<Vec<u64>> {
    let several = (width.as_nanos() / curve.width.as_nanos()).max(1) as usize;
    let column = |column: &Vec<u64>| column.chunks(several).map(|part| part.iter().sum()).collect();
    curve.columns.iter().skip(1).map(column).collect()
}
