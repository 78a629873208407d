//! Stages of a program's connection that a server carries on: at the client's end.

use crate::asking::Asking;
use crate::hall::Staged;
use crate::joint::Joint;
use crate::message::Frames;
use crate::talking::Talk;
use crate::target::Target;

/// How far a connection is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// The connection waits for a program; greeted or not.
    Warm(Frames, bool),
    /// The program says where it wants to go.
    Talking(Talk),
    /// The server was asked.
    Asking(Box<Asking>),
    /// The connection is joined.
    Joined(Joint, Target),
    /// The program gets its last bytes.
    Ending(Joint),
    /// Nothing more is read from it.
    Over,
}

impl Staged for Stage {
    fn target(&self) -> Option<&Target> {
        match self {
            Self::Joined(_, target) => Some(target),
            Self::Asking(asking) => Some(&asking.wish.target),
            _ => None,
        }
    }

    fn joint(&mut self) -> Option<&mut Joint> {
        match self {
            Self::Talking(talk) => Some(&mut talk.joint),
            Self::Asking(asking) => Some(&mut asking.wish.joint),
            Self::Joined(joint, _) | Self::Ending(joint) => Some(joint),
            Self::Warm(..) | Self::Over => None,
        }
    }

    fn is_joined(&self) -> bool {
        matches!(self, Self::Joined(..))
    }
}
