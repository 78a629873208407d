//! Keys before the first header.

use crate::keys::MAX_REPEAT;
use crate::notation::{POSITIVE_TIME, TIME, TITLE, integer};
use crate::row::Row;
use crate::scenario::Scenario;

#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(s: &mut Scenario) -> Vec<Row<'_>> {
    vec![
        Row::new("name", TITLE, &mut s.name, "title of the experiment").silent("the file's name"),
        Row::optional("duration", POSITIVE_TIME, &mut s.duration, "measured time, after the warm-up; required if traffic is unlimited").silent("until all traffic is delivered"),
        Row::new("warmup", TIME, &mut s.warmup, "discarded time before the measured time; needs a duration"),
        Row::new("seed", integer(0, i64::MAX), &mut s.seed, "seed of the first repetition; repetition r uses seed + r"),
        Row::new("repeat", integer(1, MAX_REPEAT), &mut s.repeat, "repetitions; a scenario without randomness is run once"),
        Row::new("start", TIME, &mut s.start, "when the traffic starts, warm-up included; cross traffic may be under way by then"),
        Row::new("start_jitter", TIME, &mut s.start_jitter, "random delay of the start, below this value; it breaks phase locks"),
    ]
}
