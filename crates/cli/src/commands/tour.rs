//! The first words.

/// The output of `anabranch` without arguments.
pub fn tour() -> String {
    format!(
        "\
Anabranch {}: Multipath TCP (RFC 8684) in deterministic virtual time.

One scenario file describes paths, a connection and its traffic. Anabranch runs it under any packet
scheduler and congestion control, over many seeds, beside each path alone with plain TCP, and shows
with intervals whether multipath helped, and its cost in reordering and retransmissions.

Three commands to try:

  anabranch demo                                        six schedulers over WLAN and 3G
  anabranch explain blest                               what a scheduler does, and its source
  anabranch run tight-window --scheduler minrtt,blest   compare two in a small receive window

All commands: anabranch --help
",
        env!("CARGO_PKG_VERSION")
    )
}
