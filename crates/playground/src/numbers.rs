//! Values as numbers, as they cross the border.

use anabranch_units::Duration;

/// 1 or 0.
pub fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// Seconds; NaN where there is none.
pub fn seconds(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, Duration::as_secs_f64)
}
