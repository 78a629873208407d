//! The send side of the connection: what was written and not acknowledged, what of it is bound to which subflow, and what
//! acknowledgments, losses and silence mean for that.

mod acks;
mod buffer;
mod data_fin;
mod ending;
mod failing;
mod hold;
mod paths;
mod persist;
mod policy;
mod rounds;
mod stream;
mod timers;
mod transmit;
mod windows;

pub(crate) use data_fin::DataFin;
pub(crate) use persist::Peer;
pub(crate) use timers::Overdue;

use crate::congestion::CongestionControl;
use crate::cx::Scope;
use crate::mode::Mode;
use crate::schedule::{Assignment, Cause, Numbering, Queued, Scheduler, SenderPolicy, View};
use crate::settings::Settings;
use crate::subflow::sender::Sent;
use crate::subflow::{Lent, Subflow, Subflows};
use anabranch_plugin::ensemble::Member;
use anabranch_trace::{Event, SendKind};
use anabranch_units::{Instant, PathId};
use bytes::Bytes;
use failing::SilentPaths;
use persist::Persist;
use rounds::Rounds;
use stream::Stream;
use windows::Windows;

/// The connection's send buffer, its assignment to subflows, and what decides about that.
#[derive(Debug)]
pub(crate) struct Sending {
    assignment: Assignment,
    windows: Windows,
    pub stream: Stream,
    /// From which [standing](Subflows::standing) of the subflows the usability of the paths was derived; 0 = of none.
    standing: u128,
    silent: SilentPaths,
    pub rounds: Rounds,
    pub persist: Persist,
}

impl Sending {
    pub fn new(
        settings: &Settings,
        scheduler: Box<dyn Scheduler>,
        congestion: Box<dyn CongestionControl>,
        known_paths: usize,
    ) -> Self {
        let mut assignment = Assignment::new(settings.tcp.nagle);
        assignment.set_send_buffer(settings.send_buffer, known_paths);
        assignment.set_numbering(Mode::at_first(settings).into());
        assignment.set_sender(settings.sender_model.into());
        assignment.measure_capacity(scheduler.measures_capacity());
        Self {
            assignment,
            silent: SilentPaths::of(settings, &*scheduler),
            rounds: Rounds::new(scheduler),
            windows: Windows::new(congestion, settings),
            stream: Stream::new(settings),
            standing: 0,
            persist: Persist::default(),
        }
    }

    /// The connection's part in its endpoint's ensemble.
    pub const fn member_mut(&mut self) -> &mut Member {
        self.assignment.member_mut()
    }

    /// The scheduler's view.
    #[inline(always)]
    pub fn view(&self) -> &View {
        &self.assignment
    }

    /// Time has passed.
    #[inline(always)]
    pub fn set_now(&mut self, now: Instant) {
        self.assignment.set_now(now);
    }

    // ---- the application's side ----

    /// Takes as much of `bytes` as there is room for; returns how much that was.
    pub fn write(&mut self, cx: &mut Scope<'_>, subflows: &mut Subflows, bytes: Bytes) -> usize {
        if self.stream.is_over() {
            return 0;
        }
        let some = !bytes.is_empty() && self.stream.room() > 0;
        if some && subflows.iter().any(|s| s.sender().measures_rate()) {
            subflows.iter_mut().for_each(|s| self.note_starved(s));
        }
        let taken = self.stream.write(bytes);
        self.assignment.set_buffer_full(self.stream.is_full());
        if some {
            self.assignment.set_written(taken.end);
            cx.record(None, Event::Written(taken));
            self.rounds.ask(Cause::Written);
        }
        taken.len() as usize
    }

    /// The next `len` bytes that are written belong together, and are late for the application after `deadline`.
    pub fn begin_message(&mut self, len: u64, deadline: Option<Instant>) -> bool {
        !self.stream.is_finished() && self.assignment.begin_message(len, deadline)
    }

    /// No more will be written.
    pub fn finish(&mut self, cx: &mut Scope<'_>) {
        if self.stream.is_over() {
            return;
        }
        self.stream.finish();
        self.assignment.set_ended();
        cx.record(None, Event::WriteEnd(self.stream.end()));
        self.rounds.ask(Cause::Written);
    }

    /// The connection has ended: nothing more is written, probed for or said.
    pub fn stop(&mut self) {
        self.rounds.withdraw();
        self.persist.disarm();
        self.stream.stop();
        self.assignment.give_memory_back();
    }

    /// Tells the application, if it waits for it, that there is room in the send buffer.
    fn wake_writer(&mut self) {
        if self.stream.wake_writer() {
            self.assignment.set_buffer_full(false);
        }
    }

    // ---- where the stream stands ----

    /// The peer has acknowledged everything that was written so far.
    pub fn all_delivered(&self) -> bool {
        self.assignment.data_acked() >= self.stream.end()
    }

    /// Everything that was written was sent, and nothing of it waits to be sent in a queue.
    fn all_sent(&self) -> bool {
        self.assignment.backlog().is_empty() && !self.assignment.anything_queued()
    }

    /// The DATA_FIN is to be sent without payload as soon as everything else was delivered.
    fn settle_data_fin(&mut self) {
        let fin = &self.stream.data_fin;
        let due = self.stream.is_finished() && self.all_delivered() && !fin.is_acked() && !fin.has_left();
        if due && !self.assignment.anything_queued() {
            self.stream.data_fin.send();
        }
    }

    /// Everything that was sent and is not acknowledged, up to the last byte, is on `s`, in one piece and in order.
    pub fn is_in_order_on(&self, s: &Subflow) -> bool {
        let view = self.view();
        let carried = view.outstanding().iter().all(|(_, copies)| copies.on(s.id));
        let new = |start| start >= self.stream.sent_end();
        let queued = view.queue(s.id).filter(|q| q.kind == SendKind::First).all(|q| new(q.range.start));
        let backlog = view.backlog().first().is_none_or(|range| new(range.start));
        let once = !self.persist.has_repeated_beyond(view.data_acked());
        carried && queued && backlog && once && s.carries_in_order(self.stream.sent_end())
    }

    /// The protocol of the connection from here on.
    pub fn speak(&mut self, mode: Mode) {
        self.assignment.set_numbering(mode.into());
    }

    /// Our stream is the sequence of the only subflow.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.assignment.numbering() == Numbering::Subflow
    }

    /// From here on our stream continues in the sequence of `s`. Data that was sent with mappings keeps its place; new data
    /// follows in the subflow's own sequence. Data acknowledged on the subflow has arrived, even without a DATA_ACK.
    pub fn go_on_in(&mut self, cx: &mut Scope<'_>, s: &mut Lent<'_>) {
        let id = s.id;
        self.stream.go_on_in(s, self.assignment.data_acked());
        self.assignment.take_back(id);
        self.judge_paths(s.all_mut());
        self.acked_by_subflow(cx, s);
        self.rounds.ask(Cause::PathChange(id));
    }

    // ---- paths ----

    /// Path `id` has data in its queue.
    #[inline(always)]
    pub fn has_queued(&self, id: PathId) -> bool {
        self.assignment.waiting() & id.bit() != 0
    }

    /// The congestion window of `s` has room, and its pacer lets a segment leave at `now`. What a timeout retransmits is not paced
    /// (Linux `tcp_retransmit_timer`): the next timeout may come before its turn.
    #[inline(always)]
    fn has_room(&self, s: &Subflow, now: Instant) -> bool {
        let window = self.assignment.path(s.id).map_or(0, |p| p.cwnd);
        s.sender().in_flight() < window && (s.next_turn() <= now || s.sender().is_head_due())
    }

    /// Data of `s` waits only for its pacer.
    #[inline(always)]
    pub fn is_paced(&self, s: &Subflow) -> bool {
        // Where the window is what holds it back, pacing has nothing to say.
        let paced =
            s.next_turn() > self.assignment.now() && self.assignment.path(s.id).is_some_and(|p| p.pacing.is_some());
        paced && (self.assignment.has_admissible(s.id) || s.sender().next_lost().is_some())
    }

    /// The next new data for `s`, taken out of its queue, if the peer's window admits it.
    #[inline(always)]
    fn take_next(&mut self, s: &mut Subflow, mode: Mode) -> Option<Fresh> {
        // By the RFCs nothing is to be asked or noted: found out at once.
        let beyond = self.assignment.sender() != SenderPolicy::RFC;
        if beyond && self.holds_small(s) {
            return None;
        }
        let queued = self.assignment.take_admissible(s.id)?;
        let queued = if beyond { self.hand_over(s, queued) } else { queued };
        // MP_CAPABLE with the first data has no place for it; it follows without payload then.
        let last = self.stream.is_finished() && queued.range.end == self.stream.end();
        let data_fin = last && !self.is_plain() && !(s.sender().nxt() == 1 && s.shows_keys(mode));
        Some(Fresh { queued, data_fin })
    }

    /// The segment of `s` with new data.
    #[inline(always)]
    pub fn segment_of(&mut self, s: &Subflow, new: Fresh) -> Sent {
        Sent::new(s.sender().nxt(), self.stream.slice(new.queued.range), new.queued.range.start, new.data_fin)
    }
}

/// New data that is about to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    pub queued: Queued,
    /// The DATA_FIN goes with it.
    pub data_fin: bool,
}
