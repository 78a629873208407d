//! The send side's reliability: what was sent, what became of it, what is to be retransmitted, and when.
//!
//! Positions are offsets in the subflow's sequence, 0 = SYN, 1 = first payload byte; they never wrap. The parts pass
//! values and do not know each other; [`Sender`] joins them.

mod delivery;
mod deviation;
mod kernel_timer;
mod loss_estimate;
mod next_seg;
mod path_mtu;
mod probe;
mod prr;
mod rack;
mod recovery;
mod retransmit;
mod rtt;
mod scoreboard;
mod search;
#[cfg(test)]
mod tests;
mod timers;
mod undo;

pub use kernel_timer::Occasion;
pub use retransmit::Sent;
pub use rtt::RttEstimator;

use crate::congestion::RateSample;
use crate::settings::{RecoveryKind, TcpSettings};
use anabranch_trace::RecoveryPhase;
use anabranch_units::{Duration, Instant, Range};
use delivery::DeliveryRate;
use loss_estimate::LossEstimate;
use next_seg::NextSeg;
use probe::{PROBE_MIN, Probe, WORST_DELAYED_ACK};
use prr::{Progress, Prr};
use rack::Rack;
use recovery::Verdict;
use scoreboard::{Arrival, Delivered, Scoreboard, echo_before};
use search::Search;
use timers::{Timer, Timers};
use undo::Undo;

/// Least delay of the timeout that finds out whether a receiver discarded what it SACKed (Linux).
const RENEGING_MIN: Duration = Duration::from_millis(10);

/// Least silence that is taken for a bad sign: hosts and radio links pause for tens of milliseconds.
const SILENCE_MIN: Duration = Duration::from_millis(50);

/// An acknowledgment as the sender needs it.
#[derive(Clone, Copy, Debug)]
pub struct AckInput<'a> {
    /// When it came.
    pub now: Instant,
    /// The cumulative acknowledgment. One beyond `nxt` is ignored with all that came with it.
    pub ack: u64,
    /// SACK blocks without DSACK.
    pub sack: &'a [Range],
    /// The DSACK block (RFC 2883).
    pub dsack: Option<Range>,
    /// The echoed timestamp: the RTT, and when the segment was sent, rounded down to at most a
    /// millisecond.
    pub echo: Option<(Duration, Instant)>,
    /// The segment carries no payload, SYN or FIN, and moved no window: it may be a duplicate acknowledgment (RFC 5681 §2).
    pub bare: bool,
}

/// The effect of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckOutcome {
    /// Packets newly acknowledged or SACKed; without SACK, a duplicate acknowledgment counts as one.
    pub acked_packets: u32,
    /// Payload bytes newly acknowledged or SACKed.
    pub acked_bytes: u64,
    /// The highest end of their data.
    pub data_end: u64,
    /// When the newest of them was sent that was sent only once.
    pub sent: Option<Instant>,
    /// The cumulative acknowledgment moved.
    pub una_advanced: bool,
    /// RTT of the newest packet acknowledged, never of one that was retransmitted unless a timestamp proves it.
    pub rtt: Option<Duration>,
    /// Packets newly marked lost.
    pub newly_lost: u32,
    /// Packets in flight before.
    pub prior_in_flight: u32,
    /// The change in recovery.
    pub change: Option<RecoveryChange>,
    /// The peer echoes an ECN mark that is new: congestion control must react, after it has to `change`.
    pub marked: bool,
    /// A round trip ended: the first packet sent after the last such mark was acknowledged.
    pub round_ended: bool,
    /// The window may grow: data was acknowledged and no fast recovery is under way.
    pub may_grow: bool,
    /// The delivery rate, if it is measured: see [`Sender::measure_rate`].
    pub rate: Option<RateSample>,
    /// Nothing changed.
    pub useless: bool,
}

/// A change of phase, or a reason for congestion control to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryChange {
    /// Fast recovery begins: congestion control must react, then [`Sender::begin_recovery`] be called.
    EnterRecovery,
    /// A tail loss probe repaired a loss: congestion control must react as to a fast recovery that is over already.
    ProbeRepaired,
    /// Fast recovery ended.
    ExitRecovery,
    /// Something arrived out of order or was retransmitted.
    EnterDisorder,
    /// All is in order again.
    LeaveDisorder,
    /// Recovery from a timeout ended.
    LeaveLoss,
    /// The last reaction to a loss was unjustified: congestion control must take it back.
    Undo,
}

/// The action that is due when a timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// Nothing.
    Nothing,
    /// Packets were overtaken for too long.
    ReorderTimer {
        /// Packets newly marked lost.
        newly_lost: u32,
        /// The change in recovery.
        change: Option<RecoveryChange>,
    },
    /// A tail loss probe is to be sent, whatever the congestion window: new data if there is some and the peer's window
    /// admits it, else [`Sender::last`] again.
    Probe,
    /// Nothing was acknowledged for [`Sender::patience`].
    Silence,
    /// The retransmission timer.
    Timeout {
        /// How often in a row.
        n: u32,
        /// Packets newly marked lost.
        newly_lost: u32,
        /// Congestion control has reacted to this episode already: ssthresh stays.
        again: bool,
    },
}

/// The send side of an established subflow.
#[derive(Debug)]
pub struct Sender {
    sack: bool,
    kind: RecoveryKind,
    probes: bool,
    rto_min: Duration,
    board: Scoreboard,
    rtt: RttEstimator,
    rack: Rack,
    timers: Timers,
    undo: Undo,
    probe: Probe,
    next_seg: NextSeg,
    loss: LossEstimate,
    phase: RecoveryPhase,
    /// Recovery ends when this is acknowledged.
    high: u64,
    /// F-RTO is under way.
    frto: bool,
    /// New packets that F-RTO sends before anything that is lost, to find out whether it is.
    new_first: u32,
    /// The first packet must be retransmitted, whatever the window: a timeout.
    head_due: bool,
    prr: Option<Prr>,
    /// Where what was last retransmitted of a first packet ends.
    part_end: u64,
    /// For [`Self::begin_recovery`]: packets outstanding before the last event, and what it brought.
    recover_fs: u32,
    progress: Progress,
    /// Without SACK: packets that duplicate acknowledgments show to have arrived, and `recover` of RFC 6582.
    duplicates: u32,
    recover: Option<u64>,
    /// Retransmission timeouts since something was last acknowledged.
    timeouts: u32,
    round_end: u64,
    /// `Some` once packets had to become smaller, and larger ones are looked for.
    search: Option<Box<Search>>,
    /// `Some` where the delivery rate is measured.
    delivery: Option<Box<DeliveryRate>>,
    /// [`Fired::Silence`] is wanted.
    watched: bool,
    /// The next acknowledgment answers a probe of the path: what it acknowledges may have arrived long before.
    answered: bool,
    /// The last duplicate acknowledgment had no SACK block, although one is required: the path may strip them.
    blockless: bool,
}

impl Sender {
    /// A sender just after the handshake: `una` = `nxt` = 1. `sack`: both ends agreed on it.
    pub fn new(settings: &TcpSettings, sack: bool) -> Self {
        Self {
            sack,
            kind: settings.recovery,
            probes: settings.tail_loss_probe.unwrap_or(settings.recovery == RecoveryKind::Rack),
            rto_min: settings.rto_min,
            board: Scoreboard::new(1),
            rtt: RttEstimator::new(settings),
            rack: Rack::new(),
            timers: Timers::new(settings.rto_max),
            undo: Undo::default(),
            probe: Probe::Idle,
            next_seg: NextSeg::default(),
            loss: LossEstimate::default(),
            phase: RecoveryPhase::Open,
            high: 1,
            frto: false,
            new_first: 0,
            head_due: false,
            prr: None,
            part_end: 1,
            recover_fs: 0,
            progress: Progress::default(),
            duplicates: 0,
            recover: None,
            timeouts: 0,
            round_end: 1,
            search: None,
            delivery: None,
            watched: false,
            answered: false,
            blockless: false,
        }
    }

    /// The RTT that the handshake took.
    pub fn sample_handshake(&mut self, rtt: Duration) {
        self.rtt.on_sample(Instant::ZERO, rtt, rtt, (self.una(), self.nxt()));
    }

    /// Our SYN or SYN/ACK was lost, and nothing tells the RTT.
    pub fn distrust_rtt(&mut self) {
        self.rtt.distrust();
    }

    /// Measures the delivery rate from now on; nothing may have been sent.
    pub fn measure_rate(&mut self) {
        self.delivery = Some(Box::default());
    }

    /// Before an acknowledgment is taken: if the delivery rate is measured, and nothing is to be retransmitted. `window` =
    /// what may be in flight; nothing new waits for room in it.
    pub fn note_starved(&mut self, window: u32) {
        let in_flight = self.in_flight();
        let starved = in_flight < window && !self.may_repeat();
        if let Some(delivery) = self.delivery.as_mut().filter(|_| starved) {
            delivery.on_starved(in_flight);
        }
    }

    /// The delivery rate is measured.
    pub fn measures_rate(&self) -> bool {
        self.delivery.is_some()
    }

    /// First offset not acknowledged.
    pub fn una(&self) -> u64 {
        self.board.una()
    }
    /// Next offset to send.
    pub fn nxt(&self) -> u64 {
        self.board.nxt()
    }
    /// Packets in flight (RFC 6675 §4, `SetPipe`): neither acknowledged, SACKed nor lost, and retransmissions.
    pub fn in_flight(&self) -> u32 {
        self.board.pipe().saturating_sub(self.duplicates)
    }
    /// Payload bytes of the packets in flight; duplicate acknowledgments without SACK do not count.
    pub fn in_flight_bytes(&self) -> u64 {
        self.board.pipe_bytes()
    }
    /// True if everything sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.board.is_empty()
    }
    /// Phase of loss recovery.
    pub fn phase(&self) -> RecoveryPhase {
        self.phase
    }
    /// How often in a row everything was taken for lost, and nothing was acknowledged since.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }
    /// The retransmission timer fired, and nothing was acknowledged since.
    pub fn has_timed_out(&self) -> bool {
        self.timeouts > 0
    }
    /// Round-trip estimates.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Loss episodes per packet, over about the last 256 packets.
    pub fn loss_estimate(&self) -> f64 {
        self.loss.get()
    }
    /// The first packet not acknowledged.
    pub fn first(&self) -> Option<&Sent> {
        self.board.first()
    }
    /// The packet sent last.
    pub fn last(&self) -> Option<&Sent> {
        self.board.last()
    }

    /// Nothing more will be sent, and all was acknowledged: gives back the memory.
    pub fn give_back(&mut self) {
        self.board.give_back();
    }

    /// All packets that are not acknowledged, in the order of their sequence.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Sent> + '_ {
        self.board.packets()
    }

    /// Packets that may be in flight now if congestion control allows `cwnd`: in fast recovery, what PRR allows.
    pub fn effective_window(&self, cwnd: u32) -> u32 {
        match (&self.prr, self.head_due) {
            (Some(prr), _) => prr.window(),
            (None, true) => cwnd.max(self.in_flight() + 1),
            (None, false) => cwnd,
        }
    }

    /// There may be something in [`Self::next_lost`] or [`Self::next_speculative`].
    pub fn may_repeat(&self) -> bool {
        self.board.misses_any() || self.phase == RecoveryPhase::Recovery
    }

    /// The first packet must be retransmitted, whatever window and pacer say: a timeout.
    pub fn is_head_due(&self) -> bool {
        self.head_due
    }

    /// The lowest packet that is lost and was not retransmitted since.
    pub fn next_lost(&self) -> Option<&Sent> {
        self.board.next_lost().filter(|_| self.new_first == 0)
    }

    /// F-RTO requires new data before anything is retransmitted (RFC 5682 §3.1 step 2.b).
    pub fn wants_new(&self) -> bool {
        self.new_first > 0
    }

    /// There is no new data, or none that may be sent: the conventional recovery continues.
    pub fn no_new(&mut self) {
        self.frto = false;
        self.new_first = 0;
    }

    /// The packet that may be retransmitted if nothing is lost, nothing is new, and the window has room (RFC 6675 §4, `NextSeg` rules
    /// 3 and 4). Always `None` with RACK.
    pub fn next_speculative(&self) -> Option<&Sent> {
        let asked = self.phase == RecoveryPhase::Recovery && self.sack && self.kind != RecoveryKind::Rack;
        self.board.get(self.next_seg.choose(&self.board).filter(|_| asked)?)
    }

    /// New data, or a FIN, was sent. It must begin at `nxt`.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Instant, sent: Sent) {
        let first = self.board.is_empty();
        let seq = sent.seq();
        if !self.board.on_sent(now, sent) {
            return;
        }
        if let Some(search) = &mut self.search {
            search.on_sent(seq);
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.on_sent((now, self.board.nxt()), first);
        }
        self.note_sent(false);
        self.new_first = self.new_first.saturating_sub(1);
        if first {
            // RFC 6298 §5.1
            self.timers.start_retransmission(now, self.rtt.rto());
            self.await_news(now);
        }
        self.arm_probe(now);
    }

    /// The packet at `seq` was retransmitted; of the first one, perhaps only a part.
    pub fn on_retransmitted(&mut self, now: Instant, seq: Range) {
        let Some(n) = self.board.number_of(seq.start) else { return };
        self.next_seg.on_retransmitted(n, &self.board);
        if !self.board.on_retransmitted(now, n) {
            return;
        }
        if let (Some(delivery), Some(packet)) = (&mut self.delivery, self.board.get(n)) {
            delivery.on_sent(packet.key(), false);
        }
        self.note_sent(true);
        self.undo.on_retransmitted(now);
        if self.board.first().is_some_and(|p| seq.start < p.seq().end) {
            self.part_end = seq.end;
            self.timers.start_retransmission(now, self.rtt.rto());
        }
    }

    fn note_sent(&mut self, again: bool) {
        self.head_due = false;
        self.probe.on_sent(self.board.nxt(), again);
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
    }

    /// Takes an acknowledgment.
    #[inline(always)]
    pub fn on_ack(&mut self, input: &AckInput<'_>) -> AckOutcome {
        let prior_in_flight = self.in_flight();
        let nothing = AckOutcome { prior_in_flight, useless: true, ..AckOutcome::default() };
        if input.ack > self.nxt() {
            return nothing;
        }
        let prior_una = self.una();
        let prior_highest = self.board.highest();
        self.recover_fs = self.board.outstanding();
        let arrival = Arrival { now: input.now, min_rtt: self.rtt.min(), echo: input.echo.map(|(_, sent)| sent) };
        let sack = if self.sack { input.sack } else { &[] };
        let mut delivered = self.board.apply(input.ack, sack, &arrival);
        let una_advanced = self.una() > prior_una;
        if !self.sack {
            delivered.packets = self.count_duplicates(input, &delivered, una_advanced);
        }
        let rtt = self.sample(input, &delivered, una_advanced);
        let min_rtt = self.rtt.min();
        let rate =
            self.delivery.as_mut().and_then(|d| d.on_ack(input.now, delivered.packets, delivered.newest, min_rtt));
        self.mark_rest(una_advanced);
        self.inform_rack(input, &delivered, prior_highest);
        let idle = delivered.packets == 0 && !una_advanced;
        let repaired = self.probe.on_ack(self.una(), input.dsack, idle);
        self.timeouts = if una_advanced { 0 } else { self.timeouts };
        let facts = self.facts(input, &delivered, una_advanced);
        self.answered = false;
        // RFC 6582 §3.2 step 3: the acknowledgment that ends a fast recovery does not widen the window. (With SACK it does, in
        // Linux.)
        let holds = !self.sack && self.phase == RecoveryPhase::Recovery;
        let verdict = self.judge(&facts);
        let change = beside_repair(verdict.change, repaired);
        self.progress = Progress { delivered: delivered.packets, lost: verdict.lost, una_advanced };
        let in_flight = self.in_flight();
        if let Some(prr) = &mut self.prr {
            prr.on_ack(&self.progress, in_flight);
        }
        self.set_timers(input.now, &delivered, una_advanced);
        self.loss.on_delivered(delivered.packets);
        if idle && input.dsack.is_none() && verdict.lost == 0 && change.is_none() {
            return nothing;
        }
        // Linux (`tcp_may_raise_cwnd`): SACKs let the window grow only where packets are known to be reordered.
        let forward = una_advanced || (self.rack.reordering_seen() && !idle);
        AckOutcome {
            acked_packets: delivered.packets,
            acked_bytes: delivered.bytes,
            data_end: delivered.data_end,
            sent: delivered.newest_original(),
            una_advanced,
            rtt,
            newly_lost: verdict.lost,
            prior_in_flight,
            change,
            round_ended: self.end_round(),
            may_grow: forward && self.phase != RecoveryPhase::Recovery && !holds,
            rate,
            ..AckOutcome::default()
        }
    }

    /// While losses are repaired, the rest of a packet of which a part was retransmitted is lost once that part is acknowledged.
    fn mark_rest(&mut self, una_advanced: bool) {
        if una_advanced && matches!(self.phase, RecoveryPhase::Recovery | RecoveryPhase::Loss) {
            self.board.mark_rest(self.part_end);
        }
    }

    /// Nothing is outstanding, and an acknowledgment of `ack` without SACK blocks would change nothing.
    #[inline(always)]
    pub fn is_at_rest(&self, ack: u64) -> bool {
        let idle = self.board.is_empty() && self.phase == RecoveryPhase::Open && self.probe == Probe::Idle;
        idle && ack <= self.una() && !self.undo.all_duplicates()
    }

    /// Without SACK every duplicate acknowledgment means that a packet arrived (RFC 5681 §3.2, as Linux counts).
    /// Returns how many packets the acknowledgment delivered.
    fn count_duplicates(&mut self, input: &AckInput<'_>, delivered: &Delivered, una_advanced: bool) -> u32 {
        let in_loss = self.phase == RecoveryPhase::Loss && self.nxt() <= self.high;
        if una_advanced {
            let arrived = self.duplicates;
            let left = arrived.saturating_sub(delivered.acked.saturating_sub(1));
            self.duplicates = if self.phase == RecoveryPhase::Recovery { left } else { 0 };
            self.duplicates = self.duplicates.min(self.board.pipe().saturating_sub(1));
            // An acknowledgment of a part of a packet delivers none (RFC 3465 §2.1).
            return delivered.acked.saturating_sub(arrived).max(delivered.acked.min(1));
        }
        let duplicate = input.ack == self.una() && input.bare;
        // At least the first packet is missing.
        if duplicate && !in_loss && self.duplicates + 1 < self.board.pipe() + self.board.lost() {
            self.duplicates += 1;
            return 1;
        }
        0
    }

    /// RFC 2018 §4: a receiver that holds data out of order says so in each duplicate acknowledgment.
    fn note_blocks(&mut self, input: &AckInput<'_>, una_advanced: bool) {
        if !input.sack.is_empty() || input.dsack.is_some() {
            self.blockless = false;
        } else if !una_advanced && input.bare && input.ack == self.una() && !self.board.is_empty() {
            self.blockless = true;
        }
    }

    /// Feeds the estimator: RFC 6298 §3 (Karn) and RFC 7323 §4. Returns the newest packet's RTT.
    fn sample(&mut self, input: &AckInput<'_>, delivered: &Delivered, una_advanced: bool) -> Option<Duration> {
        self.note_blocks(input, una_advanced);
        if self.answered {
            return None;
        }
        // Other packets that the acknowledgment of a retransmitted one covers may have arrived long ago.
        let prompt = |span: Option<(Instant, Instant)>| span.filter(|_| delivered.repeated.is_none());
        let (oldest, newest) = match (prompt(delivered.acked_sent), prompt(delivered.sacked_sent)) {
            (Some(acked), sacked) => {
                let newest = sacked.map_or(acked.1, |sacked| sacked.1.max(acked.1));
                // Other packets that the answer to a probe covers may have arrived long before the probe, too.
                let oldest = if self.probe.is_answered(self.una()) { acked.1 } else { acked.0 };
                (input.now.since(oldest), input.now.since(newest))
            }
            (None, Some(sacked)) => (input.now.since(sacked.0), input.now.since(sacked.1)),
            (None, None) => {
                // The peer echoes what brought the packet first. If its acknowledgment was lost, it is answering a later copy,
                // and the time since is the timeout's: that would double with each such loss. A later copy is a duplicate, of
                // which a peer with SACK tells (RFC 2883 §4), unless its blocks are stripped.
                let copy = input.dsack.is_some() || !self.sack || self.blockless;
                let late = |sent| copy && delivered.repeated.is_some_and(|last| echo_before(Some(sent), last));
                let (rtt, _) = input.echo.filter(|(_, sent)| una_advanced && !late(*sent))?;
                (rtt, rtt)
            }
        };
        self.rtt.on_sample(input.now, oldest, newest, (self.una(), self.nxt()));
        self.timers.end_backoff();
        Some(newest)
    }

    fn inform_rack(&mut self, input: &AckInput<'_>, delivered: &Delivered, prior_highest: u64) {
        self.rack.on_una(self.una());
        if let Some(newest) = delivered.newest {
            self.rack.on_delivered(input.now, newest);
        }
        if self.sack && delivered.original_end.is_some_and(|end| end < prior_highest) {
            self.rack.on_reordering();
        }
        if let Some(dsack) = input.dsack
            && self.undo.on_dsack(dsack)
        {
            self.rack.on_dsack(self.nxt());
        }
    }

    #[inline(always)]
    fn set_timers(&mut self, now: Instant, delivered: &Delivered, una_advanced: bool) {
        let Some(first) = self.board.first() else { return self.timers.disarm_all() };
        // RFC 6298 §5.3. SACKs of what was sent before the first packet's last transmission are progress too (Linux).
        let progress = una_advanced || delivered.sacked_sent.is_some_and(|(oldest, _)| oldest < first.sent_at);
        // The receiver holds the next packet and does not acknowledge it: it may have discarded it (RFC 2018 §8).
        let reneging = una_advanced && first.sacked;
        if progress {
            self.timers.start_retransmission(now, self.rtt.rto());
            self.await_news(now);
        }
        if reneging {
            let soon = (self.rtt.srtt().unwrap_or_default() / 2).max(RENEGING_MIN);
            self.timers.arm(Timer::Retransmission, self.timers.retransmission().min(now + soon));
        }
        if una_advanced || self.phase != RecoveryPhase::Open {
            self.arm_probe(now);
        }
    }

    /// RFC 8985 §7.2.
    fn arm_probe(&mut self, now: Instant) {
        let able = self.sack && self.probes;
        if !able || self.phase != RecoveryPhase::Open || self.probe != Probe::Idle {
            return self.timers.disarm(Timer::Probe);
        }
        let wait = match self.rtt.srtt() {
            Some(srtt) if self.kind != RecoveryKind::Rack => self.probe_wait_without_rack(srtt),
            Some(srtt) if self.board.outstanding() > 1 => srtt * 2,
            Some(srtt) => srtt * 2 + self.rto_min.min(WORST_DELAYED_ACK),
            None => self.rtt.rto(),
        };
        self.timers.arm(Timer::Probe, (now + wait).min(self.timers.retransmission()));
    }

    /// draft-dukkipati-tcpm-tcp-loss-probe-01 §2.1
    fn probe_wait_without_rack(&self, srtt: Duration) -> Duration {
        if self.board.outstanding() > 1 {
            (srtt * 2).max(PROBE_MIN)
        } else {
            (srtt * 2).max(srtt * 3 / 2 + WORST_DELAYED_ACK)
        }
    }

    /// The longest silence that is no bad sign: two round trips, plus the longest delay of an acknowledgment if only one
    /// packet is outstanding. `None` before the first RTT sample.
    pub fn patience(&self) -> Option<Duration> {
        let srtt = self.rtt.srtt()?;
        let delayed = if self.board.outstanding() > 1 { Duration::ZERO } else { self.rto_min.min(WORST_DELAYED_ACK) };
        Some((srtt * 2).max(srtt + self.rtt.rttvar() * 4).max(SILENCE_MIN) + delayed)
    }

    /// Whether [`Fired::Silence`] is wanted: it takes effect with the next acknowledgment.
    pub fn watch(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// [`Fired::Silence`] is wanted.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.watched
    }

    /// [`Fired::Silence`] comes if nothing is acknowledged from `since` on.
    pub fn await_news(&mut self, since: Instant) {
        if let Some(patience) = self.patience().filter(|_| self.watched) {
            self.timers.arm(Timer::Silence, since + patience);
        }
    }

    /// [`Fired::Silence`] comes again at `at` if nothing is acknowledged until then.
    pub fn look_again(&mut self, at: Instant) {
        self.timers.arm(Timer::Silence, at);
    }

    /// The path answers a probe after timeouts: what is lost is retransmitted now, without waiting for the next one. The
    /// answer itself must be given to [`Self::on_ack`] next: it neither tells an RTT nor that a timeout was spurious. It counts
    /// as a timeout: a peer may answer for ever, and acknowledge nothing (RFC 9293 §3.8.3, R2).
    pub fn retry(&mut self, now: Instant) {
        if self.phase == RecoveryPhase::Loss && !self.board.is_empty() {
            self.timeouts += 1;
            self.mark_timed_out(now);
            self.head_due = true;
            self.answered = true;
            self.timers.start_retransmission(now, self.rtt.rto());
        }
    }

    fn end_round(&mut self) -> bool {
        let ended = self.una() > self.round_end;
        if ended {
            self.round_end = self.nxt();
        }
        ended
    }

    /// When to call [`Self::on_timer`].
    pub fn deadline(&self) -> Instant {
        self.timers.next()
    }

    /// Does what is due at `now`, one thing at a time: ask [`Self::deadline`] again afterwards.
    pub fn on_timer(&mut self, now: Instant) -> Fired {
        match self.timers.expire(now) {
            None => Fired::Nothing,
            Some(Timer::Reorder) => self.on_reorder_timer(now),
            Some(Timer::Probe) => {
                self.give_probe_up();
                self.probe = Probe::Due;
                // RFC 8985 §7.3: the timeout starts afresh.
                self.timers.start_retransmission(now, self.rtt.rto());
                Fired::Probe
            }
            Some(Timer::Silence) => Fired::Silence,
            Some(Timer::Retransmission) => self.on_retransmission_timer(now),
        }
    }

    /// No retransmission timeout lasts longer than `limit` from now on, the one that is running included, unless the
    /// timeout without back-off does.
    pub fn limit_rto(&mut self, limit: Duration) {
        self.timers.set_limit(limit, self.rtt.rto());
    }
}

/// The change of state by an acknowledgment; where it shows that a probe repaired a loss, only the beginning of a recovery stands beside that.
fn beside_repair(change: Option<RecoveryChange>, repaired: bool) -> Option<RecoveryChange> {
    let change = change.filter(|&change| !repaired || change == RecoveryChange::EnterRecovery);
    change.or(repaired.then_some(RecoveryChange::ProbeRepaired))
}
