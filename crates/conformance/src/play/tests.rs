//! The packets that lines accept and refuse, tested against a host that sends a given list.

use super::*;
use crate::packet::{Opt, TcpPacket};
use crate::script::{After, Call, Counter};
use world::{SERVER_PORT, address};

/// Sends packets at their times, regardless of its input.
struct Puppet {
    now: Duration,
    left: VecDeque<Sent>,
}

const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;

fn packet(path: u8, flags: u8, seq: u32, options: Vec<Opt>) -> TcpPacket {
    TcpPacket {
        src: address(false, crate::script::Address::Local(0)),
        dst: address(false, crate::script::Address::Peer(path)),
        src_port: SERVER_PORT,
        dst_port: world::CLIENT_PORT + u16::from(path),
        seq: 5000 + seq,
        ack: 0,
        flags,
        ecn: 0,
        window: 1000,
        options,
        payload: Vec::new(),
        bad_checksum: false,
    }
}

impl Puppet {
    /// Pairs of milliseconds and packet.
    fn new(packets: Vec<(u64, TcpPacket)>) -> Self {
        let sent = |(at, packet): (u64, TcpPacket)| Sent {
            at: Duration::from_millis(at),
            bytes: packet.to_bytes().expect("it fits"),
        };
        Self { now: Duration::ZERO, left: packets.into_iter().map(sent).collect() }
    }
}

impl Subject for Puppet {
    fn now(&self) -> Duration {
        self.now
    }
    fn receive(&mut self, until: Duration) -> Result<Option<Sent>, String> {
        let next = self.left.pop_front_if(|sent| sent.at <= until);
        self.now = self.now.max(next.as_ref().map_or(until, |sent| sent.at));
        Ok(next)
    }
    fn inject(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn call(&mut self, _call: &Call, _data: Vec<u8>) -> Result<(), String> {
        Ok(())
    }
    fn read(&mut self, _most: usize) -> Got {
        Got::Nothing
    }
    fn status(&mut self) -> Result<Status, String> {
        Ok(Status::default())
    }
    fn count(&mut self, _counter: Counter, name: &str) -> Result<Option<u64>, String> {
        Ok((name == "Known").then_some(3))
    }
    fn bounds(&self, after: &After) -> (Duration, Duration) {
        match after.most {
            Most::Until(most) => (after.least, most),
            _ => (after.least, after.least + Duration::from_millis(1)),
        }
    }
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
    fn afterwards(&self) -> Duration {
        Duration::ZERO
    }
}

/// Two subflows begin at 0 ms; then come the packets, and the lines.
fn played(packets: &[(u64, u8, u32)], lines: &str) -> Result<Vec<String>, String> {
    let begin = "# t\nclause rfc1 1\nkernel passes\n+0 < S 0:0(0)\n+0 > S. 0:0(0) ack *\n+0 1> S. 0:0(0) ack *\n";
    let script = Script::parse("t.script", &format!("{begin}{lines}\n")).expect("a script");
    let mut all = vec![(0, packet(0, SYN_ACK, 0, Vec::new())), (0, packet(1, SYN_ACK, 0, Vec::new()))];
    all.extend(packets.iter().map(|&(at, path, seq)| (at, packet(path, ACK, seq, Vec::new()))));
    play(&script, &mut Puppet::new(all)).map_err(|failure| failure.to_string())
}

fn passes(packets: &[(u64, u8, u32)], lines: &str) {
    played(packets, lines).expect(lines);
}

fn fails(packets: &[(u64, u8, u32)], lines: &str, why: &str) {
    let failure = played(packets, lines).expect_err(lines);
    assert!(failure.contains(why), "{lines}: {failure}");
}

#[test]
fn order_holds_on_a_path_and_is_free_between_paths() {
    let lines = "+0.01 > . 1:1(0) ack *\n+0 > . 2:2(0) ack *\n+0 1> . 3:3(0) ack *";
    passes(&[(10, 0, 1), (10, 0, 2), (10, 1, 3)], lines);
    passes(&[(10, 1, 3), (10, 0, 1), (10, 0, 2)], lines);
    fails(&[(10, 0, 2), (10, 0, 1), (10, 1, 3)], lines, "seq 2, not 1");
    fails(&[(10, 0, 1), (10, 1, 4), (10, 0, 2)], lines, "seq 4, not 3");
    fails(&[(10, 0, 1), (10, 0, 2)], lines, "nothing up to");
}

#[test]
fn packets_come_in_their_time() {
    passes(&[(20, 0, 1)], "+0.02 > . 1:1(0) ack *");
    passes(&[(21, 0, 1)], "+0.01~0.03 > . 1:1(0) ack *");
    fails(&[(9, 0, 1)], "+0.02 > . 1:1(0) ack *", "too early");
    fails(&[(31, 0, 1)], "+0.01~0.03 > . 1:1(0) ack *", "nothing up to");
    // Times count from the previous packet.
    passes(&[(25, 0, 1), (45, 0, 2)], "+0.01~0.03 > . 1:1(0) ack *\n+0.02 > . 2:2(0) ack *");
}

#[test]
fn an_optional_packet_comes_once_or_not_at_all() {
    let lines = "+0.01 optional > . 1:1(0) ack *\n+0 > . 2:2(0) ack *\n+0.1 close";
    passes(&[(10, 0, 1), (10, 0, 2)], lines);
    passes(&[(10, 0, 2)], lines);
    passes(&[(10, 0, 2), (50, 0, 1)], lines);
    fails(&[(10, 0, 1), (10, 0, 2), (50, 0, 1)], lines, "a packet that no line has");
}

#[test]
fn an_ignored_packet_comes_as_often_as_it_likes_but_not_before() {
    let lines = "+0.01 > . 2:2(0) ack *\n+0 ignore > . 1:1(0) ack *\n+0.1 close\n+0 quiet 0.1";
    passes(&[(10, 0, 2)], lines);
    passes(&[(10, 0, 2), (20, 0, 1), (30, 0, 1), (150, 0, 1)], lines);
    fails(&[(10, 0, 2), (20, 0, 1), (30, 0, 3)], lines, "a packet that no line has");
    fails(&[(5, 0, 3), (10, 0, 2)], lines, "seq 3, not 2");
    // A packet that a line requires counts for that line, even if another line permits it.
    passes(&[(10, 0, 1), (10, 0, 1)], "+0 ignore > * *:*(0)\n+0.01 > . 1:1(0) ack *");
    fails(&[], "+0 ignore > * *:*(0)\n+0.01 > . 1:1(0) ack *", "nothing up to");
}

#[test]
fn nothing_comes_unasked_where_time_passes() {
    fails(&[(5, 0, 1)], "+0.01 close", "a packet that no line has");
    fails(&[(5, 0, 1)], "+0 quiet 0.01", "a packet that no line has");
    fails(&[(5, 0, 1)], "+0.005 close", "a packet that no line has");
    passes(&[(5, 0, 1)], "+0 quiet 0.004");
    fails(&[(0, 0, 1)], "+0 close", "nothing more");
    fails(&[(0, 7, 1)], "+0 7> . 2:2(0) ack *", "seq");
}

#[test]
fn steps_repeat_and_counters_count() {
    let exchange = played(&[], "+0.01 repeat 3 < . 1:1(0) ack =9 win 7").expect("three packets");
    let sent = exchange.iter().filter(|line| line.ends_with("< . 1:1(0) ack -4991 win 7"));
    assert_eq!(sent.map(|line| line.trim_start()[..4].to_owned()).collect::<Vec<_>>(), ["0.01", "0.02", "0.03"]);
    passes(&[], "+0 count engine Known 3\n+0 count kernel Foreign 5");
    fails(&[], "+0 count engine Known 2", "Known is 3");
}

#[test]
fn the_notation_that_is_shown_can_be_read_again() {
    let lists = [
        "mss 1460, wscale 7, sackOK, TS val 1 ecr 2, mp_prio backup, mp_tcprst transient reason 6, raw 0xfd02",
        "mp_capable v1 AH [peer 0x7] len 9 csum 0x1234, remove_addr 1 2",
        "sack 1:2 3:4, add_addr echo id 1 local.1 port 5",
        "mp_join syn backup id 3 token 0x4 nonce 0x5, mp_fail dsn =0x9",
        "mp_fastclose key 0x77, mp_prio",
    ];
    for options in lists {
        let line = format!("< SP. 5:5(0) ack 7 win 9 <{options}>");
        let exchange = played(&[], &format!("+0 {line}")).expect("it is sent");
        let shown = exchange.last().expect("a line").split_once("< SP.").map(|(_, rest)| format!("< SP.{rest}"));
        assert_eq!(shown.as_deref(), Some(&*line));
    }
}
