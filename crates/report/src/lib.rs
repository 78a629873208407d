//! Reports: from values to one HTML file that needs nothing else, with the tables as LaTeX and CSV beside it.
//!
//! [`Report`] is what is to be said; [`html`] says it. [`of_run`] makes a report of what `anabranch run` found.

pub mod chart;
mod describe;
mod encode;
pub mod of_run;
mod page;
mod style;
mod table;
pub mod timeline;
mod value;

pub use describe::{figure, in_words};
pub use page::{files, html};
pub use table::{Column, Table};
pub use timeline::Timeline;
pub use value::{Figure, Judgement, MadeBy, Report, Section, Verdict};
