//! A recording, drawn.

use anabranch_network::{Recorded, Recording, Steps};
use anabranch_report::figure;
use std::fmt::Write as _;

/// Columns and lines of a curve in the terminal.
const COLUMNS: usize = 72;
const LINES: usize = 4;

/// A quantity of a direction with its unit, and its values: seconds from zero, in the unit.
type Curve = (String, Vec<(f64, f64)>);

/// Everything that was recorded; what both directions share stands once.
pub fn curves(recording: &Recording) -> Vec<Curve> {
    let Recording { down, up } = recording;
    let rate = |of: &Recorded| of.rate.as_ref().map(|rate| values(rate.steps(), |rate| rate.as_bps() as f64 / 1e6));
    let delay = |of: &Recorded| of.delay.as_ref().map(|delay| values(delay, |delay| delay.as_secs_f64() * 1e3));
    let loss = |of: &Recorded| of.loss.as_ref().map(|loss| values(loss, |loss| loss * 100.0));
    let pairs = [
        ("rate", "Mbit/s", rate(down), rate(up)),
        ("delay", "ms", delay(down), delay(up)),
        ("loss", "%", loss(down), loss(up)),
    ];
    let mut curves = Vec::new();
    for (name, unit, down, up) in pairs {
        if down == up {
            curves.extend(down.map(|values| (format!("{name}, {unit}"), values)));
        } else {
            curves.extend(down.map(|values| (format!("{name} down, {unit}"), values)));
            curves.extend(up.map(|values| (format!("{name} up, {unit}"), values)));
        }
    }
    curves
}

/// The value of each part at its begin, and the last once more at the end.
fn values<T: Copy + PartialEq>(steps: &Steps<T>, number: impl Fn(T) -> f64) -> Vec<(f64, f64)> {
    let (mut at, mut values) = (0.0, Vec::new());
    for (time, value) in steps.parts() {
        values.push((at, number(value)));
        at += time.as_secs_f64();
    }
    let last = values.last().map_or(0.0, |(_, value)| *value);
    values.push((at, last));
    values
}

/// The greatest value of each of [`COLUMNS`] equal times.
fn columns(values: &[(f64, f64)]) -> Vec<f64> {
    let end = values.last().map_or(0.0, |(at, _)| *at);
    let edge = |n: usize| end * n as f64 / COLUMNS as f64;
    let most = |n: usize| {
        let begin = values.partition_point(|(at, _)| *at <= edge(n)).saturating_sub(1);
        let within = values[begin..].iter().take_while(|(at, _)| *at <= edge(n) || *at < edge(n + 1));
        within.map(|(_, value)| *value).fold(0.0, f64::max)
    };
    (0..COLUMNS).map(most).collect()
}

/// Each curve as blocks, with its least, mean and greatest value.
pub fn terminal(recording: &Recording) -> String {
    let mut text = String::new();
    let mut end = 0.0;
    for (name, values) in curves(recording) {
        end = values.last().map_or(0.0, |(at, _)| *at);
        let area: f64 = values.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0)).sum();
        let least = values.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
        let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let [least, mean, greatest] = [least, area / end, most].map(figure);
        let _ = writeln!(text, "{name}: {least} to {greatest}, {mean} on average");
        let columns = columns(&values);
        for line in (0..LINES).rev() {
            let cell = |value: &f64| {
                let eighths = if most > 0.0 { (value / most * (8 * LINES) as f64).round() as usize } else { 0 };
                [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][eighths.saturating_sub(8 * line).min(8)]
            };
            let row: String = columns.iter().map(cell).collect();
            let _ = writeln!(text, "  {}", row.trim_end());
        }
    }
    let _ = writeln!(text, "  0 s{:>width$}", format!("{} s", figure(end)), width = COLUMNS - 3);
    text
}

/// Each curve as a panel of an SVG picture.
pub fn svg(recording: &Recording) -> String {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 110.0;
    let curves = curves(recording);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{0}\" viewBox=\"0 0 760 {0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        curves.len() as f64 * (HEIGHT + 50.0) + 10.0
    );
    for (n, (name, values)) in curves.iter().enumerate() {
        let (left, top) = (60.0, 25.0 + n as f64 * (HEIGHT + 50.0));
        let end = values.last().map_or(1.0, |(at, _)| *at);
        let most = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
        let (x, y) = (|at: f64| left + at / end * WIDTH, |value: f64| top + HEIGHT * (1.0 - value / most));
        let path = stairs(values, x, y);
        let (bottom, right, below) = (top + HEIGHT, left + WIDTH, top + HEIGHT + 15.0);
        let _ = writeln!(
            text,
            "<text x=\"{left}\" y=\"{}\">{name}</text>\n<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n<text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n\
             <text x=\"{left}\" y=\"{below}\">0 s</text>\n<text x=\"{right}\" y=\"{below}\" text-anchor=\"end\">{} s</text>\n<path d=\"{path}\" fill=\"none\" stroke=\"#0072b2\"/>",
            top - 8.0,
            left - 5.0,
            top + 8.0,
            figure(most),
            left - 5.0,
            figure(end)
        );
    }
    text + "</svg>\n"
}

/// The outline of values that hold until the next. Of those that share a place, a tenth of a pixel wide, the first and last and the
/// extremes between them: a picture of a million lines is no larger than one of thousands.
fn stairs(values: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let place = |at: f64| (10.0 * x(at)).round() / 10.0;
    let mut path = String::new();
    for shared in values.chunk_by(|a, b| place(a.0) == place(b.0)) {
        let heights = || shared.iter().map(|(_, value)| y(*value));
        let (first, last) = (y(shared[0].1), y(shared[shared.len() - 1].1));
        let at = place(shared[0].0);
        let _ = match path.is_empty() {
            true => write!(path, "M{at:.1} {first:.1}"),
            false => write!(path, "H{at:.1}V{first:.1}"),
        };
        if shared.len() > 2 {
            let (high, low) = (heights().fold(f64::INFINITY, f64::min), heights().fold(0.0, f64::max));
            let _ = write!(path, "V{high:.1}V{low:.1}");
        }
        if shared.len() > 1 {
            let _ = write!(path, "V{last:.1}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_drawn_by_its_columns() {
        let recording = Recording::parse("time_s,rate_mbps,rtt_ms_down\n0,8,20\n1,4,20\n2,0,40\n3,8,\n").unwrap();
        let names: Vec<String> = curves(&recording).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["rate, Mbit/s", "delay down, ms"]);
        let drawn = terminal(&recording);
        let quarter = |c: char, n: usize| c.to_string().repeat(n);
        // Full for 18 columns, half of the lines for 18, nothing for 18, full again.
        let top = format!("  {}{}{}\n", quarter('█', 18), quarter(' ', 36), quarter('█', 18));
        let bottom = format!("  {}{}{}\n", quarter('█', 36), quarter(' ', 18), quarter('█', 18));
        assert!(drawn.contains("rate, Mbit/s: 0 to 8, 5 on average\n"), "{drawn}");
        assert_eq!((drawn.matches(&top).count(), drawn.matches(&bottom).count()), (2, 2), "{drawn}");
        assert!(drawn.ends_with("4 s\n"), "{drawn}");
        let picture = svg(&recording);
        let axis = "<text x=\"60\" y=\"150\">0 s</text>\n<text x=\"700\" y=\"150\" text-anchor=\"end\">4 s</text>";
        assert!(picture.contains(axis), "{picture}");
        assert!(picture.contains("M60.0 25.0H220.0V80.0H380.0V135.0H540.0V25.0H700.0V25.0"), "{picture}");
    }

    #[test]
    fn a_long_recording_is_a_small_picture_with_its_extremes() {
        let line = |n: u32| format!("{},{}\n", n, if n == 777 { 99 } else { 10 + n % 7 });
        let text = format!("time_ms,rate_mbps\n{}", (0..100_000).map(line).collect::<String>());
        let picture = svg(&Recording::parse(&text).unwrap());
        assert!(picture.len() < 200_000, "{} bytes", picture.len());
        assert!(picture.contains("V25.0"), "one line of 100,000 has the greatest value");
    }
}
