//! The network of a scenario, as far as a reader needs it to understand the figures, and its picture.

use crate::describe::figure;
use crate::svg::{CLOSE, escape, open_bare};
use anabranch_units::TrafficDirection;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The paths of a scenario, and the time before its measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// Discarded time before the measured time, in seconds.
    pub warmup_s: f64,
    /// Which ends send data.
    #[serde(skip_serializing_if = "is_down")]
    pub direction: TrafficDirection,
    /// In the scenario's order, each from sender to receiver; where both ends send, from server to client.
    pub paths: Vec<PathShape>,
    /// The paths from client to server, where both ends send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<PathShape>,
}

fn is_down(direction: &TrafficDirection) -> bool {
    *direction == TrafficDirection::Down
}

impl Network {
    /// The shapes that are drawn; where both ends send, the name of each says in which direction it is.
    fn shapes(&self) -> Vec<PathShape> {
        let of = |path: &PathShape, way: &str| PathShape { name: format!("{}, {way}", path.name), ..path.clone() };
        let pairs = self.paths.iter().zip(&self.back);
        match self.direction {
            TrafficDirection::Both => pairs.flat_map(|(down, up)| [of(down, "down"), of(up, "up")]).collect(),
            TrafficDirection::Down | TrafficDirection::Up => self.paths.clone(),
        }
    }

    /// Names of the hosts that send and receive.
    fn hosts(&self) -> [&'static str; 2] {
        match self.direction {
            TrafficDirection::Down => ["server", "client"],
            TrafficDirection::Up => ["client", "server"],
            TrafficDirection::Both => ["sender", "receiver"],
        }
    }

    /// Which end sends, unless it is the server, as usual.
    pub(super) fn direction_in_words(&self) -> Option<String> {
        let words = match self.direction {
            TrafficDirection::Down => return None,
            TrafficDirection::Up => {
                "An upload: data flow from the client to the server, whose paths are shown in this direction."
            }
            TrafficDirection::Both => {
                "Data flow both ways at once. Goodput, completion and counts are of both directions together; values over time are of \
                 each, and packets of what the server sends."
            }
        };
        Some(words.to_owned())
    }
}

/// One path, from sender to receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathShape {
    /// Name of the path.
    pub name: String,
    /// Capacity in bit/s; of a recorded capacity the mean.
    pub rate_bps: f64,
    /// The capacity is recorded, so that `rate_bps` is its mean.
    pub recorded: bool,
    /// The shared link whose capacity and queue it uses.
    pub link: Option<String>,
    /// Propagation delay one way, in seconds.
    pub delay_s: f64,
    /// Part of the packets that is lost at random, 0 to 1.
    pub loss: f64,
    /// Room of the queue in bytes; packets count with the size of a full one.
    pub queue_bytes: f64,
    /// Room of the queue as the scenario has it, in packets.
    pub queue_packets: Option<u32>,
}

impl PathShape {
    /// Time in which the full queue drains, in seconds.
    fn drain_s(&self) -> f64 {
        if self.rate_bps > 0.0 { 8.0 * self.queue_bytes / self.rate_bps } else { 0.0 }
    }

    /// `25 Mbit/s · 25 ms one way · 1 % lost` and `queue of 100 packets: 48 ms when full`.
    fn in_words(&self) -> [String; 2] {
        let rate = format!("{}{} Mbit/s", if self.recorded { "mean " } else { "" }, figure(self.rate_bps / 1e6));
        let link = self.link.as_ref().map(|link| format!(" shared over {link}")).unwrap_or_default();
        let loss = if self.loss > 0.0 { format!("{} % lost", figure(100.0 * self.loss)) } else { "no loss".into() };
        let room = match self.queue_packets {
            Some(packets) => format!("{packets} packets"),
            None => format!("{} KiB", figure(self.queue_bytes / 1024.0)),
        };
        let (delay, drain) = (time(self.delay_s), time(self.drain_s()));
        [format!("{rate}{link} · {delay} one way · {loss}"), format!("queue of {room}: {drain} when full")]
    }
}

/// `25 ms`, `8.8 s`.
fn time(seconds: f64) -> String {
    let (value, unit) = if seconds < 1.0 { (1e3 * seconds, "ms") } else { (seconds, "s") };
    let decimals = if value < 10.0 { 1 } else { 0 };
    let text = format!("{value:.decimals$}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Pixels: the picture's width, the hosts' width, the place where paths begin, a path's height.
const WIDTH: usize = 384;
const HOST: f64 = 48.0;
const BEGIN: f64 = 60.0;
const ROW: f64 = 88.0;
/// Height of the two lines below.
const LEGEND: f64 = 46.0;
/// Room of the longest queue and of the longest delay.
const QUEUE: f64 = 118.0;
const DELAY: f64 = 118.0;
/// The thickest path, and the thinnest that can be seen.
const THICK: (f64, f64) = (24.0, 2.0);
/// Crosses per path at most: one per packet lost of a hundred.
const CROSSES: f64 = 10.0;

/// Pixels per second: the longest delay has the room of delays. A queue beyond the room of queues is cut.
fn scale(paths: &[PathShape]) -> f64 {
    let longest = paths.iter().map(|path| path.delay_s).fold(0.0, f64::max);
    let deepest = paths.iter().map(PathShape::drain_s).fold(0.0, f64::max);
    // Without any delay, the queues give the scale.
    if longest > 0.0 { DELAY / longest } else { QUEUE / deepest.max(1e-9) }
}

/// The paths, drawn to scale; `None` without any. Colours are the page's.
pub fn picture(network: &Network) -> Option<String> {
    let paths = &network.shapes();
    let widest = paths.iter().map(|path| path.rate_bps).fold(0.0, f64::max);
    if paths.is_empty() || widest <= 0.0 {
        return None;
    }
    let height = ROW * paths.len() as f64 + LEGEND;
    let words: Vec<String> =
        paths.iter().map(|path| format!("{}: {}", path.name, path.in_words().join(", "))).collect();
    let mut text = open_bare(WIDTH, height as usize, &format!("The network. {}.", words.join(". ")));
    let hosts = [2.0, WIDTH as f64 - HOST - 2.0].into_iter().zip(network.hosts());
    for (x, name) in hosts {
        let (tall, middle) = (height - LEGEND, x + HOST / 2.0);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"2\" width=\"{HOST}\" height=\"{tall}\" rx=\"4\" fill=\"var(--tint)\" stroke=\"var(--soft)\"/>\n\
             <text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            tall / 2.0 + 4.0
        );
    }
    let scale = scale(paths);
    for (n, path) in paths.iter().enumerate() {
        draw(&mut text, path, ROW * n as f64, THICK.0 * path.rate_bps / widest, scale);
    }
    let lost = if paths.iter().any(|path| crosses(path) > 0) { " ✗: 1 % lost, rounded." } else { "" };
    let legend = [
        "Box: the time in which a full queue drains (× 2: twice the box).".to_owned(),
        format!("Bar: one-way delay on the same scale; thicker: higher rate.{lost}"),
    ];
    for (line, y) in legend.into_iter().zip([height - 24.0, height - 8.0]) {
        let _ = writeln!(text, "<text x=\"2\" y=\"{y:.1}\" font-size=\"11\" fill=\"var(--soft)\">{line}</text>");
    }
    Some(text + CLOSE)
}

/// One per cent of loss each.
fn crosses(path: &PathShape) -> usize {
    libm::round(100.0 * path.loss).min(CROSSES) as usize
}

fn draw(text: &mut String, path: &PathShape, top: f64, thick: f64, scale: f64) {
    let thick = thick.max(THICK.1);
    let middle = top + 64.0;
    let whole = scale * path.drain_s();
    let (queue, delay) = (whole.min(QUEUE), scale * path.delay_s);
    let end = WIDTH as f64 - HOST - 2.0;
    let [way, room] = path.in_words();
    let name = escape(&path.name);
    let _ = writeln!(
        text,
        "<text x=\"{BEGIN}\" y=\"{:.1}\"><tspan font-weight=\"bold\">{name}</tspan> {}</text>\n\
         <text x=\"{BEGIN}\" y=\"{:.1}\">{room}</text>",
        top + 18.0,
        escape(&way),
        top + 34.0
    );
    let _ = writeln!(
        text,
        "<line x1=\"{:.1}\" x2=\"{end:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"var(--soft)\" stroke-dasharray=\"1 4\"/>",
        BEGIN - 10.0
    );
    let (box_top, box_height) = (middle - THICK.0 / 2.0, THICK.0);
    let _ = writeln!(
        text,
        "<rect x=\"{BEGIN}\" y=\"{box_top:.1}\" width=\"{queue:.1}\" height=\"{box_height}\" fill=\"var(--page)\" stroke=\"var(--ink)\"/>\n\
         <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{delay:.1}\" height=\"{thick:.1}\" fill=\"var(--link)\"/>",
        BEGIN + queue,
        middle - thick / 2.0
    );
    if whole > QUEUE {
        let at = BEGIN + QUEUE / 2.0;
        let _ = writeln!(
            text,
            "<path d=\"M{:.1},{:.1}l8,-32h14l-8,32z\" fill=\"var(--page)\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\">× {:.0}</text>",
            at - 11.0,
            middle + 16.0,
            at + 34.0,
            middle + 4.0,
            whole / QUEUE
        );
    }
    for n in 0..crosses(path) {
        let x = BEGIN + queue + 4.0 + 11.0 * n as f64;
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"var(--bad)\">✗</text>", middle - 15.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, rate: f64, delay_s: f64, loss: f64, packets: u32) -> PathShape {
        PathShape {
            name: name.into(),
            rate_bps: rate,
            delay_s,
            loss,
            queue_bytes: 1500.0 * f64::from(packets),
            queue_packets: Some(packets),
            ..PathShape::default()
        }
    }

    /// Width and height of the filled bars, in order.
    fn bars(picture: &str) -> Vec<(f64, f64)> {
        let bar = |line: &str| {
            let of = |name: &str| line.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok();
            Some((of("width")?, of("height")?))
        };
        picture.lines().filter(|line| line.contains("var(--link)")).filter_map(bar).collect()
    }

    #[test]
    fn paths_are_drawn_to_scale_with_their_figures() {
        let paths = vec![path("wlan", 25e6, 0.025, 0.01, 100), path("3<g", 5e6, 0.065, 0.0, 3750)];
        let picture = picture(&Network { paths, ..Network::default() }).unwrap();
        assert!(picture.contains("wlan</tspan> 25 Mbit/s · 25 ms one way · 1 % lost<"), "{picture}");
        assert!(picture.contains(">queue of 100 packets: 48 ms when full<"));
        assert!(picture.contains("3&lt;g</tspan> 5 Mbit/s · 65 ms one way · no loss<"));
        assert!(picture.contains(">queue of 3750 packets: 9 s when full<"));
        let bars = bars(&picture);
        assert!((bars[0].1 / bars[1].1 - 5.0).abs() < 0.1, "thickness is rate: {bars:?}");
        assert!((bars[1].0 / bars[0].0 - 65.0 / 25.0).abs() < 0.01, "length is delay: {bars:?}");
        // 9 s on the scale of 65 ms is 138 times the room of queues.
        assert!(picture.contains("× 138<"), "{picture}");
        assert_eq!(picture.matches("\">✗</text>").count(), 1);
    }

    #[test]
    fn what_has_no_paths_or_no_rate_has_no_picture() {
        assert_eq!(picture(&Network::default()), None);
        assert_eq!(picture(&Network { paths: vec![path("a", 0.0, 0.1, 0.0, 1)], ..Network::default() }), None);
    }

    #[test]
    fn recorded_and_shared_capacities_say_so() {
        let recorded = PathShape { recorded: true, queue_packets: None, ..path("lte", 9e6, 0.0, 0.0, 10) };
        let shared = PathShape { link: Some("home".into()), ..path("dsl", 2e6, 0.01, 0.0, 10) };
        assert_eq!(recorded.in_words()[0], "mean 9 Mbit/s · 0 ms one way · no loss");
        assert!(recorded.in_words()[1].starts_with("queue of 14.65 KiB"));
        assert!(shared.in_words()[0].starts_with("2 Mbit/s shared over home · 10 ms"), "{:?}", shared.in_words());
    }
}
