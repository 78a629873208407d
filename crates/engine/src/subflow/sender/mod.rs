use crate::settings::TcpSettings;
use anabranch_trace::RecoveryPhase;
use anabranch_units::*;
use bytes::Bytes;
#[derive(Clone, Debug)]
pub struct Sent {
    pub seq: Range,
    pub payload: Bytes,
    pub data: Range,
    pub data_fin: bool,
    pub fin: bool,
}
impl Sent {
    pub fn new(seq: Range, payload: Bytes, data: Range, data_fin: bool) -> Self {
        todo!()
    }
    pub fn fin(at: u64, data: Range) -> Self {
        todo!()
    }
}
pub struct AckInput<'a> {
    pub now: Instant,
    pub ack: u64,
    pub sack: &'a [Range],
    pub dsack: Option<Range>,
    pub echo: Option<(Duration, Instant)>,
    pub window_update: bool,
    pub has_payload: bool,
}
pub struct AckOutcome {
    pub acked_packets: u32,
    pub acked_bytes: u64,
    pub una_advanced: bool,
    pub rtt: Option<Duration>,
    pub newly_lost: u32,
    pub prior_in_flight: u32,
    pub change: Option<Change>,
    pub round_ended: bool,
    pub may_grow: bool,
    pub useless: bool,
}
#[derive(Clone, Copy, Debug)]
pub enum Change {
    EnterRecovery,
    ExitRecovery,
    EnterDisorder,
    LeaveDisorder,
    LeaveLoss,
    Undo,
}
pub enum Fired {
    Nothing,
    ReorderTimer { newly_lost: u32, change: Option<Change> },
    Probe,
    Timeout { n: u32, newly_lost: u32 },
}
#[derive(Debug)]
pub struct RttEstimator;
impl RttEstimator {
    pub fn srtt(&self) -> Option<Duration> {
        todo!()
    }
    pub fn rttvar(&self) -> Duration {
        todo!()
    }
    pub fn latest(&self) -> Option<Duration> {
        todo!()
    }
    pub fn min(&self) -> Option<Duration> {
        todo!()
    }
    pub fn min_srtt(&self) -> Option<Duration> {
        todo!()
    }
    pub fn max_srtt(&self) -> Option<Duration> {
        todo!()
    }
    pub fn rto(&self) -> Duration {
        todo!()
    }
}
#[derive(Debug)]
pub struct Sender;
impl Sender {
    pub fn new(settings: &TcpSettings, sack: bool, ts: bool) -> Self {
        Sender
    }
    pub fn sample_handshake(&mut self, rtt: Duration) {}
    pub fn una(&self) -> u64 {
        1
    }
    pub fn nxt(&self) -> u64 {
        1
    }
    pub fn in_flight(&self) -> u32 {
        0
    }
    pub fn in_flight_bytes(&self) -> u64 {
        0
    }
    pub fn is_empty(&self) -> bool {
        true
    }
    pub fn phase(&self) -> RecoveryPhase {
        todo!()
    }
    pub fn rtt(&self) -> &RttEstimator {
        todo!()
    }
    pub fn rto(&self) -> Duration {
        todo!()
    }
    pub fn loss_estimate(&self) -> f64 {
        0.
    }
    pub fn on_ack(&mut self, i: &AckInput) -> AckOutcome {
        todo!()
    }
    pub fn begin_recovery(&mut self, s: u32) {}
    pub fn effective_window(&self, c: u32) -> u32 {
        c
    }
    pub fn next_lost(&self) -> Option<&Sent> {
        None
    }
    pub fn on_sent(&mut self, n: Instant, s: Sent) {}
    pub fn on_retransmitted(&mut self, n: Instant, s: u64) {}
    pub fn last(&self) -> Option<&Sent> {
        None
    }
    pub fn first(&self) -> Option<&Sent> {
        None
    }
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    pub fn on_timer(&mut self, n: Instant) -> Fired {
        todo!()
    }
    pub fn limit_rto(&mut self, d: Duration) {}
}
