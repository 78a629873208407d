//! A path as one download over it alone shows it: when each packet left the server, and when it reached the client.
//!
//! Times are those of the client's clock. The server's are corrected to half a round trip, which has no part in what follows: each is
//! compared with the quickest packet of the same download.

use crate::event_log::EVENTS;
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Duration, Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};

/// Without an arrival for so long, while at least [`LOST`] packets in a row were lost, the path carried nothing.
pub(super) const SILENCE: Duration = Duration::from_millis(100);
/// One loss, or two in a row, are no outage.
const LOST: usize = 3;
/// Packets that follow each other this closely share a busy period.
const GRAIN: Duration = Duration::from_millis(10);

/// Nanoseconds.
type Time = i64;

fn time(at: Instant) -> Time {
    i64::try_from(at.as_nanos()).unwrap_or(Time::MAX)
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Place in the subflow's sequence, its lower 32 bits.
    seq: u32,
    at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    seq: u32,
    at: Time,
    bytes: u32,
}

/// Records one connection's packets with data on their way from the server to the client: the events of the server, the packets of the
/// client.
#[derive(Debug, Default)]
pub(super) struct PacketRecorder {
    /// The server's initial sequence number.
    initial: Option<u32>,
    sent: Vec<Sent>,
    /// At most [`EVENTS`]: a run of more does not count.
    arrived: Vec<Arrived>,
}

impl Recorder for PacketRecorder {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if let (Some(Side::Server), ConnId(0), Event::DataSent { seq, .. }) = (origin.host, origin.connection, event) {
            self.sent.push(Sent { seq: *seq as u32, at: time(now) });
        }
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, _: PathId, packet: &Packet) {
        if host != Side::Client || sent || self.arrived.len() as u64 >= EVENTS {
            return;
        }
        let segment = &packet.segment;
        if segment.flags.has(Flags::SYN) {
            self.initial = Some(segment.seq.0);
        } else if let Some(initial) = self.initial.filter(|_| !segment.payload.is_empty()) {
            let seq = segment.seq.0.wrapping_sub(initial);
            self.arrived.push(Arrived { seq, at: time(now), bytes: packet.len() as u32 });
        }
    }
}

/// A busy period: data waited for the path, or was lost without an arrival, and the bytes that came out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BusyPeriod {
    pub from: Time,
    pub to: Time,
    pub bytes: u64,
}

/// The path as one download shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSample {
    /// In order, without overlap. Only in them the path's capacity is seen.
    pub busy_periods: Vec<BusyPeriod>,
    /// Packets that arrived, and their bytes.
    pub packets: u64,
    pub bytes: u64,
    /// From the first of them to the last.
    pub lasted: Time,
    /// Bytes that waited when the queue was full, if packets were lost there.
    pub full: Option<u64>,
    /// The most bytes that waited.
    pub deepest: u64,
    /// Packets that met a queue at most half as long as is usual at its longest, and how many of them were lost.
    pub light: u64,
    pub lost: u64,
}

/// An arrival of which is known when it was sent.
#[derive(Clone, Copy, Debug)]
struct DeliveredPacket {
    /// When it would have come if it had not waited.
    due: Time,
    at: Time,
    bytes: u64,
    /// Place of the packet among the sent ones.
    sent: usize,
}

impl PacketRecorder {
    /// The path as they show it; `None` if no packet is known at both ends. Every packet counts `overhead` bytes more.
    pub fn read(&self, overhead: u32) -> Option<PathSample> {
        let (delivered, least) = self.delivered(overhead)?;
        let arrived: Vec<bool> = {
            let mut arrived = vec![false; self.sent.len()];
            delivered.iter().for_each(|packet| arrived[packet.sent] = true);
            arrived
        };
        let waited = waiting(&delivered);
        let outages = self.outages(&delivered, &arrived, least);
        let mut sample = PathSample { busy_periods: busy_periods(&delivered), ..PathSample::default() };
        sample.packets = delivered.len() as u64;
        sample.bytes = delivered.iter().map(|packet| packet.bytes).sum();
        sample.lasted = delivered.last()?.at - delivered.first()?.at;
        sample.deepest = waited.iter().copied().max().unwrap_or(0);
        // The queue that each packet met is that of the last one before it that arrived.
        let mut queue = vec![0; self.sent.len()];
        delivered.iter().zip(&waited).for_each(|(packet, waited)| queue[packet.sent] = *waited);
        let last = arrived.iter().rposition(|arrived| *arrived)?;
        let half = high(&waited) / 2;
        let (mut before, mut full) = (0, Vec::new());
        for (n, (arrived, queue)) in arrived.iter().zip(&queue).enumerate().take(last + 1) {
            let due = self.sent[n].at + least;
            let is_cut = !arrived && outages.iter().any(|outage| (outage.from..outage.to).contains(&due));
            if !is_cut && before <= half {
                sample.light += 1;
                sample.lost += u64::from(!arrived);
            } else if !is_cut && !arrived {
                full.push(before);
            }
            before = if *arrived { *queue } else { before };
        }
        full.sort_unstable();
        sample.full = full.get(full.len() / 2).copied();
        sample.busy_periods.extend(outages);
        sample.busy_periods.sort_by_key(|period| period.from);
        Some(sample)
    }

    /// Each arrival with its sending, in the order of arrival, and the least time from one to the other.
    fn delivered(&self, overhead: u32) -> Option<(Vec<DeliveredPacket>, Time)> {
        let mut order: Vec<usize> = (0..self.sent.len()).collect();
        order.sort_by_key(|n| (self.sent[*n].seq, *n));
        let sendings = |seq: u32| {
            let from = order.partition_point(|n| self.sent[*n].seq < seq);
            let to = order.partition_point(|n| self.sent[*n].seq <= seq);
            &order[from..to]
        };
        // Which of several sendings arrived is found by the time that the others take.
        let once = |packet: &Arrived| match sendings(packet.seq) {
            [n] => Some(packet.at - self.sent[*n].at),
            _ => None,
        };
        let least = self.arrived.iter().filter_map(once).min()?;
        let mut taken = vec![false; self.sent.len()];
        let mut delivered = Vec::with_capacity(self.arrived.len());
        for Arrived { seq, at, bytes } in &self.arrived {
            let fits = |n: &&usize| !taken[**n] && self.sent[**n].at + least <= *at;
            if let Some(sent) = sendings(*seq).iter().rev().find(fits).copied() {
                taken[sent] = true;
                let due = self.sent[sent].at + least;
                delivered.push(DeliveredPacket { due, at: *at, bytes: u64::from(*bytes) + u64::from(overhead), sent });
            }
        }
        Some((delivered, least))
    }

    /// Times in which packets were sent and none arrived: from when the first of them was due until one came through.
    fn outages(&self, delivered: &[DeliveredPacket], arrived: &[bool], least: Time) -> Vec<BusyPeriod> {
        let silent = delivered.windows(2).filter(|pair| pair[1].at - pair[0].at > SILENCE.as_nanos() as Time);
        let outage = |pair: &[DeliveredPacket]| {
            let (before, after) = (&pair[0], &pair[1]);
            let due = self.sent.iter().zip(arrived).map(|(sent, arrived)| (sent.at + least, *arrived));
            let within: Vec<Time> = due
                .filter(|(due, arrived)| !arrived && (before.at..after.due).contains(due))
                .map(|(due, _)| due)
                .collect();
            let from = within.iter().min()?;
            (within.len() >= LOST && after.due - from > 0).then_some(BusyPeriod {
                from: *from,
                to: after.due,
                bytes: 0,
            })
        };
        silent.filter_map(outage).collect()
    }
}

/// The bytes that waited behind the packet in transmission when each packet joined them, it included: those that came between when it
/// was due and when it came.
fn waiting(delivered: &[DeliveredPacket]) -> Vec<u64> {
    let mut sums = vec![0];
    delivered.iter().for_each(|packet| sums.push(sums[sums.len() - 1] + packet.bytes));
    let waited = |(n, packet): (usize, &DeliveredPacket)| {
        let first = delivered[..n].partition_point(|other| other.at <= packet.due);
        sums[n + 1] - sums[(first + 1).min(n + 1)]
    };
    delivered.iter().enumerate().map(waited).collect()
}

/// The queue that 19 of 20 packets do not exceed: a moment in which the client's host was busy does not count.
fn high(waited: &[u64]) -> u64 {
    let mut sorted = waited.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * 19 / 20).copied().unwrap_or(0)
}

/// From one arrival to the next, wherever the next one was due before the first came: it waited, so the path was busy all the time.
/// Packets that the client read at once count together.
fn busy_periods(delivered: &[DeliveredPacket]) -> Vec<BusyPeriod> {
    let mut busy_periods: Vec<BusyPeriod> = Vec::new();
    let mut before: Option<Time> = None;
    for batch in delivered.chunk_by(|a, b| a.at == b.at) {
        let at = batch[0].at;
        let due = batch.iter().map(|packet| packet.due).min().unwrap_or(at);
        if let Some(from) = before.filter(|from| due < *from) {
            let bytes = batch.iter().map(|packet| packet.bytes).sum();
            match busy_periods.last_mut() {
                Some(last) if last.to == from && at - last.from <= GRAIN.as_nanos() as Time => {
                    *last = BusyPeriod { from: last.from, to: at, bytes: last.bytes + bytes };
                }
                _ => busy_periods.push(BusyPeriod { from, to: at, bytes }),
            }
        }
        before = Some(at);
    }
    busy_periods
}
