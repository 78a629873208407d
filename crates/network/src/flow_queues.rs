//! Queues of many flows, served in turns: the scheduler of RFC 8290 §4, which is deficit round robin (Shreedhar and Varghese,
//! SIGCOMM 1995) with a list of its own for new flows.

use crate::{Aqm, Fifo, Qdisc, Verdicts, Waiting};
use anabranch_units::Instant;
use std::collections::VecDeque;

/// One flow's queue, with an AQM of its own.
#[derive(Clone, Debug)]
struct Flow<A> {
    queue: Fifo<A>,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    listed: bool,
}

/// Flows that a hash tells apart, and the two lists in which they wait for their turn.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<A> {
    flows: Vec<Flow<A>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: u32,
    packets: u32,
    bytes: u64,
}

impl<A: Aqm> FlowQueues<A> {
    /// Empty queues for so many `flows`, each of which sends `quantum` bytes in a turn.
    pub fn new(flows: u32, quantum: u32, mut aqm: impl FnMut() -> A) -> Self {
        let flow = |_| Flow { queue: Fifo::new(aqm()), deficit: 0, listed: false };
        let flows = (0..flows.max(1)).map(flow).collect();
        Self { flows, new: VecDeque::new(), old: VecDeque::new(), quantum: quantum.max(1), packets: 0, bytes: 0 }
    }

    /// Packets that wait.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of flows.
    pub fn len(&self) -> u64 {
        self.flows.len() as u64
    }

    /// The AQM of a flow.
    pub fn aqm(&mut self, index: usize) -> &mut A {
        &mut self.flows[index].queue.aqm
    }

    /// Bytes that wait in the flow at this index.
    pub fn bytes_of(&self, index: usize) -> u64 {
        self.flows[index].queue.bytes()
    }

    /// Lets `change` act on a flow's queue, and keeps the sums.
    fn with<R>(&mut self, index: usize, change: impl FnOnce(&mut Fifo<A>) -> R) -> R {
        let queue = &mut self.flows[index].queue;
        let before = queue.state(false);
        let result = change(queue);
        let after = queue.state(false);
        self.packets = self.packets + after.packets - before.packets;
        self.bytes = self.bytes + after.bytes - before.bytes;
        result
    }

    /// RFC 8290 §4.1: a packet joins its flow. A flow that was in no list begins as a new one.
    pub fn enqueue(&mut self, now: Instant, index: usize, packet: Waiting, busy: bool, verdicts: &mut Verdicts) {
        self.with(index, |queue| queue.enqueue(now, packet, busy, verdicts));
        let flow = &mut self.flows[index];
        if !flow.listed {
            (flow.listed, flow.deficit) = (true, self.quantum.into());
            self.new.push_back(index);
        }
    }

    /// The flow with the most bytes; the first of several.
    pub fn fattest(&self) -> usize {
        let most = self.flows.iter().map(|flow| flow.queue.bytes()).max();
        self.flows.iter().position(|flow| Some(flow.queue.bytes()) == most).unwrap_or(0)
    }

    /// Takes the packet at the head of a flow, out of turn.
    pub fn pop(&mut self, index: usize) -> Option<Waiting> {
        self.with(index, Fifo::pop)
    }

    /// RFC 8290 §4.2: the next packet that may leave.
    pub fn take(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let index = *if is_new { &self.new } else { &self.old }.front()?;
            if self.flows[index].deficit > 0
                && let Some(packet) = self.with(index, |queue| queue.take(now, verdicts))
            {
                self.flows[index].deficit -= i64::from(packet.size);
                return Some(packet);
            }
            if is_new { &mut self.new } else { &mut self.old }.pop_front();
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.quantum);
                self.old.push_back(index);
            } else if is_new && !self.old.is_empty() {
                // A new flow passes through the old ones, so that it does not come first again at once.
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
}
