//! The SYN exchange: what is offered, what was agreed, when to repeat it (RFC 9293 §3.5, RFC 6298 §5).

use super::Both;
use super::ecn::sets_up;
use crate::deadlines::NEVER;
use crate::settings::{DssWidth, Settings, TcpSettings};
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, Options, Segment, Timestamps};

/// Room that timestamps take (RFC 7323 §3.2, with padding).
const STAMPS_LEN: u32 = 12;
/// MSS where the peer names none, with IPv4 and with IPv6 (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
const TCP_HEADER: u32 = 20;
/// A peer that names less (with options: Linux's `tcp_min_snd_mss` of 48) does not make us send crumbs.
const LEAST_PAYLOAD: u32 = 8;
/// Repetitions of a joining SYN: a new attempt comes sooner than a SYN that backed off far.
const JOIN_RETRIES: u32 = 2;

/// Room that options take in a data segment.
fn options_len(timestamps: bool, dss: Option<DssWidth>) -> u32 {
    let dss = match dss {
        None => 0,
        // RFC 8684 §3.3: 4 bytes of header, numbers, offset, length and checksum. An acknowledgment may be wide all the
        // same, and MP_CAPABLE with the first data takes as much (§3.1).
        Some(DssWidth::Four) => 24,
        Some(DssWidth::Eight) => 28,
    };
    dss + if timestamps { STAMPS_LEN } else { 0 }
}

/// The terms that both ends agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
    /// Shift of windows that the peer sends.
    pub send_shift: u8,
    /// Shift of windows that we send.
    pub recv_shift: u8,
    /// Most payload bytes of a data segment that our MSS option permits.
    pub mss: u16,
    /// The peer's MSS option.
    pub peer_mss: u16,
    /// Both ends scale their windows.
    pub scaling: bool,
}

/// Progress of the SYN exchange.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// The SYN (or SYN/ACK, or the third ACK of a join) must go out.
    pub due: bool,
    /// How often it was repeated.
    pub repeats: u32,
    /// When to repeat it.
    pub deadline: Instant,
    timeout: Duration,
    /// The greatest timeout.
    longest: Duration,
    /// The peer answered a SYN with something else: one more repetition follows the last.
    answered: bool,
    /// Most repetitions.
    pub retries: u32,
    /// When it was first sent.
    pub sent: Option<Instant>,
    /// The SYN/ACK was repeated since: because time passed, or for a SYN that was repeated.
    again: bool,
    /// The peer proved that it holds all it needs: data may flow.
    pub confirmed: bool,
    /// We sent the SYN.
    pub active: bool,
    /// The peer's last SYN had no MPTCP option: the answer has none.
    pub bare: bool,
    /// A third ACK with MP_CAPABLE or MP_JOIN is to be sent.
    pub third_ack: bool,
    /// Random numbers of a join: ours, the peer's.
    pub nonces: Both<u32>,
    /// Address IDs of a join: ours, the peer's.
    pub address_ids: Both<u8>,
}

impl Handshake {
    pub fn new(tcp: &TcpSettings, now: Instant) -> Self {
        Self {
            due: false,
            repeats: 0,
            deadline: NEVER,
            timeout: tcp.rto_initial,
            longest: tcp.rto_max,
            answered: false,
            retries: tcp.syn_retries,
            sent: None,
            again: false,
            confirmed: false,
            active: false,
            bare: false,
            third_ack: false,
            nonces: Both::default(),
            address_ids: Both::default(),
        }
        .started(now)
    }

    fn started(mut self, now: Instant) -> Self {
        self.deadline = now + self.timeout;
        self
    }

    /// Our SYN joins. `pause` between attempts is given once it is the greatest: the round trip may be longer than an attempt. Then this
    /// one has all repetitions of a SYN, no further apart than attempts.
    pub fn joins(&mut self, pause: Option<Duration>) {
        match pause {
            Some(pause) => self.longest = self.longest.min(pause),
            None => self.retries = self.retries.min(JOIN_RETRIES),
        }
    }

    /// The SYN/ACK left before this was made: first at `since`, `answers` times in all, of them `repeats` because time passed.
    pub fn resume(&mut self, since: Instant, answers: u8, repeats: u8, now: Instant) {
        self.due = false;
        self.sent = Some(since);
        self.again = answers > 1;
        self.repeats = repeats.into();
        self.deadline = now + self.timeout;
    }

    /// A handshake segment left.
    pub fn on_sent(&mut self, now: Instant) {
        self.due = false;
        self.again = self.sent.is_some();
        self.sent.get_or_insert(now);
        self.deadline = now + self.timeout;
    }

    /// The time is over: repeat with twice the timeout, unless that was done often enough (`false`).
    pub fn on_timeout(&mut self) -> bool {
        if self.repeats >= self.retries && !core::mem::take(&mut self.answered) {
            return false;
        }
        self.repeats += 1;
        // RFC 6298 §5.5
        self.timeout = (self.timeout * 2).min(self.longest);
        self.due = true;
        self.deadline = NEVER;
        true
    }

    /// The peer answers, though not our SYN: it is repeated after `timeout`, however often and far it had backed off.
    pub fn repeat_in(&mut self, timeout: Duration, now: Instant) {
        self.answered = true;
        self.timeout = timeout;
        self.deadline = self.deadline.min(now + timeout);
    }

    /// Nothing more to repeat.
    pub fn complete(&mut self) {
        self.due = false;
        self.deadline = NEVER;
    }

    /// The RTT of an exchange that was not repeated (Karn: RFC 6298 §3).
    pub fn rtt(&self, now: Instant) -> Option<Duration> {
        self.sent.filter(|_| !self.again).map(|sent| now.since(sent))
    }
}

/// As much of `mss` as an MSS option holds.
fn whole(mss: u32) -> u16 {
    mss.min(u16::MAX.into()) as u16
}

/// The smallest shift with which `buffer` fits a 16-bit window (RFC 7323 §2.3).
fn shift_for(buffer: u64) -> u8 {
    (0..14).find(|shift| buffer >> shift <= 0xffff).unwrap_or(14)
}

impl Terms {
    /// The offer of our SYN.
    pub fn offer(settings: &Settings) -> Self {
        Self {
            timestamps: settings.tcp.timestamps,
            sack: settings.tcp.sack,
            ecn: settings.tcp.ecn,
            send_shift: 0,
            recv_shift: shift_for(settings.recv_buffer),
            mss: whole(settings.mss),
            peer_mss: DEFAULT_MSS,
            scaling: true,
        }
    }

    /// The same over a path that brings segments of at most `mss` payload bytes.
    pub fn within(self, mss: Option<u32>) -> Self {
        Self { mss: self.mss.min(mss.map_or(u16::MAX, whole)), ..self }
    }

    /// The terms agreed on after `syn`, the peer's SYN or SYN/ACK, which came over IPv6 or IPv4.
    pub fn agree(self, syn: &Segment, v6: bool) -> Self {
        let options = &syn.options;
        let scaled = options.window_scale();
        let default_mss = if v6 { DEFAULT_MSS_V6 } else { DEFAULT_MSS };
        Self {
            timestamps: self.timestamps && options.timestamps().is_some(),
            sack: self.sack && options.sack_permitted(),
            ecn: self.ecn && sets_up(syn),
            // RFC 7323 §2.2: both must offer scaling, §2.3: at most 14
            send_shift: scaled.map_or(0, |s| s.min(14)),
            recv_shift: scaled.map_or(0, |_| self.recv_shift),
            mss: self.mss,
            peer_mss: options.mss().unwrap_or(default_mss),
            scaling: scaled.is_some(),
        }
    }

    /// The control bits of our SYN, which `repeats` others went before.
    pub fn flags_of_syn(self, repeats: u32) -> Flags {
        // RFC 3168 §6.1.1: an ECN-setup SYN. §6.1.1.1: where none is answered, the bits may be why.
        if self.ecn && repeats == 0 { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN }
    }

    /// The control bits of our SYN/ACK.
    pub fn flags_of_answer(self) -> Flags {
        let flags = Flags::SYN | Flags::ACK;
        // RFC 3168 §6.1.1: an ECN-setup SYN-ACK
        if self.ecn { flags | Flags::ECE } else { flags }
    }

    /// Sets the options of our SYN (what is offered) or SYN/ACK (what is agreed).
    pub fn write(self, options: &mut Options, settings: &Settings, stamps: Timestamps) {
        // RFC 9293 §3.7.1: the MSS does not count options, so that the peer's full segments have our `mss` of payload. By
        // default that makes an IPv6 packet of 1500 bytes, and an IPv4 packet of 1480.
        let reserve = options_len(self.timestamps, settings.mptcp.then_some(settings.dss));
        options.set_mss(whole(u32::from(self.mss) + reserve));
        if self.timestamps {
            options.set_timestamps(stamps);
        }
        if self.sack {
            options.set_sack_permitted();
        }
        if self.scaling {
            options.set_window_scale(self.recv_shift);
        }
    }

    /// Payload of a full data segment in an IP packet of `mtu` bytes.
    pub fn payload_in(self, mtu: u32, v6: bool, settings: &Settings, multipath: bool) -> u32 {
        let options = options_len(self.timestamps, multipath.then_some(settings.dss));
        let headers = TCP_HEADER + if v6 { IPV6_HEADER } else { IPV4_HEADER };
        mtu.saturating_sub(headers + options).max(LEAST_PAYLOAD)
    }

    /// Largest payload of a data segment.
    pub fn payload_limit(self, settings: &Settings, multipath: bool) -> u32 {
        let options = options_len(self.timestamps, multipath.then_some(settings.dss));
        settings.mss.min(u32::from(self.peer_mss).saturating_sub(options).max(LEAST_PAYLOAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_hold_the_buffer() {
        assert_eq!(shift_for(65_535), 0);
        assert_eq!(shift_for(65_536), 1);
        assert_eq!(shift_for(16 << 20), 9);
        assert_eq!(shift_for(u64::MAX), 14);
    }

    #[test]
    fn terms_are_what_both_want() {
        let settings = Settings::default();
        let ours = Terms::offer(&settings);
        let mut theirs = Options::new();
        theirs.set_mss(1460);
        theirs.set_sack_permitted();
        let agreed = ours.agree(&Segment { options: theirs, ..Segment::default() }, false);
        assert!(agreed.sack && !agreed.timestamps && !agreed.ecn);
        assert_eq!((agreed.send_shift, agreed.recv_shift), (0, 0));
        assert_eq!(agreed.payload_limit(&settings, true), 1400);
        let stamped = Terms { timestamps: true, ..agreed };
        let tight = Settings { mss: 9000, ..settings };
        assert_eq!(stamped.payload_limit(&tight, true), 1420);
        assert_eq!(stamped.payload_limit(&tight, false), 1448);
        let narrow = Settings { dss: DssWidth::Four, ..tight };
        assert_eq!(stamped.payload_limit(&narrow, true), 1424);
        assert_eq!(Terms { peer_mss: 0, ..stamped }.payload_limit(&narrow, true), 8);
    }

    #[test]
    fn the_announced_mss_fits_an_ethernet() {
        let announced = |settings: &Settings| {
            let mut options = Options::new();
            Terms::offer(settings).write(&mut options, settings, Timestamps { val: 1, ecr: 0 });
            options.mss()
        };
        assert_eq!(announced(&Settings::default()), Some(1440));
        assert_eq!(announced(&Settings { mptcp: false, ..Settings::default() }), Some(1412));
        assert_eq!(announced(&Settings { dss: DssWidth::Four, ..Settings::default() }), Some(1436));
        let bare = TcpSettings { timestamps: false, ..TcpSettings::default() };
        assert_eq!(announced(&Settings { tcp: bare, mptcp: false, ..Settings::default() }), Some(1400));
        assert_eq!(announced(&Settings { mss: 70_000, ..Settings::default() }), Some(0xffff));
    }

    #[test]
    fn repeats_back_off_and_end() {
        let mut h = Handshake::new(&TcpSettings { syn_retries: 2, ..TcpSettings::default() }, Instant::ZERO);
        h.on_sent(Instant::ZERO);
        assert_eq!(h.deadline, Instant::from_millis(1000));
        assert_eq!(h.rtt(Instant::from_millis(30)), Some(Duration::from_millis(30)));
        assert!(h.on_timeout());
        h.on_sent(Instant::from_millis(1000));
        assert_eq!(h.deadline, Instant::from_millis(3000));
        assert_eq!(h.rtt(Instant::from_millis(1030)), None);
        assert!(h.on_timeout());
        assert!(!h.on_timeout());
        // A peer that answers with something else is there.
        h.repeat_in(Duration::from_secs(1), Instant::from_millis(3000));
        assert!(h.on_timeout() && !h.on_timeout());
    }
}
