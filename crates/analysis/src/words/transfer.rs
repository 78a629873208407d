//! Sentences about the data.

use super::paths;
use super::quantity::{bytes, count, list, percent, rate, seconds, times};
use crate::result::{Connection, OneWay, Stream};

/// Each direction with data, its waits and its window; then outages.
pub(super) fn sentences(of: &Connection) -> Vec<String> {
    let mut story = Vec::new();
    for stream in &of.streams {
        story.push(delivered(of, stream));
        story.extend(repeated(of, stream));
        story.extend(waited(of, stream));
        story.extend(window(of, stream));
    }
    story.extend(paths::outages(of));
    story
}

fn delivered(of: &Connection, stream: &Stream) -> String {
    let total = of.payload_bytes(stream.from);
    let carrying: Vec<_> = of.ways(stream.from).filter(|(_, way)| way.data.bytes > 0).collect();
    let share = |(number, way): &(usize, &OneWay)| {
        format!("{} on subflow {number}", percent(way.data.bytes as f64, total as f64))
    };
    let shares: Vec<String> = carrying.iter().map(share).collect();
    let shares = if shares.len() > 1 { format!("; of its payload {}", list(&shares)) } else { String::new() };
    let goodput = stream
        .goodput_bps
        .map_or(String::new(), |bps| format!(" in {}, {}", seconds(stream.last_s - stream.first_s), rate(bps)));
    format!("Of the {}'s data, {} arrive in order{goodput}{shares}.", stream.from, bytes(stream.delivered_bytes))
}

fn repeated(of: &Connection, stream: &Stream) -> Option<String> {
    let sum = |tally: fn(&OneWay) -> Option<u64>| of.ways(stream.from).filter_map(|(_, way)| tally(way)).sum::<u64>();
    let again = sum(|way| way.retransmitted.map(|t| t.packets));
    let reinjected = sum(|way| way.reinjected.map(|t| t.packets));
    let twice = stream.duplicate_bytes.filter(|twice| *twice > 0);
    let parts = [
        (again > 0).then(|| format!("retransmits {} on the same subflow", count(again, "packet"))),
        (reinjected > 0).then(|| format!("sends {} again on another subflow", count(reinjected, "packet"))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match (parts.is_empty(), twice) {
        (true, None) => None,
        (true, Some(twice)) => Some(format!("Of its data, {} come to the receiver twice.", bytes(twice))),
        (false, None) => Some(format!("The {} {}.", stream.from, list(&parts))),
        (false, Some(twice)) => {
            Some(format!("The {} {}; {} come to the receiver twice.", stream.from, list(&parts), bytes(twice)))
        }
    }
}

fn waited(of: &Connection, stream: &Stream) -> Vec<String> {
    let total: f64 = stream.waits.iter().map(|wait| wait.time_s).sum();
    let n: u64 = stream.waits.iter().map(|wait| wait.count).sum();
    let mut story = Vec::new();
    if let Some((from, lasted, subflow)) = stream.longest_wait {
        let by = |wait: &crate::result::Waited| {
            format!("subflow {} {} ({})", wait.subflow, seconds(wait.time_s), times(wait.count))
        };
        let by: Vec<String> = stream.waits.iter().map(by).collect();
        let peak = stream.out_of_order;
        let at = peak.peak_s.map_or(String::new(), |at| format!(", after {}", seconds(at)));
        let shown = if stream.known_by == "arrivals" { "" } else { ", as acknowledgments show" };
        story.push(format!(
            "At its receiver, data waits {} for bytes before it, {} together{shown}; at most {} wait{at}.",
            times(n),
            seconds(total),
            bytes(peak.peak_bytes)
        ));
        if of.subflows.len() > 1 {
            story.push(format!(
                "The missing bytes come on {}; the longest wait, {} from {} on, ends by subflow {subflow}.",
                list(&by),
                seconds(lasted),
                seconds(from)
            ));
        }
    }
    // Data nearly always waits at the end of a capture: it counts if it has waited longer than a least retransmission timeout.
    story.extend(stream.waits_since_s.filter(|since| of.lasts_s - since > 0.2).map(|since| {
        format!("Since {} data waits for bytes that do not come before the capture ends.", seconds(since))
    }));
    story
}

fn window(of: &Connection, stream: &Stream) -> Option<String> {
    let window = stream.window.filter(|window| window.count > 0)?;
    let spent = percent(window.time_s, of.lasts_s);
    Some(format!(
        "The receive window, at most {}, is full {}, {} together ({spent} of the time): the {} may send no new data then.",
        bytes(window.largest_window_bytes),
        times(window.count),
        seconds(window.time_s),
        stream.from
    ))
}
