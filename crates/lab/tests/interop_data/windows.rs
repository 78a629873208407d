//! Receive windows that are tiny, or closed for a while.

use crate::common::{Lab, Plan, alone, ms};
use crate::transfer::{BOTH, EXCUSED, each, families, plain, plan, sysctl, transfer};
use anabranch_units::{Duration, Side};
use anabranch_wire::Flags;

/// The kernel's default buffers, whatever the engine's are.
fn usual_buffers(plan: &mut Plan) {
    sysctl(plan, "net.ipv4.tcp_rmem", "4096 131072 6291456");
    sysctl(plan, "net.ipv4.tcp_wmem", "4096 16384 4194304");
}

#[test]
fn tiny_window_of_the_engine() {
    let Some(_alone) = alone() else { return };
    let windows = [2_000, 5_000, 20_000, 65_536];
    let cases = BOTH.into_iter().flat_map(|engine| windows.map(|window| (engine, window)));
    each(cases, 8, |(engine, window)| {
        for mut plan in [plan(engine, 2), plain(engine)].into_iter().flat_map(families) {
            plan.settings.recv_buffer = window;
            usual_buffers(&mut plan);
            let outcome = transfer(&plan, &[(0, 40 * window)], 1, Duration::from_secs(60));
            outcome.assert_clean(EXCUSED);
        }
    });
}

#[test]
fn tiny_window_of_the_kernel() {
    let Some(_alone) = alone() else { return };
    let buffers = [4_096, 16_384, 65_536];
    let cases = BOTH.into_iter().flat_map(|engine| buffers.map(|buffer| (engine, buffer)));
    each(cases, 6, |(engine, buffer)| {
        for mut plan in [plan(engine, 1), plain(engine)].into_iter().flat_map(families) {
            usual_buffers(&mut plan);
            sysctl(&mut plan, "net.ipv4.tcp_rmem", format!("4096 {buffer} {buffer}"));
            let outcome = transfer(&plan, &[(10 * buffer, 0)], 1, Duration::from_secs(60));
            outcome.assert_clean(EXCUSED);
        }
    });
}

/// More bytes than any pair of buffers here holds.
const MUCH: u64 = 12 << 20;

fn pausing(mut plan: Plan) -> Plan {
    plan.settings.recv_buffer = 1 << 20;
    plan.settings.send_buffer = 1 << 20;
    plan.captured = true;
    plan
}

/// The engine stops reading for some seconds.
fn engine_pauses(plan: Plan) {
    let Some(mut lab) = Lab::start(pausing(plan)) else { return };
    lab.engine.read_only(100_000);
    lab.kernel.send(MUCH);
    lab.kernel.finish();
    let shut = |lab: &Lab| lab.notes.sent().any(|p| p.packet.segment.window == 0 && is_ack(p.packet.segment.flags));
    lab.until("a window of zero", |lab| shut(lab));
    let before = lab.notes.got().count();
    lab.run(ms(3_000));
    let held = lab.engine.progress().received;
    assert!(held < MUCH / 2, "{held} bytes were read");
    assert!(lab.notes.got().count() > before, "the kernel did not probe");
    lab.engine.read_all();
    lab.engine.finish();
    lab.until_in(ms(30_000), "the rest", |lab| lab.engine.progress().received == MUCH);
    lab.until_ended();
}

/// The kernel's application stops reading for some seconds.
fn kernel_pauses(plan: Plan) {
    let Some(mut lab) = Lab::start(pausing(plan)) else { return };
    lab.kernel.read_only(100_000);
    lab.engine.send(MUCH);
    lab.engine.finish();
    lab.until("full buffers", |lab| lab.connection().is_some_and(|c| c.view().window_blocked()));
    lab.run(ms(500));
    let before = lab.notes.sent().count();
    lab.run(ms(3_000));
    let held = lab.kernel.progress().received;
    assert!(held < MUCH / 2, "{held} bytes were read");
    assert!(lab.notes.sent().count() > before, "the engine did not probe");
    lab.kernel.read_all();
    lab.kernel.finish();
    lab.until_in(ms(30_000), "the rest", |lab| lab.kernel.progress().received == MUCH);
    lab.until_ended();
}

fn is_ack(flags: Flags) -> bool {
    flags.has(Flags::ACK) && !flags.has(Flags::SYN) && !flags.has(Flags::RST)
}

#[test]
fn engine_that_pauses_client() {
    engine_pauses(plan(Side::Client, 2));
    engine_pauses(plain(Side::Client));
}

#[test]
fn engine_that_pauses_server() {
    engine_pauses(plan(Side::Server, 2).v6());
    engine_pauses(plain(Side::Server).v6());
}

#[test]
fn kernel_that_pauses_client() {
    kernel_pauses(plan(Side::Server, 2));
    kernel_pauses(plain(Side::Server));
}

#[test]
fn kernel_that_pauses_server() {
    kernel_pauses(plan(Side::Client, 2).v6());
    kernel_pauses(plain(Side::Client).v6());
}
