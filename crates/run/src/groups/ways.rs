//! Ways of pairs of hosts through fabrics.

use anabranch_scenario::{Fabric, Group, Scenario};
use anabranch_units::Rng;

/// The ways of a group's pairs. All repetitions of a seed have the same, whatever they compare.
pub(super) struct Ways<'s> {
    /// Fabrics by path of a pair; `None` for one that crosses none.
    over: Vec<Option<Over<'s>>>,
    hash: Rng,
}

/// A fabric, and the ends of each pair on it.
struct Over<'s> {
    fabric: &'s Fabric,
    /// Sender and receiver.
    ends: Vec<(u32, u32)>,
}

impl<'s> Ways<'s> {
    pub fn of(scenario: &'s Scenario, group: &Group, seed: u64) -> Self {
        let random = Rng::stream(seed, &["group", &group.name, "pairing"].join("."));
        let over = |path: &usize| {
            let fabric = &scenario.fabrics[scenario.paths[*path].fabric?];
            // Paths over alike fabrics have the same ends.
            Some(Over { fabric, ends: fabric.pairs(group.pairing, group.count, &mut random.clone()) })
        };
        let hash = Rng::stream(seed, &["group", &group.name, "ecmp"].join("."));
        Self { over: group.paths.iter().map(over).collect(), hash }
    }

    /// The links of each path of pair `k`, as data from the server meets them; `None` where it is as the scenario has it.
    pub fn of_pair(&mut self, k: u32) -> Vec<Option<Vec<usize>>> {
        let Self { over, hash } = self;
        let mut route = |over: &Option<Over<'_>>| {
            let Over { fabric, ends } = over.as_ref()?;
            let (from, to) = ends[k as usize];
            Some(fabric.route(from, to, hash))
        };
        over.iter().map(&mut route).collect()
    }
}
