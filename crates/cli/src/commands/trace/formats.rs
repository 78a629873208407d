//! Recordings in the formats that people have, as columns of the trace format.

use chrono::{Datelike, NaiveDate};
use csv::{ReaderBuilder, StringRecord, Trim};
use serde_json::Value;

/// A recording: columns of the trace format, and their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The format that it came in.
    pub format: &'static str,
    /// Names of the trace format; the first is `time_s`.
    pub columns: Vec<&'static str>,
    /// A value per column, where there is one.
    pub rows: Vec<Vec<Option<f64>>>,
    /// Lines and values that cannot be read.
    pub left_out: usize,
}

/// Milliseconds in which opportunities of mahimahi's format are counted together.
const BIN_MS: u64 = 100;

/// Recognises and reads a recording.
///
/// # Errors
/// The beginning of the file, if its format is not known.
pub fn recognise(text: &str) -> Result<Recorded, String> {
    let readers = [csv_columns, json, ping, irtt, iperf3, mahimahi, pensieve, hsdpa];
    readers.iter().find_map(|read| read(text)).ok_or_else(|| seen(text))
}

/// The content of an unknown file, in words.
fn seen(text: &str) -> String {
    let first = lines(text).next().unwrap_or_default();
    let cut: String = first.chars().take(200).collect();
    match first {
        "" => "the file is empty".into(),
        line if line.starts_with(['{', '[']) => format!("it is JSON: {cut}"),
        line if line.contains(',') => format!("its columns are {cut}"),
        line => match line.split_whitespace().count() {
            1 => format!("its first line has 1 word: {cut}"),
            words => format!("its first line has {words} words: {cut}"),
        },
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

fn recorded(format: &'static str, columns: &[&'static str], rows: Vec<Vec<Option<f64>>>) -> Option<Recorded> {
    (!rows.is_empty()).then(|| Recorded { format, columns: columns.to_vec(), rows, left_out: 0 })
}

/// Every line as numbers; `None` if one has another count of words, or another word.
fn numbers(text: &str, words: std::ops::RangeInclusive<usize>) -> Option<Vec<Vec<f64>>> {
    let row = |line: &str| line.split_whitespace().map(number).collect::<Option<Vec<f64>>>();
    lines(text).map(|line| row(line).filter(|row| words.contains(&row.len()))).collect()
}

/// CSV with a header of names that are known.
fn csv_columns(text: &str) -> Option<Recorded> {
    let mut reader =
        ReaderBuilder::new().flexible(true).trim(Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let names = reader.headers().ok()?.clone();
    let place = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    let rows: Vec<StringRecord> = reader.records().filter_map(Result::ok).collect();
    let cell = |row: &StringRecord, place: usize| row.get(place).and_then(number);
    let counted = |found: Recorded, places: &[usize]| {
        let is_wrong = |cell: &&str| number(cell).is_none() && !["", "-"].contains(cell);
        let wrong = |row: &StringRecord| places.iter().filter_map(|place| row.get(*place)).filter(is_wrong).count();
        Recorded { left_out: rows.len() - found.rows.len() + rows.iter().map(wrong).sum::<usize>(), ..found }
    };
    if let (Some(time), Some(down), Some(up)) = (place("Timestamp"), place("DL_bitrate"), place("UL_bitrate")) {
        let ping = place("PINGAVG");
        let row = |row: &StringRecord| {
            let rtt = ping.and_then(|place| cell(row, place));
            Some(vec![Some(stamp(row.get(time)?)?), cell(row, down), cell(row, up), rtt])
        };
        let columns = ["time_s", "rate_kbps_down", "rate_kbps_up", "rtt_ms"];
        let found = rows.iter().filter_map(row).collect();
        let places: Vec<usize> = [down, up].into_iter().chain(ping).collect();
        return recorded("5G drive test (DL_bitrate, UL_bitrate in kbit/s, PINGAVG)", &columns, found)
            .map(|found| counted(without_empty(found), &places));
    }
    if let (Some(time), Some(rtt)) = (place("relative_seconds"), place("rtt")) {
        let row = |row: &StringRecord| Some(vec![Some(cell(row, time)?), cell(row, rtt)]);
        let found = rows.iter().filter_map(row).collect();
        return recorded("Starlink RTT", &["time_s", "rtt_ms"], found).map(|found| counted(found, &[rtt]));
    }
    None
}

/// Without columns that have no value.
fn without_empty(recorded: Recorded) -> Recorded {
    let kept: Vec<usize> =
        (0..recorded.columns.len()).filter(|place| recorded.rows.iter().any(|row| row[*place].is_some())).collect();
    Recorded {
        columns: kept.iter().map(|place| recorded.columns[*place]).collect(),
        rows: recorded.rows.iter().map(|row| kept.iter().map(|place| row[*place]).collect()).collect(),
        ..recorded
    }
}

/// Seconds of `2019.12.14_10.16.30`, from the first day of year 1.
fn stamp(text: &str) -> Option<f64> {
    let parts: Vec<f64> = text.split(['.', '_', '-', ':', ' ', 'T']).map(number).collect::<Option<_>>()?;
    let [year, month, day, hour, minute, second] = parts[..] else { return None };
    let date = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32)?;
    Some(f64::from(date.num_days_from_ce()) * 86_400.0 + hour * 3600.0 + minute * 60.0 + second)
}

/// iperf3 and irtt.
fn json(text: &str) -> Option<Recorded> {
    let value: Value = serde_json::from_str(text).ok()?;
    if let Some(intervals) = value.get("intervals").and_then(Value::as_array) {
        let row = |interval: &Value| {
            let sum = interval.get("sum").or(interval.get("sum_received"))?;
            Some(vec![Some(sum.get("start")?.as_f64()?), Some(sum.get("bits_per_second")?.as_f64()?)])
        };
        return recorded("iperf3, JSON", &["time_s", "rate_bps"], intervals.iter().filter_map(row).collect());
    }
    let trips = value.get("round_trips")?.as_array()?;
    let sent = |trip: &Value| trip.pointer("/timestamps/client/send/wall")?.as_i64();
    let first = trips.iter().find_map(sent)?;
    let row = |trip: &Value| {
        let rtt = trip.pointer("/delay/rtt").and_then(Value::as_f64);
        Some(vec![Some((sent(trip)? - first) as f64 / 1e9), rtt.map(|rtt| rtt / 1e6)])
    };
    recorded("irtt, JSON", &["time_s", "rtt_ms"], trips.iter().filter_map(row).collect())
}

/// The number that stands behind `key` in a line.
fn behind(line: &str, key: &str) -> Option<f64> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    number(&rest[..end])
}

/// Lines of ping, with a time of their own (`-D`) or one per second.
fn ping(text: &str) -> Option<Recorded> {
    let stamps: Vec<Option<f64>> = lines(text).map(|line| behind(line.strip_prefix('[').map(|_| line)?, "[")).collect();
    let row = |(line, stamp): (&str, &Option<f64>)| {
        let (number, rtt) = (behind(line, "icmp_seq=")?, behind(line, "time=")?);
        Some(vec![Some(stamp.unwrap_or(number)), Some(rtt)])
    };
    recorded("ping", &["time_s", "rtt_ms"], lines(text).zip(&stamps).filter_map(row).collect())
}

/// Lines of irtt, one per second.
fn irtt(text: &str) -> Option<Recorded> {
    let row = |line: &str| {
        let rest = line.split_once(" rtt=")?.1;
        let word = rest.split_whitespace().next()?;
        let units = [("ms", 1.0), ("µs", 1e-3), ("us", 1e-3), ("s", 1e3)];
        let rtt = units.into_iter().find_map(|(unit, per)| Some(number(word.strip_suffix(unit)?)? * per))?;
        Some(vec![Some(behind(line, "seq=")?), Some(rtt)])
    };
    recorded("irtt", &["time_s", "rtt_ms"], lines(text).filter_map(row).collect())
}

/// Lines of iperf3: `[  5]   0.00-1.00   sec  11.2 MBytes  94.4 Mbits/sec`. Of several streams, their sum.
fn iperf3(text: &str) -> Option<Recorded> {
    let several = text.contains("[SUM]");
    let row = |line: &str| {
        let (stream, rest) = line.strip_prefix('[')?.split_once(']')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (from, to) = words.first()?.split_once('-')?;
        let (from, to) = (number(from)?, number(to)?);
        let unit = words.iter().position(|word| word.ends_with("bits/sec"))?;
        let scale = match words[unit] {
            "bits/sec" => 1.0,
            "Kbits/sec" => 1e3,
            "Mbits/sec" => 1e6,
            "Gbits/sec" => 1e9,
            _ => return None,
        };
        let rate = number(words.get(unit.checked_sub(1)?)?)? * scale;
        let total = words.iter().any(|word| ["sender", "receiver"].contains(word));
        (!total && to > from && (stream == "SUM") == several).then(|| vec![Some(from), Some(rate)])
    };
    recorded("iperf3", &["time_s", "rate_bps"], lines(text).filter_map(row).collect())
}

/// A millisecond per line, at which 1500 bytes may leave.
fn mahimahi(text: &str) -> Option<Recorded> {
    let times: Vec<u64> = lines(text).map(|line| line.parse().ok()).collect::<Option<_>>()?;
    let last = *times.last().filter(|last| **last > 0 && times.is_sorted())?;
    let mut bins = vec![0u64; usize::try_from(last.div_ceil(BIN_MS)).ok().filter(|bins| *bins < 100_000_000)?];
    for at in times {
        bins[(at.saturating_sub(1) / BIN_MS) as usize] += 1;
    }
    let row = |(n, count): (usize, &u64)| {
        let bits = *count as f64 * 1500.0 * 8.0;
        vec![Some(n as f64 * BIN_MS as f64 / 1e3), Some(bits * 1e3 / BIN_MS as f64)]
    };
    recorded("mahimahi", &["time_s", "rate_bps"], bins.iter().enumerate().map(row).collect())
}

/// Seconds and Mbit/s (Pensieve, PiTree).
fn pensieve(text: &str) -> Option<Recorded> {
    let rows = numbers(text, 2..=2)?;
    let rows = rows.into_iter().map(|row| row.into_iter().map(Some).collect()).collect();
    recorded("Pensieve (seconds, Mbit/s)", &["time_s", "rate_mbps"], rows)
}

/// Bytes in so many milliseconds at the end of each line, milliseconds since some time in its second place (HSDPA logs of Riiser and
/// others, MMSys 2013).
fn hsdpa(text: &str) -> Option<Recorded> {
    let rows = numbers(text, 5..=7)?;
    let row = |row: &Vec<f64>| {
        let [.., bytes, millis] = row[..] else { return None };
        (millis > 0.0).then(|| vec![Some((row[1] - millis).max(0.0) / 1e3), Some(bytes * 8e3 / millis)])
    };
    let found = recorded("HSDPA log (bytes, ms)", &["time_s", "rate_bps"], rows.iter().filter_map(row).collect())?;
    Some(Recorded { left_out: rows.len() - found.rows.len(), ..found })
}

impl Recorded {
    /// The first row whose time is before that of the row before, in words.
    pub fn descent(&self) -> Option<String> {
        let time = |row: &Vec<Option<f64>>| row[0].unwrap_or(0.0);
        let place = self.rows.windows(2).position(|pair| time(&pair[1]) < time(&pair[0]))?;
        let [before, after] = [place, place + 1].map(|place| rounded(time(&self.rows[place]), 1e9));
        Some(format!("{after} s in row {} of its values is before {before} s in the row before", place + 2))
    }

    /// In the trace format, with times from zero.
    pub fn csv(&self) -> String {
        let first = self.rows.first().and_then(|row| row[0]).unwrap_or(0.0);
        let mut text = self.columns.join(",") + "\n";
        for row in &self.rows {
            let value = |(place, value): (usize, &Option<f64>)| match value {
                Some(value) if place == 0 => rounded(value - first, 1e9),
                Some(value) => rounded(*value, 1e6),
                None => String::new(),
            };
            text += &(row.iter().enumerate().map(value).collect::<Vec<_>>().join(",") + "\n");
        }
        text
    }
}

/// To so many parts of one.
fn rounded(value: f64, parts: f64) -> String {
    ((value * parts).round() / parts).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_network::Recording;

    /// The format that was recognised, and its trace.
    fn converted(text: &str) -> (&'static str, String) {
        let recorded = recognise(text).unwrap();
        let csv = recorded.csv();
        Recording::parse(&csv).unwrap_or_else(|wrong| panic!("{wrong}\n{csv}"));
        (recorded.format, csv)
    }

    #[test]
    fn each_format_is_recognised() {
        for (text, format, csv) in [
            ("1\n1\n100\n200\n", "mahimahi", "time_s,rate_bps\n0,360000\n0.1,120000\n"),
            ("5.0\t4.5\n6.0\t0.25\n", "Pensieve (seconds, Mbit/s)", "time_s,rate_mbps\n0,4.5\n1,0.25\n"),
            (
                "1300000000 5000 59.9 10.7 125000 1000\n1300000001 6000 59.9 10.7 50000 500\n",
                "HSDPA log (bytes, ms)",
                "time_s,rate_bps\n0,1000000\n1.5,800000\n",
            ),
            (
                "Timestamp,Speed,DL_bitrate,UL_bitrate,State,PINGAVG\n2020.02.28_23.59.59,0,900,30,D,-\n2020.02.29_00.00.01,1,800,-,D,52\n",
                "5G drive test (DL_bitrate, UL_bitrate in kbit/s, PINGAVG)",
                "time_s,rate_kbps_down,rate_kbps_up,rtt_ms\n0,900,30,\n2,800,,52\n",
            ),
            (
                "\"Time stamp, local\",Timestamp,DL_bitrate,UL_bitrate\n\"a, b\",2020.02.28_23.59.59,\"900\",30\n",
                "5G drive test (DL_bitrate, UL_bitrate in kbit/s, PINGAVG)",
                "time_s,rate_kbps_down,rate_kbps_up\n0,900,30\n",
            ),
            (
                "since,relative_seconds,rtt\n2024-05-01T00:00:00,0.5,40.5\n2024-05-01T00:00:01,0.75,41\n",
                "Starlink RTT",
                "time_s,rtt_ms\n0,40.5\n0.25,41\n",
            ),
            (
                r#"{"intervals":[{"sum":{"start":0,"end":1,"bits_per_second":5e6}},{"sum":{"start":1,"end":2,"bits_per_second":6e6}}]}"#,
                "iperf3, JSON",
                "time_s,rate_bps\n0,5000000\n1,6000000\n",
            ),
            (
                "[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  11.2 MBytes  94.4 Mbits/sec   0   70.7 KBytes\n\
                 [  5]   1.00-2.00   sec   110 KBytes   901 Kbits/sec\n[  5]   0.00-2.00   sec  11.3 MBytes  47.6 Mbits/sec  sender\n",
                "iperf3",
                "time_s,rate_bps\n0,94400000\n1,901000\n",
            ),
            (
                r#"{"round_trips":[{"timestamps":{"client":{"send":{"wall":1700000000000000000}}},"delay":{"rtt":20500000}},
                    {"timestamps":{"client":{"send":{"wall":1700000000250000000}}},"delay":{}}]}"#,
                "irtt, JSON",
                "time_s,rtt_ms\n0,20.5\n0.25,\n",
            ),
            ("seq=0 rtt=20.1ms rd=10ms\nseq=1 rtt=900µs rd=1ms\n", "irtt", "time_s,rtt_ms\n0,20.1\n1,0.9\n"),
            (
                "PING a (192.0.2.1) 56(84) bytes of data.\n[1700000000.5] 64 bytes from a: icmp_seq=1 ttl=5 time=23.1 ms\n\
                 [1700000001.75] 64 bytes from a: icmp_seq=2 ttl=5 time=24 ms\n",
                "ping",
                "time_s,rtt_ms\n0,23.1\n1.25,24\n",
            ),
            (
                "64 bytes from a: icmp_seq=4 ttl=5 time=23 ms\n64 bytes from a: icmp_seq=6 ttl=5 time=24 ms\n",
                "ping",
                "time_s,rtt_ms\n0,23\n2,24\n",
            ),
        ] {
            assert_eq!(converted(text), (format, csv.to_owned()));
        }
    }

    #[test]
    fn of_an_unknown_file_the_beginning_is_shown() {
        assert_eq!(recognise("").unwrap_err(), "the file is empty");
        assert_eq!(recognise("\n# a comment\n").unwrap_err(), "the file is empty");
        assert_eq!(recognise("when,speed\n1,2\n").unwrap_err(), "its columns are when,speed");
        assert_eq!(recognise("{\"a\": 1}\n").unwrap_err(), "it is JSON: {\"a\": 1}");
        assert_eq!(recognise("a b c\n").unwrap_err(), "its first line has 3 words: a b c");
        assert_eq!(recognise("5\n4\n").unwrap_err(), "its first line has 1 word: 5");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let drive = "Timestamp,DL_bitrate,UL_bitrate\n2020.02.29_00.00.01,900,30\n2020.02.29_00.00.02,-5,nan\nnever,1,2\n\
                     2020.02.29_00.00.03,-,\n";
        for (text, rows, left_out) in [
            (drive, 3, 3),
            ("relative_seconds,rtt\n0,4\n1,lost\nx,5\n", 2, 2),
            ("1300000000 5000 59.9 10.7 125000 0\n1300000001 6000 59.9 10.7 50000 500\n", 1, 1),
            ("5 1\n6 2\n", 2, 0),
        ] {
            let recorded = recognise(text).unwrap();
            assert_eq!((recorded.rows.len(), recorded.left_out), (rows, left_out), "{text}");
        }
    }

    #[test]
    fn times_that_descend_are_reported_with_their_row() {
        let descent = |text: &str| recognise(text).unwrap().descent();
        assert_eq!(descent("5 1\n6 1\n6 2\n"), None);
        assert_eq!(
            descent("5 1\n6 1\n4.5 2\n").unwrap(),
            "4.5 s in row 3 of its values is before 6 s in the row before"
        );
    }
}
