//! Numbers on the command line.

use anabranch_run::Shard;
use anabranch_workbench::making::Repetitions;
use std::num::IntErrorKind;
use std::str::FromStr;

/// Greatest number of repetitions: that of the scenario key `repeat`.
pub const MOST_REPETITIONS: u64 = anabranch_scenario::MAX_REPEAT as u64;
/// Greatest seed: that of the scenario key `seed`.
const GREATEST_SEED: u64 = i64::MAX as u64;
/// Greatest number of machines.
const MOST_SHARDS: u64 = 1_000_000;
/// Greatest number of threads; more would only wait for each other.
const MOST_THREADS: u64 = 1024;
/// Greatest number of packets or connections that are counted.
const MOST_COUNTED: u64 = u32::MAX as u64;

/// `--repeat N`.
pub fn repeat<T: FromStr>(text: &str) -> Result<T, String> {
    within(text, 1, MOST_REPETITIONS)
}

/// `--repeat N|auto`.
pub fn repetitions(text: &str) -> Result<Repetitions, String> {
    match text {
        "auto" => Ok(Repetitions::Auto),
        _ => match repeat(text) {
            Ok(count) => Ok(Repetitions::Count(count)),
            Err(why) => Err(format!("{why}, or `auto`")),
        },
    }
}

/// `--seed N`.
pub fn seed(text: &str) -> Result<u64, String> {
    within(text, 0, GREATEST_SEED)
}

/// `--shard I/N`.
pub fn shard(text: &str) -> Result<Shard, String> {
    let (number, of) = text.split_once('/').ok_or("expected I/N, such as 1/4")?;
    let of = within(of, 1, MOST_SHARDS)?;
    Ok(Shard { number: within(number, 1, u64::from(of))?, of })
}

/// `--jobs N`.
pub fn threads<T: FromStr>(text: &str) -> Result<T, String> {
    within(text, 1, MOST_THREADS)
}

/// A number of packets; 0 for none.
pub fn packets(text: &str) -> Result<usize, String> {
    within(text, 0, MOST_COUNTED)
}

/// `--figure-width W`: points, with their unit or without it.
pub fn points(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("pt").unwrap_or(text).parse::<f64>().ok();
    number.filter(|width| (120.0..=1200.0).contains(width)).ok_or("expected from 120pt to 1200pt".to_owned())
}

/// The number of a connection, counted from 1.
pub fn ordinal<T: FromStr>(text: &str) -> Result<T, String> {
    within(text, 1, MOST_COUNTED)
}

/// A whole number from `least` to `greatest`, which `T` holds.
fn within<T: FromStr>(text: &str, least: u64, greatest: u64) -> Result<T, String> {
    let wanted = |why: &str| format!("{why}expected a whole number from {least} to {greatest}");
    match text.parse::<u64>() {
        Ok(number) if number > greatest => Err(wanted("too large; ")),
        Ok(number) if number < least => Err(wanted("too small; ")),
        Ok(_) => text.parse().map_err(|_| wanted("")),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(wanted("too large; ")),
        Err(_) => Err(wanted("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn a_number_outside_its_range_is_told_the_range() {
        let told = |text: &str| repeat::<NonZeroU32>(text).unwrap_err();
        for text in ["1000001", "99999999999", "99999999999999999999999999"] {
            assert_eq!(told(text), "too large; expected a whole number from 1 to 1000000");
        }
        assert_eq!(told("0"), "too small; expected a whole number from 1 to 1000000");
        for text in ["", "x", "-1", "1.5", "1e6"] {
            assert_eq!(told(text), "expected a whole number from 1 to 1000000");
        }
        assert_eq!(repeat("1000000"), Ok(NonZeroU32::new(1_000_000).unwrap()));
        assert_eq!(seed("9223372036854775807"), Ok(i64::MAX as u64));
        assert!(seed("9223372036854775808").is_err());
        assert_eq!(repetitions("auto"), Ok(Repetitions::Auto));
        assert_eq!(repetitions("7"), Ok(Repetitions::Count(7)));
    }
}
