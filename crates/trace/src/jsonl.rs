//! Events as lines of JSON.

use crate::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Duration, Instant, Range};
use core::fmt::{self, Debug, Display, Write as _};
use std::io;

/// Writes one JSON object per event and line, with field names in qlog's manner:
///
/// ```json
/// {"time":12.345678,"name":"transport:data_sent","host":"server","connection":0,"path":1,"data":{"seq":1,"start":0,"end":1400,"kind":"first"}}
/// ```
///
/// `time` is in milliseconds with all its nanoseconds. `host` is absent for events of the network. `data` holds the
/// fields of the event: byte ranges `[start, end)` are offsets in the data sequence; `_ms` are milliseconds; windows
/// and queue lengths are packets unless they end in `_bytes`. Names and their categories:
///
/// - `application`: `written`, `delivered` {start, end}; `write_end` {offset}; `segment_requested` {bps, size}
/// - `transport`: `data_sent` {seq, start, end, kind}; `control_sent` {flags, again}; `data_arrived` {start, end, new,
///   ofo}; `subflow_ofo` {bytes}; `data_acked` {offset}; `window_blocked` {blocked}
/// - `recovery`: `window` {cwnd, ssthresh, in_flight, srtt_ms, rtt_ms}, the last three only where known; `phase`
///   {phase}; `lost` {packets}; `timeout` {n}; `tail_loss_probe`; `undo`; `idle_restart`
/// - `scheduler`: `penalised`; `stall`; `value` {name, value}; `bound_ahead` {since}, right behind the `data_sent` it
///   is of
/// - `connectivity`: `path` {state}; `connected` {mptcp}; `fallback`; `closed` {reason}; `violation` {rule}
/// - `network`: `enqueued` {direction, size, queue, queue_bytes}; `departed` {direction, size}; `dropped` {direction,
///   size, cause}
///
/// Lines are in order of time, except for `departed`, which may be late. After the sink's first error nothing more is
/// written; [`JsonLines::finish`] returns it.
#[derive(Debug)]
pub struct JsonLines<W> {
    sink: W,
    line: String,
    error: Option<io::Error>,
}

impl<W: io::Write> JsonLines<W> {
    /// Writes to `sink`; give it a buffer.
    pub fn new(sink: W) -> Self {
        Self { sink, line: String::new(), error: None }
    }

    /// Flushes and returns the sink, or its first error.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.sink.flush().map(|()| self.sink),
        }
    }
}

impl<W: io::Write> Recorder for JsonLines<W> {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if self.error.is_some() {
            return;
        }
        self.line.clear();
        write_line(&mut self.line, now, origin, event).expect("a String takes everything");
        self.error = self.sink.write_all(self.line.as_bytes()).err();
    }
}

fn write_line(out: &mut String, now: Instant, origin: Origin, event: &Event) -> fmt::Result {
    write!(out, "{{\"time\":{},\"name\":\"{}\"", Millis(now.as_nanos()), name(event))?;
    if let Some(host) = origin.host {
        write!(out, ",\"host\":\"{}\"", Snake(host))?;
    }
    write!(out, ",\"connection\":{},\"path\":{},\"data\":{{", origin.connection.0, origin.path)?;
    write_data(out, event)?;
    out.write_str("}}\n")
}

const fn name(event: &Event) -> &'static str {
    match event {
        Event::Written(_) => "application:written",
        Event::Delivered(_) => "application:delivered",
        Event::WriteEnd(_) => "application:write_end",
        Event::SegmentRequested { .. } => "application:segment_requested",
        Event::DataSent { .. } => "transport:data_sent",
        Event::BoundAhead { .. } => "scheduler:bound_ahead",
        Event::ControlSent { .. } => "transport:control_sent",
        Event::DataArrived { .. } => "transport:data_arrived",
        Event::SubflowOfo(_) => "transport:subflow_ofo",
        Event::DataAcked(_) => "transport:data_acked",
        Event::WindowBlocked(_) => "transport:window_blocked",
        Event::Window(_) => "recovery:window",
        Event::Recovery(_) => "recovery:phase",
        Event::Lost { .. } => "recovery:lost",
        Event::Timeout { .. } => "recovery:timeout",
        Event::TailLossProbe => "recovery:tail_loss_probe",
        Event::PathProbe => "recovery:path_probe",
        Event::Marked => "recovery:marked",
        Event::Undo => "recovery:undo",
        Event::IdleRestart => "recovery:idle_restart",
        Event::Penalised => "scheduler:penalised",
        Event::Stall => "scheduler:stall",
        Event::SchedulerValue { .. } => "scheduler:value",
        Event::Scheduler(_) => "scheduler:set",
        Event::Path(_) => "connectivity:path",
        Event::Connected(_) => "connectivity:connected",
        Event::Fallback => "connectivity:fallback",
        Event::Closed(_) => "connectivity:closed",
        Event::Violation(_) => "connectivity:violation",
        Event::Link { what: LinkEvent::Enqueued { .. }, .. } => "network:enqueued",
        Event::Link { what: LinkEvent::Departed, .. } => "network:departed",
        Event::Link { what: LinkEvent::Dropped(_), .. } => "network:dropped",
        Event::Link { what: LinkEvent::Marked, .. } => "network:marked",
    }
}

fn write_data(out: &mut String, event: &Event) -> fmt::Result {
    match *event {
        Event::Written(Range { start, end }) | Event::Delivered(Range { start, end }) => {
            write!(out, "\"start\":{start},\"end\":{end}")
        }
        Event::WriteEnd(offset) | Event::DataAcked(offset) => write!(out, "\"offset\":{offset}"),
        Event::SubflowOfo(bytes) => write!(out, "\"bytes\":{bytes}"),
        Event::SegmentRequested { bps, size } => write!(out, "\"bps\":{bps},\"size\":{size}"),
        Event::DataSent { seq, data: Range { start, end }, kind } => {
            write!(out, "\"seq\":{seq},\"start\":{start},\"end\":{end},\"kind\":\"{}\"", Snake(kind))
        }
        Event::BoundAhead { since } => write!(out, "\"since\":{}", Millis(since.as_nanos())),
        Event::ControlSent { flags, again } => write!(out, "\"flags\":{flags},\"again\":{again}"),
        Event::DataArrived { data: Range { start, end }, new, ofo } => {
            write!(out, "\"start\":{start},\"end\":{end},\"new\":{new},\"ofo\":{ofo}")
        }
        Event::WindowBlocked(blocked) => write!(out, "\"blocked\":{blocked}"),
        Event::Window(w) => {
            write!(out, "\"cwnd\":{},\"in_flight\":{}", w.cwnd, w.in_flight)?;
            if w.ssthresh != u32::MAX {
                write!(out, ",\"ssthresh\":{}", w.ssthresh)?;
            }
            if w.srtt != Duration::ZERO {
                write!(out, ",\"srtt_ms\":{}", Millis(w.srtt.as_nanos()))?;
            }
            w.rtt.map_or(Ok(()), |rtt| write!(out, ",\"rtt_ms\":{}", Millis(rtt.as_nanos())))
        }
        Event::Recovery(phase) => write!(out, "\"phase\":\"{}\"", Snake(phase)),
        Event::Lost { packets } => write!(out, "\"packets\":{packets}"),
        Event::Timeout { n } => write!(out, "\"n\":{n}"),
        Event::SchedulerValue { name, micro } => {
            let sign = if micro < 0 { "-" } else { "" };
            let (whole, rest) = (micro.unsigned_abs() / 1_000_000, micro.unsigned_abs() % 1_000_000);
            write!(out, "\"name\":\"{}\",\"value\":{sign}{whole}.{rest:06}", name.escape_default())
        }
        Event::Scheduler(name) => write!(out, "\"name\":\"{name}\""),
        Event::Path(state) => write!(out, "\"state\":\"{}\"", Snake(state)),
        Event::Connected(mptcp) => write!(out, "\"mptcp\":{mptcp}"),
        Event::Closed(reason) => write!(out, "\"reason\":\"{}\"", Snake(reason)),
        Event::Violation(rule) => write!(out, "\"rule\":\"{}\"", Snake(rule)),
        Event::Link { direction, size, what } => write_link(out, direction, size, what),
        Event::TailLossProbe
        | Event::PathProbe
        | Event::Marked
        | Event::Undo
        | Event::IdleRestart
        | Event::Penalised
        | Event::Stall
        | Event::Fallback => Ok(()),
    }
}

fn write_link(out: &mut String, direction: Direction, size: u32, what: LinkEvent) -> fmt::Result {
    write!(out, "\"direction\":\"{}\",\"size\":{size}", Snake(direction))?;
    match what {
        LinkEvent::Enqueued { queue_packets, queue_bytes } => {
            write!(out, ",\"queue\":{queue_packets},\"queue_bytes\":{queue_bytes}")
        }
        LinkEvent::Departed | LinkEvent::Marked => Ok(()),
        LinkEvent::Dropped(cause) => write!(out, ",\"cause\":\"{}\"", Snake(cause)),
    }
}

/// Nanoseconds shown as milliseconds, exactly.
struct Millis(u64);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The name of a variant without fields, in snake case.
struct Snake<T>(T);

impl<T: Debug> Display for Snake<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, c) in format!("{:?}", self.0).char_indices() {
            if c.is_ascii_uppercase() && i > 0 {
                f.write_char('_')?;
            }
            f.write_char(c.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DropCause, RecoveryPhase, SchedulerName, SendKind, Violation, WindowChange};
    use anabranch_units::{ConnId, PathId, Side};

    const SERVER: Origin = Origin { host: Some(Side::Server), connection: ConnId(0), path: PathId(1) };
    const NETWORK: Origin = Origin { host: None, connection: ConnId(0), path: PathId(2) };

    fn line(origin: Origin, event: Event) -> String {
        let mut lines = JsonLines::new(Vec::new());
        lines.record(Instant::from_nanos(12_345_678), origin, &event);
        String::from_utf8(lines.finish().unwrap()).unwrap()
    }

    #[test]
    fn a_line_is_as_documented() {
        let sent = Event::DataSent { seq: 1, data: Range::new(0, 1400), kind: SendKind::First };
        assert_eq!(
            line(SERVER, sent),
            "{\"time\":12.345678,\"name\":\"transport:data_sent\",\"host\":\"server\",\"connection\":0,\"path\":1,\
             \"data\":{\"seq\":1,\"start\":0,\"end\":1400,\"kind\":\"first\"}}\n"
        );
        let dropped =
            Event::Link { direction: Direction::Down, size: 1500, what: LinkEvent::Dropped(DropCause::Outage) };
        assert_eq!(
            line(NETWORK, dropped),
            "{\"time\":12.345678,\"name\":\"network:dropped\",\"connection\":0,\"path\":2,\
             \"data\":{\"direction\":\"down\",\"size\":1500,\"cause\":\"outage\"}}\n"
        );
    }

    #[test]
    fn unknown_values_are_absent() {
        let window = WindowChange {
            cwnd: 10,
            ssthresh: u32::MAX,
            in_flight: 3,
            srtt: Duration::ZERO,
            rtt: Some(Duration::from_micros(1500)),
        };
        assert!(line(SERVER, Event::Window(window)).contains("{\"cwnd\":10,\"in_flight\":3,\"rtt_ms\":1.500000}"));
    }

    #[test]
    fn every_line_is_an_object() {
        let events = [
            Event::TailLossProbe,
            Event::PathProbe,
            Event::Recovery(RecoveryPhase::Disorder),
            Event::Violation(Violation::BlindSyn),
            Event::Scheduler(SchedulerName { base: "minrtt", suffix: "+pr" }),
            Event::SchedulerValue { name: "lambda", micro: -1_250_000 },
            Event::BoundAhead { since: Instant::from_millis(7) },
            Event::Link {
                direction: Direction::Up,
                size: 60,
                what: LinkEvent::Enqueued { queue_packets: 2, queue_bytes: 120 },
            },
        ];
        let data = [
            "{}",
            "{}",
            "{\"phase\":\"disorder\"}",
            "{\"rule\":\"blind_syn\"}",
            "{\"name\":\"minrtt+pr\"}",
            "-1.250000",
            "{\"since\":7.000000}",
            "\"queue_bytes\":120}",
        ];
        for (event, data) in events.into_iter().zip(data) {
            let line = line(SERVER, event);
            assert!(line.contains(data), "{line}");
            serde_json::from_str::<serde_json::Value>(&line).unwrap();
        }
    }

    #[test]
    fn the_first_error_stays() {
        struct Full;
        impl io::Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut lines = JsonLines::new(Full);
        lines.record(Instant::ZERO, SERVER, &Event::Stall);
        lines.record(Instant::ZERO, SERVER, &Event::Stall);
        assert_eq!(lines.finish().err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
    }
}
