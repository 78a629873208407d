//! Quantities in `tc`'s notation, read exactly: decimal digits become integers without floating point.

use crate::keys::Form;
use anabranch_network::{DropTail, Threshold};
use anabranch_units::{Duration, Rate};

/// Why a quantity cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text does not begin with a decimal number.
    NotANumber,
    /// The text begins with a minus sign.
    Negative,
    /// A number without a unit.
    NoUnit,
    /// An unknown unit, or one that tools read differently.
    Unit {
        /// As written.
        unit: String,
        /// The unit to write instead, or the reason for the refusal.
        hint: Option<String>,
    },
    /// The value is not a whole number of the smallest unit.
    TooFine,
    /// The value exceeds the integer type, or a probability of one.
    TooLarge,
}

/// A family of units.
pub(crate) struct Units {
    /// The smallest unit, in the plural: everything is a whole number of these.
    pub smallest: &'static str,
    /// A unit and its multiple of the smallest one; the first spelling of a multiple is the recommended one.
    pub units: &'static [(&'static str, u64)],
    /// Case matters: `KB` is 1000 bytes, `kb` is ambiguous.
    pub case_sensitive: bool,
    /// The unit to write instead of one that tools read differently.
    confused: fn(&Unit<'_>) -> Option<String>,
}

/// A number with an unknown unit.
struct Unit<'a> {
    number: &'a str,
    /// As written.
    unit: &'a str,
    /// `k`, `m`, `g`, `t` or nothing.
    prefix: &'a str,
    /// The rest after the prefix, in lower case.
    rest: &'a str,
}

/// `tc`'s rates: SI prefixes for bits, binary ones with an `i`.
pub(crate) const RATE: Units = Units {
    smallest: "bits per second",
    units: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("tibit", 1 << 40),
    ],
    case_sensitive: false,
    confused: confused_rate,
};

/// `tc`'s times.
pub(crate) const TIME: Units = Units {
    smallest: "nanoseconds",
    units: &[
        ("ns", 1),
        ("nsec", 1),
        ("nsecs", 1),
        ("us", 1_000),
        ("usec", 1_000),
        ("usecs", 1_000),
        ("ms", 1_000_000),
        ("msec", 1_000_000),
        ("msecs", 1_000_000),
        ("s", 1_000_000_000),
        ("sec", 1_000_000_000),
        ("secs", 1_000_000_000),
    ],
    case_sensitive: false,
    confused: |_| None,
};

/// Sizes: `KB` and its like are decimal, `KiB` and its like binary.
pub(crate) const SIZE: Units = Units {
    smallest: "bytes",
    units: &[
        ("B", 1),
        ("KB", 1_000),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    case_sensitive: true,
    confused: confused_size,
};

/// A decimal number: `digits / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    scale: u32,
}

impl Decimal {
    /// `self × multiple`, if that is a whole number.
    fn times(self, multiple: u64) -> Result<u64, Fault> {
        let product = self.digits as u128 * multiple as u128;
        let divisor = 10u128.pow(self.scale);
        if !product.is_multiple_of(divisor) {
            return Err(Fault::TooFine);
        }
        u64::try_from(product / divisor).map_err(|_| Fault::TooLarge)
    }

    /// The nearest real number to `self × 10^shift`.
    fn real(self, shift: i32) -> Option<f64> {
        // Parsing rounds once and correctly; a division by a power of ten would round a second time.
        format!("{}e{}", self.digits, shift - self.scale as i32).parse().ok()
    }
}

/// The number at the beginning of `text`, and the trimmed rest. At most 19 digits.
fn split(text: &str) -> Result<(Decimal, &str), Fault> {
    let text = text.trim();
    if text.starts_with(['-', '−']) {
        return Err(Fault::Negative);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let malformed = whole.is_empty() || fraction.contains('.') || number.ends_with('.');
    if malformed {
        return Err(Fault::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}").parse().map_err(|_| Fault::TooLarge)?;
    // 19 digits fit, so a larger scale consists of leading zeros.
    let scale = u32::try_from(fraction.len()).ok().filter(|s| *s <= 19).ok_or(Fault::TooFine)?;
    Ok((Decimal { digits, scale }, rest.trim()))
}

impl Units {
    /// `text` as a whole number of the smallest unit.
    pub fn read(&self, text: &str) -> Result<u64, Fault> {
        let (number, unit) = split(text)?;
        if unit.is_empty() {
            return Err(Fault::NoUnit);
        }
        match self.multiple(unit) {
            Some(multiple) => number.times(multiple),
            None => Err(Fault::Unit { unit: unit.into(), hint: self.hint(text, unit) }),
        }
    }

    /// How many of the smallest unit `unit` is.
    pub fn multiple(&self, unit: &str) -> Option<u64> {
        let same = |name: &str| name == unit || (!self.case_sensitive && name.eq_ignore_ascii_case(unit));
        self.units.iter().find(|(name, _)| same(name)).map(|(_, multiple)| *multiple)
    }

    /// The unit to write instead of `unit`.
    fn hint(&self, text: &str, unit: &str) -> Option<String> {
        let number = text.trim().trim_end_matches(unit).trim_end();
        let lower = unit.to_ascii_lowercase();
        let (prefix, rest) = lower.split_at(if lower.starts_with(['k', 'm', 'g', 't']) { 1 } else { 0 });
        (self.confused)(&Unit { number, unit, prefix, rest }).or_else(|| {
            let nearest = crate::suggest::nearest(unit, self.units.iter().map(|(name, _)| *name))?;
            Some(format!("write \"{number}{nearest}\""))
        })
    }
}

fn confused_rate(Unit { number, unit, prefix, rest }: &Unit<'_>) -> Option<String> {
    match *rest {
        "bps" => Some(format!(
            "tc reads `{unit}` as bytes per second; write \"{number}{prefix}bit\" for bits per second, or eight times the \
             number if bytes are meant"
        )),
        "" | "b" | "b/s" | "bit/s" | "bits" | "bits/s" => {
            Some(format!("write \"{number}{prefix}bit\" for bits per second"))
        }
        _ => None,
    }
}

fn confused_size(Unit { number, unit, prefix, rest }: &Unit<'_>) -> Option<String> {
    let ambiguous = !prefix.is_empty() && matches!(*rest, "" | "b");
    let upper = prefix.to_ascii_uppercase();
    ambiguous.then(|| {
        format!(
            "`{unit}` is read in different ways; write \"{number}{upper}B\" for powers of 1000 or \"{number}{upper}iB\" for \
             powers of 1024"
        )
    })
}

/// The number at the beginning of `text`, and its unit.
pub(crate) fn parts(text: &str) -> Option<(f64, &str)> {
    let (number, unit) = split(text).ok()?;
    Some((number.real(0)?, unit))
}

/// A rate in bits per second.
pub(crate) fn rate(text: &str) -> Result<Rate, Fault> {
    RATE.read(text).map(Rate::from_bps)
}

/// A duration.
pub(crate) fn duration(text: &str) -> Result<Duration, Fault> {
    TIME.read(text).map(Duration::from_nanos)
}

/// A duration in a scenario file's notation, such as `200ms`; `None` if it is malformed.
pub fn parse_duration(text: &str) -> Option<Duration> {
    duration(text).ok()
}

/// A rate in a scenario file's notation, such as `25mbit`; `None` if it is malformed or zero.
pub fn parse_rate(text: &str) -> Option<Rate> {
    rate(text).ok().filter(|rate| rate.as_bps() > 0)
}

/// A size in a scenario file's notation, such as `20GB`, in bytes; `None` if it is malformed.
pub fn parse_size(text: &str) -> Option<u64> {
    size(text).ok()
}

/// A size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, Fault> {
    SIZE.read(text)
}

/// A probability in `[0, 1]`: `1%`, or a fraction with a point: `0.01`. A bare `1` is ambiguous and refused.
pub(crate) fn probability(text: &str) -> Result<f64, Fault> {
    let (number, unit) = split(text)?;
    let shift = match unit {
        "%" => -2,
        "" if text.contains('.') || number.digits == 0 => 0,
        "" => return Err(Fault::NoUnit),
        _ => return Err(Fault::Unit { unit: unit.into(), hint: None }),
    };
    let value = number.real(shift).ok_or(Fault::TooFine)?;
    if value <= 1.0 { Ok(value) } else { Err(Fault::TooLarge) }
}

/// The limit of a queue as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum QueueLimit {
    /// Packets.
    Packets(u32),
    /// Bytes.
    Bytes(u64),
    /// Bandwidth-delay products, in millionths.
    Bdp(u64),
    /// Room for every packet.
    Unlimited,
}

impl From<DropTail> for QueueLimit {
    fn from(limit: DropTail) -> Self {
        match limit {
            DropTail::UNLIMITED => Self::Unlimited,
            DropTail::Packets(packets) => Self::Packets(packets),
            DropTail::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

/// The word for a queue that never drops.
pub(crate) const UNLIMITED: &str = "unlimited";

/// A queue: `100p`, `150KB`, `1bdp`, `unlimited`.
pub(crate) fn queue(text: &str) -> Result<QueueLimit, Fault> {
    if text.trim() == UNLIMITED {
        return Ok(QueueLimit::Unlimited);
    }
    let (number, unit) = split(text)?;
    match unit.to_ascii_lowercase().as_str() {
        "p" => u32::try_from(number.times(1)?).map(QueueLimit::Packets).map_err(|_| Fault::TooLarge),
        "bdp" => number.times(1_000_000).map(QueueLimit::Bdp),
        "pkt" | "pkts" | "packet" | "packets" | "bp" => {
            let hint = format!("write \"{}p\" for packets", text.trim().trim_end_matches(unit).trim_end());
            Err(Fault::Unit { unit: unit.into(), hint: Some(hint) })
        }
        _ => size(text).map(QueueLimit::Bytes),
    }
}

/// `5p`, `30KB`.
pub(crate) fn threshold(text: &str) -> Result<Threshold, Fault> {
    let (number, unit) = split(text)?;
    match unit.to_ascii_lowercase().as_str() {
        "p" => Ok(Threshold { amount: number.real(0).ok_or(Fault::TooFine)?, in_bytes: false }),
        _ => size(text).map(|bytes| Threshold { amount: bytes as f64, in_bytes: true }),
    }
}

/// Money per byte: `5/GB`, `0.02/MB`.
pub(crate) fn price(text: &str) -> Result<f64, Fault> {
    let (number, rest) = split(text)?;
    let Some(unit) = rest.strip_prefix('/') else {
        return Err(if rest.is_empty() { Fault::NoUnit } else { Fault::NotANumber });
    };
    let bytes = SIZE.read(&format!("1{}", unit.trim()))?;
    Ok(number.real(0).ok_or(Fault::TooFine)? / bytes as f64)
}

/// `text` as a number in SI units, outside any scenario: seconds, bits per second, bytes, a fraction; for every other form
/// a plain number.
///
/// # Errors
/// The form to write instead.
pub fn si_number(form: &Form, text: &str) -> Result<f64, String> {
    let number = match form {
        Form::Duration { .. } => duration(text).map(Duration::as_secs_f64),
        Form::Rate => rate(text).map(|rate| rate.as_bps() as f64),
        Form::Probability => probability(text),
        Form::Size { .. } => size(text).map(|bytes| bytes as f64),
        _ => plain(text),
    };
    number.map_err(|fault| match (fault, form) {
        (Fault::Unit { hint: Some(hint), .. }, _) => hint,
        (_, Form::Duration { .. } | Form::Rate | Form::Probability) => format!("expected {}", form.expected()),
        _ => "expected a number, such as 4 or 0.5".into(),
    })
}

fn plain(text: &str) -> Result<f64, Fault> {
    match split(text)? {
        (number, "") => number.real(0).ok_or(Fault::TooFine),
        (_, unit) => Err(Fault::Unit { unit: unit.into(), hint: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(fault: Result<u64, Fault>) -> String {
        match fault {
            Err(Fault::Unit { hint: Some(hint), .. }) => hint,
            other => panic!("no hint: {other:?}"),
        }
    }

    #[test]
    fn rates_are_those_of_tc() {
        for (text, bps) in
            [("25mbit", 25_000_000), ("1.5Mbit", 1_500_000), ("1gbit", 1_000_000_000), ("500 KBIT", 500_000)]
        {
            assert_eq!(rate(text), Ok(Rate::from_bps(bps)), "{text}");
        }
        assert_eq!(rate("1kibit"), Ok(Rate::from_bps(1024)));
        assert_eq!(rate("0.5bit"), Err(Fault::TooFine));
        assert_eq!(rate("25"), Err(Fault::NoUnit));
        assert_eq!(rate("-1mbit"), Err(Fault::Negative));
        assert_eq!(rate("fast"), Err(Fault::NotANumber));
        assert_eq!(rate("99999999999999999999bit"), Err(Fault::TooLarge));
        assert_eq!(rate("100000000tbit"), Err(Fault::TooLarge));
    }

    #[test]
    fn words_that_tools_read_differently_are_refused_with_a_hint() {
        assert!(hint(RATE.read("10mbps")).contains("\"10mbit\""));
        assert!(hint(RATE.read("10kbps")).contains("bytes per second"));
        assert!(hint(RATE.read("10k")).contains("\"10kbit\""));
        assert!(hint(RATE.read("10Mb")).contains("\"10mbit\""));
        assert!(hint(SIZE.read("64k")).contains("\"64KB\""));
        assert!(hint(SIZE.read("64kb")).contains("\"64KiB\""));
        assert!(hint(SIZE.read("64mb")).contains("\"64MiB\""));
        assert!(hint(SIZE.read("64kib")).contains("\"64KiB\""));
        assert!(hint(TIME.read("5msc")).contains("\"5ms"));
        assert!(matches!(RATE.read("25µ"), Err(Fault::Unit { .. })));
    }

    #[test]
    fn durations_and_sizes_are_exact() {
        assert_eq!(duration("0.1ms"), Ok(Duration::from_micros(100)));
        assert_eq!(duration("1.000000001s"), Ok(Duration::from_nanos(1_000_000_001)));
        assert_eq!(duration("0.5ns"), Err(Fault::TooFine));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(size("1.5KiB"), Ok(1536));
        assert_eq!(size("64KB"), Ok(64_000));
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(size("0.1B"), Err(Fault::TooFine));
    }

    #[test]
    fn probabilities_round_once() {
        assert_eq!(probability("1%"), Ok(0.01));
        assert_eq!(probability("0.3%"), Ok(0.003));
        assert_eq!(probability("29%"), Ok(0.29));
        assert_eq!(probability("100%"), Ok(1.0));
        assert_eq!(probability("0.01"), Ok(0.01));
        assert_eq!(probability("0"), Ok(0.0));
        assert_eq!(probability("1"), Err(Fault::NoUnit));
        assert_eq!(probability("101%"), Err(Fault::TooLarge));
        assert_eq!(probability("-1%"), Err(Fault::Negative));
    }

    #[test]
    fn queues_count_packets_bytes_or_products() {
        assert_eq!(queue("100p"), Ok(QueueLimit::Packets(100)));
        assert_eq!(queue("150KB"), Ok(QueueLimit::Bytes(150_000)));
        assert_eq!(queue("1bdp"), Ok(QueueLimit::Bdp(1_000_000)));
        assert_eq!(queue("0.5BDP"), Ok(QueueLimit::Bdp(500_000)));
        assert_eq!(queue("1.5p"), Err(Fault::TooFine));
        assert!(matches!(queue("100 packets"), Err(Fault::Unit { hint: Some(h), .. }) if h.contains("\"100p\"")));
    }

    #[test]
    fn numbers_in_si_units() {
        let time = Form::Duration { positive: false };
        assert_eq!(si_number(&time, "15ms"), Ok(0.015));
        assert_eq!(si_number(&Form::Rate, "1.5mbit"), Ok(1.5e6));
        assert_eq!(si_number(&Form::Probability, "0.9%"), Ok(0.009));
        assert_eq!(si_number(&Form::Real { above: 0.0 }, "4.4"), Ok(4.4));
        assert!(si_number(&Form::Rate, "10mbps").unwrap_err().contains("\"10mbit\""));
        assert!(si_number(&time, "15").unwrap_err().contains("25ms"));
        for text in ["", "x", "-1", "4x", "1e99", "NaN"] {
            assert!(si_number(&Form::Real { above: 0.0 }, text).unwrap_err().contains("a number"), "{text}");
        }
    }

    #[test]
    fn prices_are_per_size() {
        assert_eq!(price("5/GB"), Ok(5e-9));
        assert_eq!(price("0.25/KiB"), Ok(0.25 / 1024.0));
        assert_eq!(price("5"), Err(Fault::NoUnit));
    }
}
