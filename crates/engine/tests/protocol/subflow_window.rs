//! `ReceiveWindow::Subflow`: each subflow has a receive buffer and a window of its own.

use crate::common::plain_stamps;
use crate::common::solo::{Build, Solo};
use crate::linux_window::take;
use anabranch_engine::{ReceiveWindow, Settings, TcpSettings};

/// A server with two subflows.
fn two_subflows(recv_buffer: u64) -> Solo {
    let tcp = TcpSettings { receive_window: ReceiveWindow::Subflow, ..plain_stamps().tcp };
    let mut h = Solo::open_server(Settings { recv_buffer, tcp, ..plain_stamps() });
    h.join(1);
    h
}

#[test]
fn what_is_not_read_takes_of_the_window_of_the_subflow_that_brought_it() {
    let mut h = two_subflows(10_000);
    assert_eq!(take(&mut h, 10, 0, 1, 0, 1000), (1000, 9000));
    assert_eq!(take(&mut h, 20, 0, 1001, 1000, 1000), (2000, 8000));
    assert_eq!(take(&mut h, 30, 1, 1, 2000, 1000), (3000, 9000));
    assert_eq!(h.read().len(), 3000);
    assert_eq!(take(&mut h, 40, 0, 2001, 3000, 1000), (4000, 9000));
}

#[test]
fn a_sender_takes_the_windows_of_all_subflows_together() {
    let mut h = two_subflows(10_000);
    h.send(h.seg(1, 1).window(65_535).dss(h.data_ack(0)));
    assert_eq!(h.connection().view().window_edge(), 2 * 65_535);
}
