//! Facts that schedulers from elsewhere read of a connection and of its paths: one table, from which Python's objects, the
//! playground's, the observations of the environment for agents and the views of a timeline's decisions are made. A row has the name in
//! Python, the name in JavaScript, the type, a line about it, and how it is read.
//!
//! [`path_fields`](crate::path_fields) and [`view_fields`](crate::view_fields) give all rows to a macro of the caller.

use anabranch_engine::schedule::{PathView, View};
use anabranch_trace::RecoveryPhase;
use anabranch_units::{Duration, Instant, Rate};

/// The form of the number that represents a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The number itself; NaN = unknown.
    Number,
    /// 1 = yes, 0 = no.
    Flag,
    /// The place of a word, from 0.
    Word(&'static [&'static str]),
}

/// A value that a number can represent: times in seconds, rates in bits per second.
pub trait Fact {
    /// The form of the number.
    const FORM: Form = Form::Number;
    /// The number.
    fn number(self) -> f64;
}

impl Fact for bool {
    const FORM: Form = Form::Flag;
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

impl Fact for u32 {
    fn number(self) -> f64 {
        self.into()
    }
}

impl Fact for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Fact for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Fact for Duration {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Fact for Instant {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Fact for Rate {
    fn number(self) -> f64 {
        self.as_bps() as f64
    }
}

impl Fact for RecoveryPhase {
    const FORM: Form = Form::Word(&PHASES);
    fn number(self) -> f64 {
        self as u8 as f64
    }
}

impl<T: Fact> Fact for Option<T> {
    const FORM: Form = T::FORM;
    fn number(self) -> f64 {
        self.map_or(f64::NAN, T::number)
    }
}

/// The words of [`RecoveryPhase`], in its order.
pub const PHASES: [&str; 4] = ["open", "disorder", "recovery", "loss"];

/// A row of the table, without the way to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the attribute in Python: of a time, with `_ns`.
    pub python: &'static str,
    /// Name of the property in JavaScript.
    pub javascript: &'static str,
    /// The form of its number.
    pub form: Form,
    /// Meaning of the field.
    pub about: &'static str,
}

impl Field {
    /// Name of its number in Python: as the attribute, but of a time in seconds with `_s`.
    pub fn number_name(&self) -> String {
        self.python.strip_suffix("_ns").map_or_else(|| self.python.to_owned(), |time| format!("{time}_s"))
    }
}

/// Gives the facts of a path to the macro `$made`. Windows and counts are in packets of `mss` bytes.
#[macro_export]
macro_rules! path_fields {
    ($made:ident) => {
        $made! {
            usable, "usable", bool, "Established and not failing: it may be given data.", |path| path.usable;
            backup, "backup", bool, "Only to be used when no other path is usable.", |path| path.backup;
            eligible, "eligible", bool, "It may take a segment now.", |path| path.eligible();
            room, "room", u32, "Packets that the window has room for, beyond those in flight and queued.", |path| path.room();
            mss, "mss", u32, "Largest payload in bytes.", |path| path.mss;
            cwnd, "cwnd", u32, "Packets that may be in flight now.", |path| path.cwnd;
            ssthresh, "ssthresh", Option<u32>, "Slow-start threshold in packets; unknown = none yet.",
                |path| (path.ssthresh != u32::MAX).then_some(path.ssthresh);
            in_flight, "inFlight", u32, "Packets sent, neither acknowledged, SACKed nor marked lost.", |path| path.in_flight;
            in_flight_bytes, "inFlightBytes", u64, "Payload bytes sent and not acknowledged at subflow level.",
                |path| path.in_flight_bytes;
            queued, "queued", u32, "Packets bound to the path and not yet sent.", |path| path.queued;
            queued_bytes, "queuedBytes", u64, "Bytes bound to the path and not yet sent.", |path| path.queued_bytes;
            srtt_ns, "srtt", Option<Duration>, "Smoothed RTT; unknown before the first sample.", |path| path.srtt;
            rtt_or_max_ns, "rttOrMax", Duration, "Smoothed RTT for comparisons: unknown counts as longest.",
                |path| path.rtt_or_max();
            rttvar_ns, "rttvar", Duration, "RTT variation; zero before the first sample.", |path| path.rttvar;
            latest_rtt_ns, "latestRtt", Option<Duration>, "The newest RTT sample.", |path| path.latest_rtt;
            min_rtt_ns, "minRtt", Option<Duration>, "Least RTT sample of the subflow.", |path| path.min_rtt;
            rto_ns, "rto", Duration, "Retransmission timeout without back-off.", |path| path.rto;
            loss, "loss", f64, "Estimated probability of losing a packet.", |path| path.loss;
            recovery, "recovery", RecoveryPhase, "Phase of loss recovery: `open`, `disorder`, `recovery` or `loss`.",
                |path| path.recovery;
            pacing_rate_bps, "pacingRate", Option<Rate>,
                "Bits per second at which the path is paced, or would be by Linux's rule; unknown without an RTT sample.",
                |path| path.pacing_rate();
            window_rate, "rate", f64, "Bytes per second that the window admits: cwnd/srtt; zero without an RTT sample.",
                |path| path.window_rate();
            capacity, "capacity", Option<f64>,
                "Bytes per second of its bottleneck by its acknowledgments; unknown until the bottleneck was busy between two of them, \
                 and unless the scheduler measures capacities.",
                |path| path.capacity_rate();
            capacity_spread, "spread", Option<f64>,
                "How much the capacity varies: the standard deviation of the time per byte over its mean; unknown as the capacity.",
                |path| path.capacity.and_then(|capacity| capacity.spread());
            least_forward_ns, "leastForward", Option<Duration>,
                "Least forward delay by the clocks of both hosts: only differences between paths mean anything; unknown before the \
                 first sample, and unless the scheduler measures capacities.",
                |path| path.least_forward();
            last_sent_ns, "lastSent", Option<Instant>,
                "When the newest segment left; unknown before the first, and unless the scheduler measures capacities.",
                |path| path.capacity.and_then(|capacity| capacity.last_sent());
            elsewhere_bytes, "elsewhere", u64,
                "Bytes that the host's other connections have in flight or queued between the same two addresses; zero unless their \
                 schedulers and this one measure capacities.",
                |path| path.elsewhere();
            used_bytes, "usedBytes", u64, "Payload bytes that the connection has sent on it, repetitions included.",
                |path| path.used_bytes;
            price, "price", f64, "Price per byte, as the scenario says.", |path| path.policy.price;
            weight, "weight", Option<f64>, "Share of the traffic in the scenario; unknown = not said.", |path| path.policy.weight;
        }
    };
}

/// Gives the facts of a connection to the macro `$made`.
#[macro_export]
macro_rules! view_fields {
    ($made:ident) => {
        $made! {
            now_ns, "now", Instant, "The virtual time since the run began.", |view| view.now();
            backlog, "backlog", u64, "Bytes written and bound to no subflow.", |view| view.backlog().bytes();
            outstanding, "outstanding", u64, "Bytes sent and not acknowledged at connection level, counted once.",
                |view| view.outstanding().bytes();
            stranded, "stranded", u64, "Bytes stranded by a timeout or a lost subflow, to be retransmitted elsewhere.",
                |view| view.rescue().bytes();
            window_left, "window", u64, "Bytes that the peer's window admits beyond all data that was bound.",
                |view| view.window_left();
            send_window, "sendWindow", u64, "The peer's whole window in bytes, as last advertised.", |view| view.send_window();
            window_edge, "windowEdge", u64, "First offset that the peer's window does not admit.", |view| view.window_edge();
            window_blocked, "windowBlocked", bool, "New data waits and the peer's window does not admit its next segment.",
                |view| view.window_blocked();
            data_acked, "dataAcked", u64, "First offset that the peer has not acknowledged at connection level.",
                |view| view.data_acked();
            written, "written", u64, "First offset not yet written by the application.", |view| view.written();
            write_ended, "writeEnded", bool, "The application will write no more.", |view| view.write_ended();
            send_buffer, "sendBuffer", u64, "Bytes that the application may have written and the peer not yet acknowledged.",
                |view| view.send_buffer();
            send_buffer_full, "sendBufferFull", bool, "The application wants to write and the send buffer is full.",
                |view| view.send_buffer_full();
            known_paths, "known", u32, "Paths known beforehand, whether or not they have a subflow yet.",
                |view| view.known_paths() as u32;
        }
    };
}

macro_rules! paths {
    ($($python:ident, $javascript:literal, $kind:ty, $about:literal, |$path:ident| $read:expr;)*) => {
        /// The facts of a path.
        pub const PATH_FIELDS: &[Field] = &[$(Field {
            python: stringify!($python),
            javascript: $javascript,
            form: <$kind as Fact>::FORM,
            about: $about,
        }),*];

        /// Facts of a path, each under its name in Python.
        pub mod of_path {
            use super::*;

            $(
                #[doc = $about]
                #[inline]
                pub fn $python($path: &PathView) -> $kind {
                    $read
                }
            )*
        }

        /// The numbers of a path, in the order of [`PATH_FIELDS`].
        pub fn path_numbers(path: &PathView) -> [f64; PATH_FIELDS.len()] {
            [$(of_path::$python(path).number()),*]
        }
    };
}

macro_rules! views {
    ($($python:ident, $javascript:literal, $kind:ty, $about:literal, |$view:ident| $read:expr;)*) => {
        /// The facts of a connection.
        pub const VIEW_FIELDS: &[Field] = &[$(Field {
            python: stringify!($python),
            javascript: $javascript,
            form: <$kind as Fact>::FORM,
            about: $about,
        }),*];

        /// Facts of a connection, each under its name in Python.
        pub mod of_view {
            use super::*;

            $(
                #[doc = $about]
                #[inline]
                pub fn $python($view: &View) -> $kind {
                    $read
                }
            )*
        }

        /// The numbers of a connection, in the order of [`VIEW_FIELDS`].
        pub fn view_numbers(view: &View) -> [f64; VIEW_FIELDS.len()] {
            [$(of_view::$python(view).number()),*]
        }
    };
}

path_fields!(paths);
view_fields!(views);

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::PathId;

    fn number(path: &PathView, name: &str) -> f64 {
        let place = PATH_FIELDS.iter().position(|field| field.javascript == name).expect("it is in the table");
        path_numbers(path)[place]
    }

    #[test]
    fn a_path_is_read_in_seconds_and_what_is_unknown_is_nan() {
        let path = PathView::new(PathId(1), 1400);
        for unknown in ["srtt", "latestRtt", "minRtt", "ssthresh", "capacity", "lastSent", "pacingRate", "weight"] {
            assert!(number(&path, unknown).is_nan(), "{unknown}");
        }
        let srtt = Some(Duration::from_millis(40));
        let path = PathView { srtt, ssthresh: 7, recovery: RecoveryPhase::Recovery, backup: true, ..path };
        let read = ["srtt", "ssthresh", "backup", "recovery", "rate"].map(|name| number(&path, name));
        assert_eq!(read, [0.04, 7.0, 1.0, 2.0, 350_000.0]);
    }

    #[test]
    fn no_name_stands_twice_and_every_phase_has_its_word() {
        for fields in [PATH_FIELDS, VIEW_FIELDS] {
            for name in [|field: &Field| field.python, |field: &Field| field.javascript] {
                let mut names: Vec<_> = fields.iter().map(name).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), fields.len());
            }
        }
        for (phase, word) in
            [RecoveryPhase::Open, RecoveryPhase::Disorder, RecoveryPhase::Recovery, RecoveryPhase::Loss]
                .iter()
                .zip(PHASES)
        {
            assert_eq!(format!("{phase:?}").to_lowercase(), word);
            assert_eq!(PHASES[phase.number() as usize], word);
        }
    }
}
