//! `[hosts]`: the host at each end.

use super::fields::Fields;
use crate::diagnostic::Code;
use crate::notation::{integers, word};
use crate::row::Row;
use crate::scenario::Scenario;
use crate::tree::Report;

#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(s: &mut Scenario) -> Vec<Row<'_>> {
    vec![
        Row::new("sender", word(), &mut s.hosts.sender, "the host that sends the data: this engine or the Linux kernel. It is the server's; of an upload (traffic.direction = \"up\") the client's"),
        Row::new("receiver", word(), &mut s.hosts.receiver, "the host at the other end"),
        Row::new("sender_model", word(), &mut s.settings.sender_model, "rule by which a sending engine counts the peer's window. rfc: a DATA_ACK carries the window of its own segment (RFC 8684 §3.3.5); linux: the window of its subflow, which a duplicate acknowledgment does not shrink, so that the sender sometimes overruns the receiver's window; the scheduler linux-default then fills that to the last byte, ends bursts with a page, waits for what is left of the subflows' timers, and uses silent paths until they are stale. docs/lab/tight-receiver.md, docs/lab/choices.md"),
        Row::new("receiver_model", word(), &mut s.settings.receiver_model, "rule by which an engine counts its receive window. rfc: recv_buffer beyond the data read, regardless of out-of-order data (RFC 8684 §3.3.5); linux: out-of-order data reduces the window, half of the memory counts until every subflow has carried data, windows are in whole units of the window scale, only the subflow that freed much advertises it, and out-of-order data that ends beyond the window is dropped although its subflow acknowledged it. docs/lab/tight-receiver.md"),
        Row::new("ip", integers(&[4, 6]), &mut s.hosts.ip, "IP version"),
    ]
}

/// Refuses a kernel at either end, where a scenario runs in virtual time alone.
pub(super) fn refuse_kernels(report: &mut Report, hosts: &Fields<'_>, message: &str, help: &str) {
    for key in ["sender", "receiver"] {
        if let Some(node) = hosts.written(key).filter(|node| node.as_text() == Some("linux")) {
            report.error(Code::Conflict, node.at, message).label("this host is a kernel").help(help);
        }
    }
}
