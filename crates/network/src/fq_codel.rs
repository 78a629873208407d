//! Flow Queue CoDel: RFC 8290.

use crate::flow_queues::FlowQueues;
use crate::{
    Aqm, Codel, CodelSpec, DropTail, Limit, ManagedQueue, Next, Parameter, Qdisc, QueueState, Value, Verdict, Verdicts,
    Waiting,
};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelSpec {
    /// Acceptable standing delay of a flow.
    pub target: Duration,
    /// The time for which the delay may exceed it.
    pub interval: Duration,
    /// Number of queues, into which flows are hashed.
    pub flows: u32,
    /// Bytes that a flow sends in a turn.
    pub quantum: u32,
    /// ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for FqCodelSpec {
    /// RFC 8290 §5.2; Linux marks by default.
    fn default() -> Self {
        let CodelSpec { target, interval, .. } = CodelSpec::default();
        Self { target, interval, flows: 1024, quantum: 1514, ecn: true }
    }
}

impl ManagedQueue for FqCodelSpec {
    const NAME: &'static str = "fq_codel";
    const ABOUT: &'static str =
        "Flow Queue CoDel: a queue with CoDel for each flow, served in turns, new flows first (RFC 8290)";
    const LIMIT: Limit = Limit::Packets(10_240);
    const BY_FLOW: bool = true;

    #[rustfmt::skip] // A table reads best with one parameter per row.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("target", Value::Time(&mut self.target), "acceptable standing delay of a flow"),
            Parameter::new("interval", Value::Time(&mut self.interval), "time for which the delay may exceed target; about the longest round trip"),
            Parameter::new("flows", Value::Count(&mut self.flows), "number of queues; a hash of the 5-tuple chooses a packet's"),
            Parameter::new("quantum", Value::Packet(&mut self.quantum), "bytes that a flow sends in a turn"),
            Parameter::new("ecn", Value::Flag(&mut self.ecn), "mark ECN-capable packets (RFC 3168) in place of dropping them; a full queue drops all the same"),
        ]
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn build(self, limit: DropTail, _rate: Rate, _rng: Rng) -> Box<dyn Qdisc> {
        Box::new(FqCodel::new(self, limit))
    }
}

/// RFC 8290 §4.1.3: most packets that are dropped at once where the queue is full.
const BATCH: usize = 64;

/// Queues of flows with CoDel each.
#[derive(Clone, Debug)]
pub struct FqCodel {
    queues: FlowQueues<Codel>,
    limit: DropTail,
}

impl FqCodel {
    /// Empty queues of capacity `limit` together. The hash of flows is not perturbed (RFC 8290 §4.1.1), so that a run does not
    /// depend on its seed.
    pub fn new(spec: FqCodelSpec, limit: DropTail) -> Self {
        let FqCodelSpec { target, interval, flows, quantum, ecn } = spec;
        let codel = || Codel::new(CodelSpec { target, interval, ecn }, DropTail::UNLIMITED);
        Self { queues: FlowQueues::new(flows, quantum, codel), limit }
    }

    /// RFC 8290 §4.1.3: half of the fattest flow, from its head, [`BATCH`] packets at most.
    fn make_room(&mut self, verdicts: &mut Verdicts) {
        let fattest = self.queues.fattest();
        let half = self.queues.bytes_of(fattest) / 2;
        for _ in 0..BATCH {
            let Some(packet) = self.queues.pop(fattest) else { return };
            verdicts.push((packet.handle, Verdict::Dropped(DropCause::Queue)));
            if self.queues.bytes_of(fattest) <= half {
                return;
            }
        }
    }
}

impl Qdisc for FqCodel {
    fn enqueue(&mut self, now: Instant, packet: Waiting, busy: bool, verdicts: &mut Verdicts) {
        let index = (packet.flow % self.queues.len()) as usize;
        let waiting = QueueState { packets: self.queues.packets(), bytes: self.queues.bytes(), busy };
        let full = self.limit.admit(now, packet.size, waiting).is_err();
        self.queues.enqueue(now, index, packet, busy, verdicts);
        if full {
            self.make_room(verdicts);
        }
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Next {
        match self.queues.take(now, verdicts) {
            Some(packet) => Next::Packet(packet.handle),
            None => Next::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(handle: u32, flow: u64, size: u32, ms: u64) -> Waiting {
        Waiting { handle, size, arrived: Instant::from_millis(ms), flow, ecn: anabranch_wire::Ecn::NotEct }
    }

    /// The flows of the packets that leave while all wait.
    fn served(quantum: u32, packets: &[(u64, u32)]) -> Vec<u64> {
        let spec = FqCodelSpec { quantum, ..FqCodelSpec::default() };
        let (mut queue, mut verdicts) = (FqCodel::new(spec, DropTail::Packets(1000)), Verdicts::new());
        for (handle, (flow, size)) in packets.iter().enumerate() {
            queue.enqueue(Instant::ZERO, packet(handle as u32, *flow, *size, 0), true, &mut verdicts);
        }
        let next = || match queue.dequeue(Instant::ZERO, &mut verdicts) {
            Next::Packet(handle) => Some(packets[handle as usize].0),
            _ => None,
        };
        core::iter::from_fn(next).collect()
    }

    #[test]
    fn flows_share_by_bytes() {
        // Flow 1 sends 1500 bytes in a turn, flow 2 three packets of 500.
        let packets: Vec<(u64, u32)> = [(1, 1500); 4].into_iter().chain([(2, 500); 12]).collect();
        assert_eq!(served(1500, &packets), [1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2]);
    }

    #[test]
    fn a_sparse_flow_comes_first() {
        let (mut queue, mut verdicts) =
            (FqCodel::new(FqCodelSpec::default(), DropTail::Packets(1000)), Verdicts::new());
        let mut next = |queue: &mut FqCodel| queue.dequeue(Instant::ZERO, &mut verdicts);
        for handle in 0..10 {
            queue.enqueue(Instant::ZERO, packet(handle, 1, 1500, 0), true, &mut Verdicts::new());
        }
        // Its first turn is over after two packets: the quantum is a few bytes more than one.
        assert_eq!([next(&mut queue), next(&mut queue)], [0, 1].map(Next::Packet));
        queue.enqueue(Instant::ZERO, packet(10, 2, 100, 0), true, &mut Verdicts::new());
        assert_eq!([next(&mut queue), next(&mut queue)], [10, 2].map(Next::Packet));
    }

    #[test]
    fn a_full_queue_drops_half_of_the_fattest_flow() {
        let (mut queue, mut verdicts) = (FqCodel::new(FqCodelSpec::default(), DropTail::Packets(20)), Verdicts::new());
        for handle in 0..20 {
            queue.enqueue(Instant::ZERO, packet(handle, u64::from(handle >= 4), 1000, 0), true, &mut verdicts);
        }
        assert!(verdicts.is_empty());
        queue.enqueue(Instant::ZERO, packet(20, 0, 1000, 0), true, &mut verdicts);
        let dropped: Vec<u32> = verdicts.iter().map(|(handle, _)| *handle).collect();
        assert_eq!(dropped, [4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        let (mut queue, mut verdicts) =
            (FqCodel::new(FqCodelSpec::default(), DropTail::Packets(9000)), Verdicts::new());
        // Flow 1 stands, flow 2 sends a packet every 10 ms that leaves at once.
        for handle in 0..2000 {
            queue.enqueue(Instant::ZERO, packet(handle, 1, 1500, 0), true, &mut verdicts);
        }
        for ms in 0..300u32 {
            let at = Instant::from_millis(ms.into());
            if ms % 10 == 0 {
                queue.enqueue(at, packet(10_000 + ms, 2, 100, ms.into()), true, &mut verdicts);
            }
            queue.dequeue(at, &mut verdicts);
        }
        assert!(verdicts.len() > 2 && verdicts.iter().all(|(handle, _)| *handle < 2000), "{verdicts:?}");
    }
}
