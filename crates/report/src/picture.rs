//! Pictures that are drawn beforehand, as values: a text from outside is never part of a page.

use crate::of_reproduction::{Panel, svg};
use crate::of_run::{Gain, Network, draw_network};
use serde::{Deserialize, Serialize};

/// A picture of a section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Picture {
    /// The paths of a scenario, to scale.
    Network(Network),
    /// A scheduler against the reference over two swept keys.
    Gain(Gain),
    /// Claims by readings.
    Claims(Panel),
}

impl Picture {
    /// An SVG element, in which every text of the values is escaped; empty if they have nothing to draw.
    pub(crate) fn svg(&self) -> String {
        match self {
            Self::Network(network) => draw_network(network).unwrap_or_default(),
            Self::Gain(gain) => gain.svg(),
            Self::Claims(panel) => svg(std::slice::from_ref(panel)),
        }
    }
}
