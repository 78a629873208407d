//! Fixed points of coupled congestion controls: what papers' equations say of topologies, and what runs give. `docs/lab/fixed-points.md`
//! derives them.

use assert_cmd::Command;
use serde_json::Value;

/// Bytes of payload in a packet of 1480 bytes with Multipath TCP's options, and in one of TCP.
const PAYLOAD: f64 = 1428.0 / 1480.0;

fn anabranch(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = command.args(arguments).write_stdin(input).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
