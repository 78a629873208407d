//! Acknowledgments on their way back to the server.

use anabranch_units::{Instant, PathId};
use anabranch_wire::{DataAck, Packet};
use std::collections::{BTreeMap, VecDeque};

/// Packets on their way at most: what is lost is forgotten some time.
const MOST: usize = 4096;

/// Identifies a packet of the client: path, port, acknowledgment number, DATA_ACK, timestamp.
type Mark = (PathId, u16, u32, Option<u32>, Option<u32>);

/// The client's packets that acknowledge something new.
#[derive(Debug, Default)]
pub struct Acks {
    under_way: VecDeque<(Mark, Instant, f64)>,
    /// The newest acknowledgment number of each subflow, by path and the client's port.
    acked: BTreeMap<(PathId, u16), u32>,
    data_acked: Option<u32>,
}

fn mark(path: PathId, packet: &Packet) -> Mark {
    let segment = &packet.segment;
    let data = segment.options.dss().and_then(|dss| dss.ack).map(|ack| match ack {
        DataAck::Short(low) => low,
        DataAck::Long(whole) => whole as u32,
    });
    let stamp = segment.options.timestamps().map(|stamps| stamps.val);
    (path, segment.src_port, segment.ack.0, data, stamp)
}

/// `new` is later in the space of 32-bit numbers (RFC 9293 §3.4).
fn is_news(new: u32, old: Option<u32>) -> bool {
    old.is_none_or(|old| (1..1 << 31).contains(&new.wrapping_sub(old)))
}

impl Acks {
    /// The subflow of a path and a client's port carries data of the connection: its acknowledgments are followed.
    pub fn follow(&mut self, path: PathId, port: u16, newest: u32) {
        self.acked.entry((path, port)).or_insert(newest);
    }

    /// The client sent a packet.
    pub fn sent(&mut self, now: Instant, path: PathId, packet: &Packet) {
        let mark = mark(path, packet);
        let (_, port, ack, data, _) = mark;
        let Some(acked) = self.acked.get_mut(&(path, port)) else { return };
        let of_subflow = is_news(ack, Some(*acked));
        let of_data = data.is_some_and(|data| is_news(data, self.data_acked));
        if of_subflow {
            *acked = ack;
        }
        if of_data {
            self.data_acked = data;
        }
        if of_subflow || of_data {
            self.under_way.push_back((mark, now, f64::from(u8::from(of_subflow) + 2 * u8::from(of_data))));
        }
        if self.under_way.len() > MOST {
            self.under_way.pop_front();
        }
    }

    /// A packet of the client reached the server: when it was sent, and its news, 1 for the subflow's acknowledgment number, 2 for the
    /// DATA_ACK, 3 for both. `None` without news.
    pub fn arrived(&mut self, path: PathId, packet: &Packet) -> Option<(Instant, f64)> {
        let mark = mark(path, packet);
        let place = self.under_way.iter().position(|(known, ..)| *known == mark)?;
        self.under_way.remove(place).map(|(_, sent, news)| (sent, news))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SeqNumber;
    use anabranch_wire::{Dss, Segment};

    const PATH: PathId = PathId(1);

    fn packet(ack: u32, data: u32) -> Packet {
        let mut segment = Segment { src_port: 9, ack: SeqNumber(ack), ..Segment::default() };
        let dss = Dss { ack: Some(DataAck::Short(data)), mapping: None, data_fin: false };
        segment.options.set_dss(dss);
        Packet { segment, ..Packet::default() }
    }

    #[test]
    fn what_acknowledges_something_new_is_followed_to_the_server() {
        let mut acks = Acks::default();
        let at = Instant::from_millis;
        acks.sent(at(1), PATH, &packet(50, 7));
        assert_eq!(acks.arrived(PATH, &packet(50, 7)), None, "of another connection");
        acks.follow(PATH, 9, u32::MAX);
        acks.sent(at(2), PATH, &packet(50, 7));
        acks.sent(at(3), PATH, &packet(50, 7));
        acks.sent(at(4), PATH, &packet(60, 7));
        acks.sent(at(5), PATH, &packet(60, 8));
        // Older than what was acknowledged.
        acks.sent(at(6), PATH, &packet(55, 7));
        let seen =
            [(50, 7), (50, 7), (60, 7), (60, 8), (55, 7)].map(|(ack, data)| acks.arrived(PATH, &packet(ack, data)));
        assert_eq!(seen, [Some((at(2), 3.0)), None, Some((at(4), 1.0)), Some((at(5), 2.0)), None]);
    }
}
