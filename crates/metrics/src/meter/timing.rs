//! Times of an application beside its end: of frames, responses or segments.

use super::frames::{FrameSchedule, Frames};
use super::responses::{ResponseSchedule, Responses};
use super::video::{Segments, VideoSchedule};
use anabranch_units::Instant;

/// The times of the application that are measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Timed {
    /// Nothing but its end.
    #[default]
    Nothing,
    /// Frames.
    Frames(FrameSchedule),
    /// Responses.
    Responses(ResponseSchedule),
    /// Segments of a video.
    Video(VideoSchedule),
}

/// The times measured so far.
#[derive(Clone, Debug)]
pub(super) enum Timing {
    Nothing,
    Frames(Frames),
    Responses(Responses),
    Video(Box<Segments>),
}

impl Timing {
    pub fn new(timed: Timed) -> Self {
        match timed {
            Timed::Nothing => Self::Nothing,
            Timed::Frames(schedule) => Self::Frames(Frames::new(schedule)),
            Timed::Responses(schedule) => Self::Responses(Responses::new(schedule)),
            Timed::Video(schedule) => Self::Video(Box::new(Segments::new(schedule))),
        }
    }

    #[inline]
    pub fn on_delivered(&mut self, now: Instant, end: u64) {
        match self {
            Self::Nothing => {}
            Self::Frames(frames) => frames.on_delivered(now, end),
            Self::Responses(responses) => responses.on_delivered(now, end),
            Self::Video(segments) => segments.on_delivered(now, end),
        }
    }

    /// The measured time begins at `at`.
    pub fn restart(&mut self, at: Instant) {
        match self {
            Self::Nothing => {}
            Self::Frames(frames) => frames.restart(at),
            Self::Responses(responses) => responses.restart(),
            Self::Video(segments) => segments.restart(at),
        }
    }
}
