//! Quantities in the unit that fits.

/// `34 µs`, `1.2 ms`, `3.40 s`.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// `900 bytes`, `64.0 KiB`, `1.5 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".into(),
        b if b < 10_000 => format!("{b} bytes"),
        b if b < 10 << 20 => format!("{:.1} KiB", b as f64 / 1024.0),
        b => format!("{:.1} MiB", b as f64 / 1_048_576.0),
    }
}

/// Bits per second.
pub(super) fn rate(bps: f64) -> String {
    match bps {
        r if r < 1e6 => format!("{:.1} kbit/s", r / 1e3),
        r => format!("{:.2} Mbit/s", r / 1e6),
    }
}

/// `once`, `twice`, `7 times`.
pub(super) fn times(n: u64) -> String {
    match n {
        1 => "once".into(),
        2 => "twice".into(),
        n => format!("{n} times"),
    }
}

/// `1 packet`, `2 packets`.
pub(super) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A part of a whole in per cent.
pub(super) fn percent(part: f64, whole: f64) -> String {
    format!("{:.0} %", if whole > 0.0 { 100.0 * part / whole } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_unit_that_fits() {
        assert_eq!([4e-5, 0.0123, 2.5].map(seconds), ["40 µs", "12.3 ms", "2.50 s"]);
        assert_eq!([1, 9999, 65_536, 20 << 20].map(bytes), ["1 byte", "9999 bytes", "64.0 KiB", "20.0 MiB"]);
        assert_eq!([12e3, 5.5e6].map(rate), ["12.0 kbit/s", "5.50 Mbit/s"]);
        assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
        assert_eq!(list(&["a", "b", "c"].map(String::from)), "a, b and c");
        assert_eq!([percent(1.0, 4.0), percent(1.0, 0.0)], ["25 %", "0 %"]);
    }
}
