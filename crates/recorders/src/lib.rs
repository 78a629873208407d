#![doc = include_str!("../README.md")]

mod pcapng;
mod series;
mod timeline;
mod timeline_recorder;

pub use pcapng::PcapNg;
pub use series::{Column, Series, SeriesRecorder, SeriesRecorders};
pub use timeline::{Fate, Timeline, TimelinePacket};
pub use timeline_recorder::TimelineRecorder;
