//! Segments with data or FIN that leave, as the send side chooses and remembers them.

use super::{Fresh, Sending};
use crate::cx::Scope;
use crate::mode::Mode;
use crate::settings::HostModel;
use crate::subflow::Subflow;
use crate::subflow::segments::Waiting;
use crate::subflow::sender::Sent;

/// Why a segment is about to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaving {
    /// It carries new data.
    New(Fresh),
    /// It left before.
    Again,
    /// It is the FIN.
    Fin,
}

impl Sending {
    /// The subflows for which something waits.
    #[inline(always)]
    pub fn waiting(&self) -> Waiting {
        Waiting { data: self.view().waiting(), data_fin: self.data_fin.due() }
    }

    /// The next segment of `s` with data or FIN, if the windows and pacing allow one: what is lost, new data, a probe, the FIN.
    #[inline(always)]
    pub fn next_on(&mut self, cx: &Scope<'_>, mode: Mode, s: &mut Subflow) -> Option<(Sent, Leaving)> {
        let room = self.has_room(s, cx.now);
        if room && let Some(lost) = s.next_lost() {
            return Some((lost, Leaving::Again));
        }
        let (linux, keys) = (cx.settings.sender_model == HostModel::Linux, s.shows_keys(mode));
        if s.may_send_new(room)
            && let Some((sent, fresh)) = self.take_next(s, mode, linux, keys)
        {
            return Some((sent, Leaving::New(fresh)));
        }
        if let Some(again) = s.next_repeat(room) {
            return Some((again, Leaving::Again));
        }
        self.next_fin(s).map(|fin| (fin, Leaving::Fin))
    }

    /// A segment left on `s`. True if it ends what was written so far.
    #[inline(always)]
    pub fn on_left(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, sent: Sent, leaving: Leaving) -> bool {
        match leaving {
            Leaving::New(fresh) => {
                self.on_sent(cx, s, sent, fresh);
                return fresh.range.end == self.end();
            }
            Leaving::Again => self.on_retransmitted(cx, s, &sent),
            Leaving::Fin => self.on_fin_sent(cx, s, sent),
        }
        false
    }
}
