//! The send side of a subflow: what is in flight, what was lost, when to send again, and how much may be sent
//! (RFC 6298, 6675, 8985, 6937; undo by RFC 3522, 5682 and DSACK).

mod prr;
mod rack;
mod retransmit;
mod rtt;

pub(crate) use retransmit::Sent;
pub(crate) use rtt::RttEstimator;

use crate::settings::{RecoveryKind, TcpSettings};
use anabranch_trace::RecoveryPhase;
use anabranch_units::{Duration, Instant, Range};
use prr::Prr;
use rack::{Rack, floor_to_tick};
use retransmit::{Mark, RetransmitQueue};

/// Duplicate acknowledgments that mean a loss (RFC 5681 §3.2, RFC 6675 §2).
const DUP_THRESH: u32 = 3;

/// What a segment says about ours.
#[derive(Debug)]
pub(crate) struct AckInput<'a> {
    pub now: Instant,
    /// Everything below arrived.
    pub ack: u64,
    /// SACK blocks inside what is outstanding, DSACK taken out.
    pub sack: &'a [Range],
    /// Reported as received twice (RFC 2883).
    pub dsack: Option<Range>,
    /// The RTT by timestamps, and when the echoed segment was sent.
    pub echo: Option<(Duration, Instant)>,
    /// The segment carries payload: not a duplicate acknowledgment (RFC 5681 §2).
    pub has_payload: bool,
}

/// What an acknowledgment taught.
#[derive(Debug, Default)]
pub(crate) struct AckOutcome {
    /// Packets newly acknowledged or SACKed, and their payload.
    pub acked_packets: u32,
    pub acked_bytes: u64,
    pub una_advanced: bool,
    pub rtt: Option<Duration>,
    pub newly_lost: u32,
    pub prior_in_flight: u32,
    pub change: Option<Change>,
    pub round_ended: bool,
    pub may_grow: bool,
    /// Nothing changed.
    pub useless: bool,
}

/// How loss recovery changed its course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Fast recovery begins: congestion control must say the new threshold, then [`Sender::begin_recovery`].
    EnterRecovery,
    /// A tail loss probe repaired a loss: reduce as fast recovery does (RFC 8985 §7.4).
    ProbeRepaired,
    /// The reduction was a mistake.
    Undo,
    /// The phase is another, nothing else.
    Phase,
}

/// What a timer found.
#[derive(Debug)]
pub(crate) enum Fired {
    Nothing,
    /// The reordering window passed.
    ReorderTimer {
        newly_lost: u32,
        change: Option<Change>,
    },
    /// A tail loss probe is due: new data if there is some, else the last segment again.
    Probe,
    /// The retransmission timer, for the `n`th time in a row. `again`: the window was reduced for this episode already.
    Timeout {
        n: u32,
        newly_lost: u32,
        again: bool,
    },
}

/// What must be known to take a reduction back.
#[derive(Debug, Default)]
struct UndoState {
    /// A reduction stands that might be taken back.
    armed: bool,
    /// When the first retransmission of the episode left.
    first_retransmission: Option<Instant>,
    /// Retransmissions of the episode that no DSACK has shown to be needless.
    outstanding: u32,
}

/// The send side of a subflow. Offsets: 1 = first payload byte.
#[derive(Debug)]
pub(crate) struct Sender {
    kind: RecoveryKind,
    sack: bool,
    queue: RetransmitQueue,
    rtt: RttEstimator,
    rack: Rack,
    phase: RecoveryPhase,
    /// Recovery ends when everything below is acknowledged.
    recovery_point: u64,
    prr: Prr,
    undo: UndoState,
    /// Duplicate acknowledgments, without SACK.
    duplicates: u32,
    /// RFC 6675: everything below was judged.
    judged: u64,
    /// Segments in flight that a timeout spared: the loss window comes on top of them.
    spared: u32,
    // timers
    rto_deadline: Instant,
    probe_deadline: Instant,
    reorder_deadline: Instant,
    rto_max: Duration,
    timeouts: u32,
    /// A tail loss probe is out: the offset that ends its episode, and whether it was a retransmission.
    probing: Option<(u64, bool)>,
    max_ack_delay: Duration,
    // rounds and losses
    round_end: u64,
    packets_since_loss: u64,
    loss_estimate: f64,
}

impl Sender {
    pub fn new(settings: &TcpSettings, sack: bool) -> Self {
        Self {
            kind: settings.recovery,
            sack,
            queue: RetransmitQueue::new(),
            rtt: RttEstimator::new(settings),
            rack: Rack::new(),
            phase: RecoveryPhase::Open,
            recovery_point: 0,
            prr: Prr::default(),
            undo: UndoState::default(),
            duplicates: 0,
            judged: 0,
            spared: 0,
            rto_deadline: Instant::MAX,
            probe_deadline: Instant::MAX,
            reorder_deadline: Instant::MAX,
            rto_max: settings.rto_max,
            timeouts: 0,
            probing: None,
            max_ack_delay: settings.rto_min,
            round_end: 1,
            packets_since_loss: 0,
            loss_estimate: 0.0,
        }
    }

    /// The RTT of the handshake.
    pub fn sample_handshake(&mut self, rtt: Duration) {
        self.rtt.sample(rtt);
    }
    pub fn una(&self) -> u64 {
        self.queue.una()
    }
    pub fn nxt(&self) -> u64 {
        self.queue.nxt()
    }
    /// Packets in flight: sent, neither acknowledged, SACKed nor marked lost.
    pub fn in_flight(&self) -> u32 {
        // Without SACK each duplicate acknowledgment means that one packet has left the network (RFC 5681 §3.2).
        let left = if self.sack { 0 } else { self.duplicates.min(self.queue.flying().saturating_sub(1)) };
        self.queue.flying() - left
    }
    pub fn in_flight_bytes(&self) -> u64 {
        self.queue.flying_bytes()
    }
    /// Nothing is unacknowledged.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    pub fn phase(&self) -> RecoveryPhase {
        self.phase
    }
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Losses per packet: an average over loss events with gain 1/8.
    pub fn loss_estimate(&self) -> f64 {
        self.loss_estimate
    }
    pub fn first(&self) -> Option<&Sent> {
        self.queue.first()
    }
    pub fn last(&self) -> Option<&Sent> {
        self.queue.last()
    }
    /// The lowest segment that must be sent again.
    pub fn next_lost(&self) -> Option<&Sent> {
        self.queue.next_lost()
    }

    /// Packets that may be in flight now, where congestion control allows `cwnd`.
    pub fn effective_window(&self, cwnd: u32) -> u32 {
        match self.phase {
            RecoveryPhase::Recovery => self.in_flight() + self.prr.allowance(),
            RecoveryPhase::Loss => cwnd + self.spared,
            RecoveryPhase::Open | RecoveryPhase::Disorder => cwnd,
        }
    }

    /// The greatest timeout after back-off from now on.
    pub fn limit_rto(&mut self, max: Duration) {
        if max != self.rto_max {
            self.rto_max = max;
            if self.rto_deadline != Instant::MAX
                && let Some(last) = self.queue.first().map(|s| s.sent_at)
            {
                self.rto_deadline = self.rto_deadline.min(last + max.max(self.rtt.rto()));
            }
        }
    }

    // ---- sending ----

    /// A new segment leaves.
    pub fn on_sent(&mut self, now: Instant, sent: Sent) {
        if self.queue.is_empty() {
            // RFC 6298 §5.1
            self.rto_deadline = now + self.backed_off();
        }
        self.rack.on_sent(now, sent.seq.start, sent.seq.end, 1);
        self.queue.push(now, sent);
        self.count_sent(now);
        if self.probe_deadline == Instant::ZERO {
            // This was the probe.
            self.probe_sent(now, false);
        } else {
            self.arm_probe(now);
        }
    }

    /// The segment at `start` leaves again.
    pub fn on_retransmitted(&mut self, now: Instant, start: u64) {
        let end = self.queue.find(start).map_or(start, |s| s.seq.end);
        let Some(times) = self.queue.sent_again(now, start) else { return };
        self.rack.on_sent(now, start, end, times);
        self.undo.first_retransmission.get_or_insert(now);
        self.undo.outstanding += 1;
        self.count_sent(now);
        if self.probe_deadline == Instant::ZERO {
            self.probe_sent(now, true);
        }
        if self.rto_deadline == Instant::MAX {
            self.rto_deadline = now + self.backed_off();
        }
    }

    fn count_sent(&mut self, _now: Instant) {
        self.packets_since_loss += 1;
        if self.phase == RecoveryPhase::Recovery {
            self.prr.on_sent();
        }
    }

    fn probe_sent(&mut self, now: Instant, retransmission: bool) {
        self.probing = Some((self.queue.nxt(), retransmission));
        self.probe_deadline = Instant::MAX;
        // RFC 8985 §7.3: the timeout starts anew
        self.rto_deadline = now + self.backed_off();
    }

    fn backed_off(&self) -> Duration {
        (self.rtt.rto() * (1 << self.timeouts.min(16))).min(self.rto_max.max(self.rtt.rto()))
    }

    /// Schedules a tail loss probe if one is allowed (RFC 8985 §7.2).
    fn arm_probe(&mut self, now: Instant) {
        self.probe_deadline = Instant::MAX;
        let calm = self.phase == RecoveryPhase::Open && self.queue.sacked().is_empty() && self.timeouts == 0;
        if self.kind != RecoveryKind::Rack || !self.sack || !calm || self.probing.is_some() || self.queue.is_empty() {
            return;
        }
        let Some(srtt) = self.rtt.srtt() else { return };
        // A lone packet's acknowledgment may be delayed.
        let slack = if self.queue.len() == 1 { self.max_ack_delay } else { Duration::from_millis(2) };
        let at = now + srtt * 2 + slack;
        if at < self.rto_deadline {
            self.probe_deadline = at;
        }
    }

    // ---- acknowledgments ----

    /// An acknowledgment.
    pub fn on_ack(&mut self, input: &AckInput<'_>) -> AckOutcome {
        let now = input.now;
        let una = self.queue.una();
        let mut out = AckOutcome { prior_in_flight: self.in_flight(), ..AckOutcome::default() };
        out.may_grow = self.phase != RecoveryPhase::Recovery;
        let original_arrived = self.take_deliveries(input, &mut out);
        out.una_advanced = self.queue.una() > una;
        if let Some(range) = input.dsack {
            self.on_dsack(range);
        }
        self.count_duplicate(input, &out);
        if out.acked_packets == 0 && !out.una_advanced && input.dsack.is_none() && self.duplicates == 0 {
            out.useless = true;
            return out;
        }
        out.rtt = self.sample(input, out.rtt);
        if out.una_advanced {
            self.timeouts = 0;
        }
        if self.queue.una() >= self.round_end {
            self.round_end = self.queue.nxt();
            out.round_ended = true;
        }
        out.newly_lost = self.detect(now);
        let before = self.phase;
        out.change = self.after_probe(input, &out).or_else(|| self.next_phase(input, &out, original_arrived));
        if before == RecoveryPhase::Recovery && self.phase == RecoveryPhase::Recovery {
            let progress = out.una_advanced && out.newly_lost == 0;
            let pipe = self.in_flight();
            self.prr.on_ack(out.acked_packets.max(u32::from(!self.sack)), pipe, progress);
        }
        self.rearm(now, out.una_advanced || out.acked_packets > 0);
        out
    }

    /// Takes what was acknowledged and SACKed out of flight. True if an original arrived that had been given up.
    fn take_deliveries(&mut self, input: &AckInput<'_>, out: &mut AckOutcome) -> bool {
        let now = input.now;
        let echo = input.echo.map(|(_, at)| at);
        let rack = &mut self.rack;
        let mut original_arrived = false;
        let mut first = None;
        let mut delivered = |sent: &Sent| {
            if sent.mark == Mark::Sacked {
                return;
            }
            out.acked_packets += 1;
            out.acked_bytes += sent.payload.len() as u64;
            if sent.transmissions == 1 {
                // RFC 6298 §3: never from a segment that was sent again
                first.get_or_insert(now.since(sent.sent_at));
                original_arrived |= sent.mark == Mark::Lost;
            }
            rack.on_delivered(now, sent, echo);
        };
        self.queue.acknowledge(input.ack, &mut delivered);
        for block in input.sack {
            self.queue.sack(*block, &mut delivered);
        }
        out.rtt = first;
        original_arrived
    }

    fn sample(&mut self, input: &AckInput<'_>, measured: Option<Duration>) -> Option<Duration> {
        let advanced = input.echo.filter(|_| measured.is_none() && input.ack >= self.queue.una() && self.duplicates == 0);
        let rtt = measured.or(advanced.map(|(rtt, _)| rtt).filter(|_| self.timeouts > 0))?;
        self.rtt.sample(rtt);
        Some(rtt)
    }

    fn on_dsack(&mut self, range: Range) {
        self.rack.on_dsack(self.queue.una(), self.queue.nxt());
        if let Some((end, true)) = self.probing
            && range.end <= end
        {
            // RFC 8985 §7.4: the probe was needless
            self.probing = None;
        }
        self.undo.outstanding = self.undo.outstanding.saturating_sub(1);
    }

    /// RFC 5681 §2: duplicate acknowledgments, where there is no SACK.
    fn count_duplicate(&mut self, input: &AckInput<'_>, out: &AckOutcome) {
        if self.sack {
            return;
        }
        if out.una_advanced {
            self.duplicates = 0;
        } else if input.ack == self.queue.una() && !input.has_payload && !self.queue.is_empty() {
            self.duplicates += 1;
        }
    }

    /// Marks what must have been lost.
    fn detect(&mut self, now: Instant) -> u32 {
        let recovering = matches!(self.phase, RecoveryPhase::Recovery | RecoveryPhase::Loss);
        if !self.sack {
            return self.detect_by_duplicates(recovering);
        }
        match self.kind {
            RecoveryKind::Rack => {
                let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
                let (marked, again) = self.rack.detect(now, &mut self.queue, recovering, srtt);
                self.reorder_deadline = again.unwrap_or(Instant::MAX);
                marked
            }
            RecoveryKind::Sack => self.detect_by_sack(),
        }
    }

    /// RFC 6582: the third duplicate, and each partial acknowledgment, mean that the first segment was lost.
    fn detect_by_duplicates(&mut self, recovering: bool) -> u32 {
        let partial = recovering && self.duplicates == 0 && self.queue.una() < self.recovery_point;
        let third = !recovering && self.duplicates >= DUP_THRESH;
        let first = self.queue.first().filter(|s| third || (partial && s.transmissions == 1)).map(|s| s.seq.start);
        first.map_or(0, |start| u32::from(self.queue.lose(start)))
    }

    /// RFC 6675 §4, IsLost: three separate ranges or more than two segments SACKed above. Each segment is judged once:
    /// one that was sent again can only be lost again by a timeout.
    fn detect_by_sack(&mut self) -> u32 {
        let size = self.queue.first().map_or(1, |s| s.seq.len());
        let (mut bytes, mut ranges, mut boundary) = (0, 0, 0);
        for range in self.queue.sacked().iter().rev() {
            bytes += range.len();
            ranges += 1;
            if ranges >= DUP_THRESH || bytes > u64::from(DUP_THRESH - 1) * size {
                boundary = range.start;
                break;
            }
        }
        let from = self.judged.max(self.queue.una());
        if boundary <= from {
            return 0;
        }
        self.judged = boundary;
        let lost: Vec<u64> = self
            .queue
            .iter()
            .skip_while(|s| s.seq.start < from)
            .take_while(|s| s.seq.end <= boundary)
            .filter(|s| s.mark == Mark::Flying && s.transmissions == 1)
            .map(|s| s.seq.start)
            .collect();
        lost.into_iter().filter(|start| self.queue.lose(*start)).count() as u32
    }

    /// RFC 8985 §7.4: a probe that was a retransmission, and was needed, repaired a loss.
    fn after_probe(&mut self, input: &AckInput<'_>, out: &AckOutcome) -> Option<Change> {
        let (end, retransmission) = self.probing?;
        if input.ack < end && self.phase == RecoveryPhase::Open && out.newly_lost == 0 {
            return None;
        }
        self.probing = None;
        let repaired = retransmission && input.ack >= end && self.phase == RecoveryPhase::Open && out.una_advanced;
        let first = self.undo.first_retransmission.take();
        // The echo shows an acknowledgment of the original.
        let original = input.echo.is_some_and(|(_, at)| first.is_some_and(|f| at < floor_to_tick(f)));
        if repaired && !original {
            self.note_loss();
            return Some(Change::ProbeRepaired);
        }
        None
    }

    fn next_phase(&mut self, input: &AckInput<'_>, out: &AckOutcome, original_arrived: bool) -> Option<Change> {
        use RecoveryPhase::{Disorder, Loss, Open, Recovery};
        let una = self.queue.una();
        if matches!(self.phase, Recovery | Loss) {
            if self.is_spurious(input, out, original_arrived) {
                return Some(self.take_back());
            }
            if una >= self.recovery_point {
                self.end_episode();
                self.phase = if self.queue.sacked().is_empty() { Open } else { Disorder };
                if self.queue.lost_count() > 0 {
                    return Some(self.enter_recovery());
                }
                return Some(Change::Phase);
            }
            return None;
        }
        if self.queue.lost_count() > 0 {
            return Some(self.enter_recovery());
        }
        let phase = if self.queue.sacked().is_empty() && self.duplicates == 0 { Open } else { Disorder };
        let changed = phase != self.phase;
        self.phase = phase;
        changed.then_some(Change::Phase)
    }

    fn enter_recovery(&mut self) -> Change {
        self.phase = RecoveryPhase::Recovery;
        self.recovery_point = self.queue.nxt();
        self.probing = None;
        self.undo = UndoState { armed: true, ..UndoState::default() };
        self.note_loss();
        Change::EnterRecovery
    }

    /// Congestion control has said the new threshold: starts PRR.
    pub fn begin_recovery(&mut self, ssthresh: u32) {
        self.prr = Prr::begin(ssthresh, self.queue.len());
    }

    /// RFC 3522: the echo is older than the first retransmission. RFC 5682: after a timeout, an original arrived.
    /// DSACK: every retransmission was needless.
    fn is_spurious(&self, input: &AckInput<'_>, out: &AckOutcome, original_arrived: bool) -> bool {
        if !self.undo.armed {
            return false;
        }
        let first = self.undo.first_retransmission;
        let by_echo = out.una_advanced
            && input.echo.is_some_and(|(_, at)| first.is_some_and(|first| at < floor_to_tick(first)));
        let by_dsack = input.dsack.is_some() && first.is_some() && self.undo.outstanding == 0;
        let by_original = self.phase == RecoveryPhase::Loss && self.timeouts <= 1 && original_arrived;
        by_echo || by_dsack || by_original
    }

    fn take_back(&mut self) -> Change {
        self.queue.forgive();
        self.rack.rebuild(&self.queue);
        self.end_episode();
        self.phase = if self.queue.sacked().is_empty() { RecoveryPhase::Open } else { RecoveryPhase::Disorder };
        Change::Undo
    }

    fn end_episode(&mut self) {
        self.undo = UndoState::default();
        self.spared = 0;
        self.duplicates = 0;
        self.rack.on_recovered();
    }

    fn note_loss(&mut self) {
        let rate = 1.0 / self.packets_since_loss.max(1) as f64;
        self.loss_estimate += (rate - self.loss_estimate) / 8.0;
        self.packets_since_loss = 0;
    }

    // ---- timers ----

    fn rearm(&mut self, now: Instant, delivered: bool) {
        if self.queue.is_empty() {
            // RFC 6298 §5.2
            self.rto_deadline = Instant::MAX;
            self.probe_deadline = Instant::MAX;
            self.reorder_deadline = Instant::MAX;
        } else if delivered {
            // RFC 6298 §5.3
            self.rto_deadline = now + self.backed_off();
            self.arm_probe(now);
        }
    }

    /// When [`Self::on_timer`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probe = if self.probe_deadline == Instant::ZERO { Instant::MAX } else { self.probe_deadline };
        let at = self.rto_deadline.min(probe).min(self.reorder_deadline);
        (at < Instant::MAX).then_some(at)
    }

    /// The time has come.
    pub fn on_timer(&mut self, now: Instant) -> Fired {
        if self.reorder_deadline <= now {
            self.reorder_deadline = Instant::MAX;
            let newly_lost = self.detect(now);
            let calm = matches!(self.phase, RecoveryPhase::Open | RecoveryPhase::Disorder);
            let change = (calm && self.queue.lost_count() > 0).then(|| self.enter_recovery());
            return Fired::ReorderTimer { newly_lost, change };
        }
        if self.rto_deadline <= now {
            return self.on_rto(now);
        }
        if self.probe_deadline != Instant::ZERO && self.probe_deadline <= now {
            // Zero until the probe has left.
            self.probe_deadline = Instant::ZERO;
            return Fired::Probe;
        }
        Fired::Nothing
    }

    /// RFC 6298 §5.4-5.6, RFC 8985 §6.3
    fn on_rto(&mut self, now: Instant) -> Fired {
        self.timeouts += 1;
        self.probe_deadline = Instant::MAX;
        self.probing = None;
        self.rto_deadline = now + self.backed_off();
        if self.queue.first().is_some_and(|s| s.mark == Mark::Sacked) {
            self.queue.renege();
        }
        let newly_lost = match self.kind {
            RecoveryKind::Rack if self.sack => {
                let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
                self.rack.mark_on_timeout(now, &mut self.queue, srtt)
            }
            _ => {
                let all: Vec<u64> = self.queue.iter().map(|s| s.seq.start).collect();
                all.into_iter().filter(|start| self.queue.lose(*start)).count() as u32
            }
        };
        let again = self.timeouts > 1 || matches!(self.phase, RecoveryPhase::Recovery | RecoveryPhase::Loss);
        if !again {
            self.undo = UndoState { armed: true, ..UndoState::default() };
            self.note_loss();
        }
        self.phase = RecoveryPhase::Loss;
        self.recovery_point = self.queue.nxt();
        self.duplicates = 0;
        self.judged = 0;
        self.spared = self.queue.flying();
        Fired::Timeout { n: self.timeouts, newly_lost, again }
    }
}
