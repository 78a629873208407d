//! A correct script, and ways to make it wrong.

/// A script that passes against any host.
pub const RIGHT: &str = "\
# Data is acknowledged.
clause  rfc9293 3.10.7.4
kernel  passes
set     mptcp off

+0      listen
+0      < S  0:0(0) win 65535 <mss 1000>
+0      > S. 0:0(0) ack 1 <mss 1460>
+0.01   < .  1:1(0) ack 1 win 65535
+0      accept
+0.01   < P. 1:101(100) ack 1 win 65535
+0      > .  1:1(0) ack 101
+0      read 100
+0      write 300
+0      > P. 1:301(300) ack 101
+0.01   < .  101:101(0) ack 301 win 65535
+0      quiet 1
";

/// The script with one line changed.
pub fn with(line: &str, instead: &str) -> String {
    assert_eq!(RIGHT.matches(line).count(), 1, "{line}");
    RIGHT.replace(line, instead)
}

/// A line, its replacement, and the text of the failure. The replacements are wrong numbers, lengths, flags, windows
/// and options; a missing packet, one too many, one too late.
pub const WRONG: [(&str, &str, &str); 19] = [
    ("> .  1:1(0) ack 101", "> .  1:1(0) ack 102", "ack 101, not 102"),
    ("> P. 1:301(300) ack 101", "> P. 2:302(300) ack 101", "seq 1, not 2"),
    ("> P. 1:301(300) ack 101", "> P. 1:302(301) ack 101", "length 300, not 301"),
    ("> P. 1:301(300) ack 101", "> F. 1:301(300) ack 101", "flags P., not F."),
    ("ack 1 <mss 1460>", "ack 1 win 1 <mss 1460>", "not 1"),
    ("ack 1 <mss 1460>", "ack 1 ecn ect0 <mss 1460>", "ecn not-ect, not ect0"),
    ("ack 1 <mss 1460>", "ack 1 <mss 1461>", "<mss 1460>, not <mss 1461>"),
    ("ack 1 <mss 1460>", "ack 1 <mss *, sackOK>", "no <sackOK>"),
    ("ack 1 <mss 1460>", "ack 1", "<mss 1460> besides"),
    ("+0      > .  1:1(0) ack 101\n", "", "length 0, not 300"),
    ("+0      > .  1:1(0) ack 101", "+0 > . 1:1(0) ack 101\n+0 > . 1:1(0) ack 101", "nothing up to"),
    ("+0      > P. 1:301(300) ack 101", "+0.2    > P. 1:301(300) ack 101", "too early"),
    ("+0      quiet 1", "+0.01   < . 201:301(100) ack 301\n+0 quiet 1", "a packet that no line has"),
    ("+0      quiet 1", "+0.01   < . 201:301(100) ack 301", "a packet that no line has"),
    ("+0      read 100", "+0      read 101", "100 bytes, then nothing"),
    ("+0      read 100", "+0      read \"x\"", "byte 0 of the stream"),
    ("+0      read 100", "+0      read 100\n+0 read end", "nothing to read"),
    ("(300) ack 101\n", "(300) ack 101 payload from 1\n", "payload byte 0"),
    ("+0      write 300", "+0      multipath\n+0 write 300", "multipath: false"),
];
