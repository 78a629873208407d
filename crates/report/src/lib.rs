#![doc = include_str!("../README.md")]

pub mod chart;
mod describe;
pub mod drawing;
mod encode;
pub mod heat;
mod latex;
pub mod of_frontier;
pub mod of_inference;
pub mod of_reproduction;
pub mod of_run;
mod page;
mod picture;
pub mod plot;
mod quantity;
mod style;
mod svg;
mod table;
pub mod text;
mod value;

pub use describe::{figure, in_words};
pub use page::{FigureName, figure_names, files, html, modules, script_sources};
pub use picture::Picture;
pub use table::{Column, Table, csv_lines};
pub use value::{Figure, MadeBy, Report, Section, Verdict};
