#![doc = include_str!("../README.md")]

mod assign;
mod diagnostic;
mod document;
mod era;
mod fabric;
mod group;
mod keys;
mod listed;
mod notation;
mod quantity;
mod resolved;
mod row;
mod scenario;
mod schema;
mod sections;
mod source;
mod suggest;
mod sweep;
mod text;
mod tree;
mod vocabulary;
mod word;
mod written;

pub use diagnostic::{Code, Diagnostic, without_crowds};
pub use document::{Document, congestion, read, read_unswept, scheduler};
pub use era::{ERAS, Era};
pub use fabric::{Fabric, Pairing, Shape};
pub use group::Group;
pub use keys::{Directions, Fallback, Form, Key, MAX_REPEAT, Section, find_keys, keys};
pub use listed::{ListFault, listed, outside_brackets};
pub use quantity::{parse_duration, parse_rate, parse_size, si_number};
pub use scenario::{
    Arrivals, Cell, ConnectionsPer, Cross, CrossData, CrossKind, Distribution, Host, Hosts, MtuSignal, ObjectSizes,
    OptionChange, Over, PACKET_SIZES, PathOptions, PlugIn, Presence, Scenario, TimeRange, TimelineChange,
    TimelineEntry, TraceStart, Traffic, TrafficKind,
};
pub use schema::schema;
pub use sections::full_packet;
pub use source::{NoFiles, Override, Resolver, Role, Source};
pub use suggest::nearest;
pub use sweep::{Swept, swept};
pub use tree::quoted;
pub use word::{NamedValue, words};
