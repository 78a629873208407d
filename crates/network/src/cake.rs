//! Common Applications Kept Enhanced, as far as it is a queue: COBALT for each flow, flows in turns, and a shaper
//! (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE", LANMAN 2018). There are no tins, no isolation of hosts and no filter of
//! acknowledgments.

use crate::cobalt::{Cobalt, CobaltSpec};
use crate::flow_queues::FlowQueues;
use crate::{
    Aqm, DropTail, Limit, ManagedQueue, Next, Parameter, Qdisc, QueueState, Value, Verdict, Verdicts, Waiting,
};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};

/// Parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CakeSpec {
    /// The rate of the shaper; `None` = as fast as the link.
    pub bandwidth: Option<Rate>,
    /// Acceptable standing delay of a flow.
    pub target: Duration,
    /// The time for which the delay may exceed it: a usual round trip.
    pub rtt: Duration,
    /// Number of queues, into which flows are hashed.
    pub flows: u32,
}

impl Default for CakeSpec {
    /// tc-cake(8).
    fn default() -> Self {
        Self { bandwidth: None, target: Duration::from_millis(5), rtt: Duration::from_millis(100), flows: 1024 }
    }
}

/// Memory that CAKE takes without a rate, in bytes.
const BUFFER: u64 = 4 << 20;
/// Queues of one set: a flow joins another one's queue only if all eight are taken.
const WAYS: u64 = 8;
/// The largest packet of an Ethernet.
const MTU: u32 = 1514;

impl ManagedQueue for CakeSpec {
    const NAME: &'static str = "cake";
    const ABOUT: &'static str = "Common Applications Kept Enhanced: COBALT for each flow, flows in turns, and a shaper; without tins \
                                 (Høiland-Jørgensen et al., LANMAN 2018; tc-cake(8))";
    const LIMIT: Limit = Limit::Bytes(BUFFER);
    const RANDOM: bool = true;
    const BY_FLOW: bool = true;

    #[rustfmt::skip] // A table reads best with one parameter per row.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("bandwidth", Value::Rate(&mut self.bandwidth), "rate of the shaper, a little below the link's, so that packets wait here; without it, the link's own rate"),
            Parameter::new("target", Value::Time(&mut self.target), "acceptable standing delay of a flow; at least the time of one and a half full packets"),
            Parameter::new("rtt", Value::Time(&mut self.rtt), "time for which the delay may exceed target; about the usual round trip"),
            Parameter::new("flows", Value::Count(&mut self.flows), "number of queues; a hash of the 5-tuple chooses a set of eight, and a flow the first free one of it"),
        ]
    }

    /// CAKE always marks.
    fn marks(&self) -> bool {
        true
    }

    fn build(self, limit: DropTail, rate: Rate, rng: Rng) -> Box<dyn Qdisc> {
        Box::new(Cake::new(self, limit, rate, rng))
    }
}

/// Queues of flows with COBALT each, behind a shaper.
#[derive(Clone, Debug)]
pub struct Cake {
    queues: FlowQueues<Cobalt>,
    /// The flow that each queue has.
    owners: Vec<u64>,
    limit: DropTail,
    shaper: Option<Rate>,
    /// When the shaper lets the next packet leave.
    free: Instant,
}

impl Cake {
    /// Empty queues of capacity `limit` together before a link of `rate`; BLUE draws from `rng`.
    pub fn new(spec: CakeSpec, limit: DropTail, rate: Rate, mut rng: Rng) -> Self {
        let CakeSpec { bandwidth, target, rtt, flows } = spec;
        let packet = bandwidth.unwrap_or(rate).time_for(MTU.into());
        let target = target.max(Duration::from_nanos(packet.as_nanos().saturating_mul(3) / 2));
        let least = Duration::from_nanos(packet.as_nanos().saturating_mul(4));
        let law = CobaltSpec { target, interval: rtt.max(target), least, ecn: true };
        let flows = u64::from(flows).next_multiple_of(WAYS) as u32;
        let cobalt = || Cobalt::new(law, DropTail::UNLIMITED, Rng::stream(rng.bits(), "flow"));
        let queues = FlowQueues::new(flows, MTU, cobalt);
        Self { queues, owners: vec![0; flows as usize], limit, shaper: bandwidth, free: Instant::ZERO }
    }

    /// The queue of a flow: its own of the set, else a free one, else the first.
    fn queue_of(&mut self, flow: u64) -> usize {
        let sets = self.queues.len() / WAYS;
        let first = (flow % sets.max(1) * WAYS) as usize;
        let set = first..first + WAYS as usize;
        let own = set.clone().find(|queue| self.owners[*queue] == flow && self.queues.bytes_of(*queue) > 0);
        let queue = own.or_else(|| set.clone().find(|queue| self.owners[*queue] == flow));
        let queue = queue.or_else(|| set.clone().find(|queue| self.queues.bytes_of(*queue) == 0)).unwrap_or(first);
        if self.queues.bytes_of(queue) == 0 {
            self.owners[queue] = flow;
        }
        queue
    }
}

impl Qdisc for Cake {
    fn enqueue(&mut self, now: Instant, packet: Waiting, busy: bool, verdicts: &mut Verdicts) {
        let queue = self.queue_of(packet.flow);
        if self.queues.packets() == 0 {
            // The shaper saves nothing while no packet waits.
            self.free = self.free.max(now);
        }
        self.queues.enqueue(now, queue, packet, busy, verdicts);
        while self.queues.packets() > 1 || busy {
            let others = QueueState { packets: self.queues.packets() - 1, bytes: self.queues.bytes(), busy: true };
            if self.limit.admit(now, 0, others).is_ok() {
                return;
            }
            let fattest = self.queues.fattest();
            let Some(dropped) = self.queues.pop(fattest) else { return };
            self.queues.aqm(fattest).overflow(now);
            verdicts.push((dropped.handle, Verdict::Dropped(DropCause::Queue)));
        }
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Next {
        if self.shaper.is_some() && self.queues.packets() > 0 && now < self.free {
            return Next::Later(self.free);
        }
        let Some(packet) = self.queues.take(now, verdicts) else { return Next::Nothing };
        if let Some(rate) = self.shaper {
            self.free = self.free.max(now) + rate.time_for(packet.size.into());
        }
        Next::Packet(packet.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(handle: u32, flow: u64) -> Waiting {
        Waiting { handle, size: 1500, arrived: Instant::ZERO, flow, ecn: anabranch_wire::Ecn::NotEct }
    }

    fn cake(bandwidth: Option<Rate>) -> Cake {
        let spec = CakeSpec { bandwidth, ..CakeSpec::default() };
        Cake::new(spec, DropTail::Bytes(30_000), Rate::from_bps(12_000_000), Rng::stream(1, "a"))
    }

    #[test]
    fn the_shaper_spaces_packets_by_its_rate() {
        let (mut cake, mut verdicts) = (cake(Some(Rate::from_bps(6_000_000))), Verdicts::new());
        (0..4).for_each(|handle| cake.enqueue(Instant::ZERO, packet(handle, 1), handle > 0, &mut verdicts));
        let at = Instant::from_millis;
        assert_eq!(cake.dequeue(at(0), &mut verdicts), Next::Packet(0));
        assert_eq!(cake.dequeue(at(1), &mut verdicts), Next::Later(at(2)));
        assert_eq!(cake.dequeue(at(2), &mut verdicts), Next::Packet(1));
        assert_eq!(cake.dequeue(at(3), &mut verdicts), Next::Later(at(4)));
        // Bytes in any time are at most one packet and rate × time: nothing is saved while packets come late.
        assert_eq!(cake.dequeue(at(9), &mut verdicts), Next::Packet(2));
        assert_eq!(cake.dequeue(at(9), &mut verdicts), Next::Later(at(11)));
    }

    #[test]
    fn a_full_queue_drops_from_the_fattest_flow() {
        let (mut cake, mut verdicts) = (cake(None), Verdicts::new());
        (0..19).for_each(|handle| cake.enqueue(Instant::ZERO, packet(handle, 1), true, &mut verdicts));
        (19..21).for_each(|handle| cake.enqueue(Instant::ZERO, packet(handle, 2), true, &mut verdicts));
        assert_eq!(verdicts, [(0, Verdict::Dropped(DropCause::Queue))]);
    }

    #[test]
    fn flows_of_one_set_have_queues_of_their_own() {
        let mut cake = cake(None);
        let sets = cake.queues.len() / WAYS;
        let mut verdicts = Verdicts::new();
        for n in 0..8 {
            cake.enqueue(Instant::ZERO, packet(n, 5 + u64::from(n) * sets), true, &mut verdicts);
        }
        let used = (0..cake.queues.len() as usize).filter(|queue| cake.queues.bytes_of(*queue) > 0).count();
        assert_eq!(used, 8);
    }
}
