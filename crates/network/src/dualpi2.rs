//! Dual-queue coupled AQM with PI2: RFC 9332.

use crate::updates::Updates;
use crate::{
    Aqm, DropTail, Limit, ManagedQueue, Next, Parameter, Qdisc, QueueState, Value, Verdict, Verdicts, Waiting,
};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Instant, Rate, Rng};
use anabranch_wire::Ecn;
use std::collections::VecDeque;

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Spec {
    /// Queueing delay of the classic queue that is aimed at.
    pub target: Duration,
    /// Time between two updates: `Tupdate`.
    pub update: Duration,
    /// Weight of the delay's distance from the target, per second.
    pub alpha: f64,
    /// Weight of the delay's change, per second.
    pub beta: f64,
    /// Coupling factor `k`.
    pub coupling: f64,
    /// Delay of the L4S queue from which its packets are marked: `minTh`.
    pub step: Duration,
    /// From there on the probability rises to 1 within this delay; zero makes a step.
    pub range: Duration,
    /// Share of the link that the classic queue has while both are filled.
    pub classic: f64,
}

impl Default for DualPi2Spec {
    /// RFC 9332 §A.1, Figure 2; the share as in Linux.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            step: Duration::from_micros(800),
            range: Duration::from_micros(400),
            classic: 0.1,
        }
    }
}

impl ManagedQueue for DualPi2Spec {
    const NAME: &'static str = "dualpi2";
    const ABOUT: &'static str = "Dual-queue coupled AQM for L4S: a shallow queue for ECT(1), which marks, beside a classic one with PI2 \
                                 (RFC 9332)";
    const LIMIT: Limit = Limit::Packets(10_000);

    #[rustfmt::skip] // A table reads best with one parameter per row.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::new("target", Value::Time(&mut self.target), "queueing delay of the classic queue that is aimed at"),
            Parameter::new("update", Value::Time(&mut self.update), "time between two updates of the probability (Tupdate)"),
            Parameter::new("alpha", Value::Real(&mut self.alpha), "weight of the delay's distance from target, per second"),
            Parameter::new("beta", Value::Real(&mut self.beta), "weight of the delay's change, per second"),
            Parameter::new("coupling", Value::Real(&mut self.coupling), "coupling factor k: classic packets are dropped with p², L4S packets marked with k·p"),
            Parameter::new("step", Value::Time(&mut self.step), "delay from which packets of the L4S queue are marked (minTh)"),
            Parameter::new("range", Value::Time(&mut self.range), "delay beyond step at which all of them are marked"),
            Parameter::new("classic", Value::Probability(&mut self.classic), "share of the link for the classic queue while both are filled"),
        ]
    }

    /// Both queues mark.
    fn marks(&self) -> bool {
        true
    }

    fn build(self, limit: DropTail, _rate: Rate, _rng: Rng) -> Box<dyn Qdisc> {
        Box::new(DualPi2::new(self, limit))
    }
}

/// One of the two queues.
#[derive(Clone, Debug, Default)]
struct Side {
    packets: VecDeque<Waiting>,
    /// Sum of the probabilities since the last verdict: `recur` of RFC 9332 §A.1.
    due: f64,
    /// Bytes that it may send in its turn.
    credit: f64,
}

impl Side {
    /// Waiting time of the packet at the head; zero if there is none.
    fn delay(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |packet| now.since(packet.arrived))
    }

    /// True with this likelihood, evenly spread: `recur` of RFC 9332 §A.1.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.due += likelihood;
        let recurs = self.due > 1.0;
        if recurs {
            self.due -= 1.0;
        }
        recurs
    }
}

/// Two queues behind one link, coupled by one controller.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    spec: DualPi2Spec,
    limit: DropTail,
    /// ECT(1) and CE.
    l4s: Side,
    classic: Side,
    bytes: u64,
    /// Base probability p'.
    base: f64,
    old_delay: f64,
    updates: Updates,
}

impl DualPi2 {
    /// Empty queues of capacity `limit` together.
    pub fn new(spec: DualPi2Spec, limit: DropTail) -> Self {
        let updates = Updates::new(spec.update);
        let (l4s, classic) = (Side::default(), Side::default());
        Self { spec, limit, l4s, classic, bytes: 0, base: 0.0, old_delay: 0.0, updates }
    }

    /// Probability that a classic packet is dropped or marked: RFC 9332 §2.1, p_C = p'².
    pub fn classic_probability(&self) -> f64 {
        (self.base * self.base).min(1.0)
    }

    /// Probability that the coupling marks an L4S packet: RFC 9332 §2.1, p_CL = k·p'.
    pub fn coupled_probability(&self) -> f64 {
        (self.spec.coupling * self.base).min(1.0)
    }

    /// RFC 9332 §A.1: `dualpi2_update`, at each of its times; between two packets only the waiting time changes.
    fn catch_up(&mut self, now: Instant) {
        while let Some(at) = self.updates.due(now) {
            let empty = self.classic.packets.is_empty() && self.l4s.packets.is_empty();
            if empty && self.base == 0.0 && self.old_delay == 0.0 {
                // Further updates change nothing.
                return self.updates.skip(now);
            }
            // RFC 9332 §A.2: an L4S queue that grows alone raises the probability, too.
            let delay = self.classic.delay(at).max(self.l4s.delay(at)).as_secs_f64();
            let step =
                self.spec.alpha * (delay - self.spec.target.as_secs_f64()) + self.spec.beta * (delay - self.old_delay);
            self.base = (self.base + step).clamp(0.0, 1.0);
            self.old_delay = delay;
        }
    }

    /// RFC 9332 §A.1: `laqm`.
    fn native_probability(&self, delay: Duration) -> f64 {
        let beyond = delay.saturating_sub(self.spec.step).as_nanos() as f64;
        match (beyond > 0.0, self.spec.range.as_nanos()) {
            (false, _) => 0.0,
            (true, 0) => 1.0,
            (true, range) => (beyond / range as f64).min(1.0),
        }
    }

    /// RFC 9332 §A.1: `scheduler`, here weighted round robin by bytes.
    fn is_l4s_next(&mut self) -> bool {
        let next = |side: &Side| side.packets.front().map(|packet| f64::from(packet.size));
        match (next(&self.l4s), next(&self.classic)) {
            (l4s, None) => l4s.is_some(),
            (None, Some(_)) => false,
            (Some(l4s), Some(classic)) => {
                // Time until each has earned its next packet.
                let wait = |size: f64, credit: f64, share: f64| ((size - credit) / share).max(0.0);
                let share = self.spec.classic.clamp(0.000_1, 0.999_9);
                let waits = [wait(l4s, self.l4s.credit, 1.0 - share), wait(classic, self.classic.credit, share)];
                let passed = waits[0].min(waits[1]);
                self.l4s.credit += passed * (1.0 - share);
                self.classic.credit += passed * share;
                let first = waits[0] <= waits[1];
                let (side, size) = if first { (&mut self.l4s, l4s) } else { (&mut self.classic, classic) };
                side.credit -= size;
                first
            }
        }
    }

    /// The verdict on a packet that would leave. None: it leaves as it is.
    fn judge(&mut self, now: Instant, packet: Waiting, is_l4s: bool) -> Option<Verdict> {
        let classic = self.classic_probability();
        // RFC 9332 §A.2: beyond p_Cmax = 1/k² marks are no longer enough.
        let overload = self.base * self.spec.coupling >= 1.0;
        let dropped = Some(Verdict::Dropped(DropCause::Aqm));
        if !is_l4s {
            let falls = self.classic.recurs(classic);
            return if !falls {
                None
            } else if overload || !packet.ecn.is_capable() {
                dropped
            } else {
                Some(Verdict::Marked)
            };
        }
        if overload && self.l4s.recurs(classic) {
            return dropped;
        }
        let native = self.native_probability(now.since(packet.arrived));
        let marked = self.l4s.recurs(native.max(self.coupled_probability()));
        marked.then_some(Verdict::Marked)
    }
}

impl Qdisc for DualPi2 {
    fn enqueue(&mut self, now: Instant, packet: Waiting, busy: bool, verdicts: &mut Verdicts) {
        self.catch_up(now);
        let packets = (self.l4s.packets.len() + self.classic.packets.len()) as u32;
        let waiting = QueueState { packets, bytes: self.bytes, busy };
        if let Err(cause) = self.limit.admit(now, packet.size, waiting) {
            verdicts.push((packet.handle, Verdict::Dropped(cause)));
            return;
        }
        self.bytes += u64::from(packet.size);
        // RFC 9331 §5.1: ECT(1), and CE, which may have been ECT(1).
        let side = if matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce) { &mut self.l4s } else { &mut self.classic };
        side.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Next {
        self.catch_up(now);
        loop {
            let is_l4s = self.is_l4s_next();
            let side = if is_l4s { &mut self.l4s } else { &mut self.classic };
            let Some(packet) = side.packets.pop_front() else {
                (self.l4s.credit, self.classic.credit) = (0.0, 0.0);
                return Next::Nothing;
            };
            self.bytes -= u64::from(packet.size);
            let verdict = self.judge(now, packet, is_l4s);
            verdicts.extend(verdict.map(|verdict| (packet.handle, verdict)));
            if !matches!(verdict, Some(Verdict::Dropped(_))) {
                return Next::Packet(packet.handle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(handle: u32, ecn: Ecn, arrived: Instant) -> Waiting {
        Waiting { handle, size: 1500, arrived, flow: 0, ecn }
    }

    fn queue() -> DualPi2 {
        DualPi2::new(DualPi2Spec::default(), DropTail::Packets(10_000))
    }

    /// RFC 9332 §2.1: p_CL = k·√p_C.
    #[test]
    fn the_coupling_law_holds_between_the_two_probabilities() {
        let mut queue = queue();
        for step in 0..100 {
            queue.base = f64::from(step) / 200.0;
            let law = queue.spec.coupling * queue.classic_probability().sqrt();
            assert!((queue.coupled_probability() - law).abs() < 1e-12);
        }
    }

    /// Worked out on paper: a head that has waited 30 ms at 16 ms … alpha·(d - target) + beta·(d - before).
    #[test]
    fn the_base_probability_follows_delay_and_change() {
        let mut queue = queue();
        queue.enqueue(Instant::ZERO, packet(0, Ecn::NotEct, Instant::ZERO), true, &mut Verdicts::new());
        queue.catch_up(Instant::from_millis(16));
        let first: f64 = 0.16 * (0.016 - 0.015) + 3.2 * 0.016;
        assert!((queue.base - first).abs() < 1e-12, "{}", queue.base);
        queue.catch_up(Instant::from_millis(32));
        let second = first + 0.16 * (0.032 - 0.015) + 3.2 * 0.016;
        assert!((queue.base - second).abs() < 1e-12, "{}", queue.base);
    }

    #[test]
    fn drops_and_marks_come_as_often_as_their_probabilities() {
        let mut queue = queue();
        queue.updates = Updates::new(Duration::from_secs(1_000_000));
        queue.base = 0.3;
        let mut verdicts = Verdicts::new();
        for handle in 0..20_000 {
            let ecn = if handle % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
            queue.enqueue(Instant::ZERO, packet(handle, ecn, Instant::ZERO), false, &mut verdicts);
            queue.dequeue(Instant::ZERO, &mut verdicts);
        }
        let marked = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Marked).count();
        // k·p' = 0.6 of 10,000, p'² = 0.09 of 10,000.
        assert!(
            marked.abs_diff(6000) <= 1 && (verdicts.len() - marked).abs_diff(900) <= 1,
            "{marked} {}",
            verdicts.len()
        );
    }

    #[test]
    fn the_classic_queue_keeps_its_share() {
        let (mut queue, mut verdicts) = (queue(), Verdicts::new());
        for handle in 0..4000 {
            let ecn = if handle % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
            queue.enqueue(Instant::ZERO, packet(handle, ecn, Instant::ZERO), true, &mut verdicts);
        }
        let handles = (0..1000).filter_map(|_| match queue.dequeue(Instant::ZERO, &mut verdicts) {
            Next::Packet(handle) => Some(handle),
            _ => None,
        });
        assert_eq!(handles.filter(|handle| handle % 2 == 1).count(), 100);
    }

    #[test]
    fn a_shallow_queue_marks_by_its_own_delay() {
        let mut queue = queue();
        assert_eq!(queue.native_probability(Duration::from_micros(800)), 0.0);
        assert_eq!(queue.native_probability(Duration::from_micros(1000)), 0.5);
        assert_eq!(queue.native_probability(Duration::from_micros(1300)), 1.0);
        queue.spec.range = Duration::ZERO;
        assert_eq!(queue.native_probability(Duration::from_micros(801)), 1.0);
    }
}
