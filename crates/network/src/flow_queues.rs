//! Queues of many flows, served in turns: the scheduler of RFC 8290 §4, which is deficit round robin (Shreedhar and Varghese,
//! SIGCOMM 1995) with a list of its own for new flows.

use crate::Waiting;
use std::collections::VecDeque;

/// One flow's queue, with the state `S` of its AQM.
#[derive(Clone, Debug)]
pub(crate) struct Flow<S> {
    packets: VecDeque<Waiting>,
    bytes: u64,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    listed: bool,
    pub aqm: S,
}

impl<S> Flow<S> {
    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Takes the packet at the head.
    pub fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }
}

/// Flows that a hash tells apart, and the two lists in which they wait for their turn.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<S> {
    flows: Vec<Flow<S>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: u32,
    packets: u32,
    bytes: u64,
}

impl<S> FlowQueues<S> {
    /// Empty queues for so many `flows`, each of which sends `quantum` bytes in a turn.
    pub fn new(flows: u32, quantum: u32, mut aqm: impl FnMut() -> S) -> Self {
        let flow = |_| Flow { packets: VecDeque::new(), bytes: 0, deficit: 0, listed: false, aqm: aqm() };
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

    /// The flow at this index.
    pub fn flow(&mut self, index: usize) -> &mut Flow<S> {
        &mut self.flows[index]
    }

    /// Bytes that wait in the flow at this index.
    pub fn bytes_of(&self, index: usize) -> u64 {
        self.flows[index].bytes
    }

    /// RFC 8290 §4.1: a packet joins its flow. A flow that was in no list begins as a new one.
    pub fn push(&mut self, index: usize, packet: Waiting) {
        let flow = &mut self.flows[index];
        flow.bytes += u64::from(packet.size);
        flow.packets.push_back(packet);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if !flow.listed {
            (flow.listed, flow.deficit) = (true, self.quantum.into());
            self.new.push_back(index);
        }
    }

    /// The flow with the most bytes; the first of several.
    pub fn fattest(&self) -> usize {
        let most = self.flows.iter().map(Flow::bytes).max();
        self.flows.iter().position(|flow| Some(flow.bytes) == most).unwrap_or(0)
    }

    /// Takes the packet at the head of a flow, out of turn.
    pub fn pop(&mut self, index: usize) -> Option<Waiting> {
        let packet = self.flows[index].pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// RFC 8290 §4.2: the next packet. `take` takes packets from the head of a flow until one may leave.
    pub fn serve(&mut self, mut take: impl FnMut(&mut Flow<S>) -> Option<Waiting>) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (flow.packets.len(), flow.bytes);
            let taken = take(flow);
            self.packets -= (packets - flow.packets.len()) as u32;
            self.bytes -= bytes - flow.bytes;
            if let Some(packet) = taken {
                flow.deficit -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            // A new flow passes through the old ones, so that it does not come first again at once.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
}
