//! A network the other way round.

use anabranch_scenario::{Scenario, TimelineChange};

/// The scenario with both directions of everything exchanged, but for its traffic: what met an upload meets a download.
pub(super) fn mirrored(mut scenario: Scenario) -> Scenario {
    for path in &mut scenario.topology.paths {
        core::mem::swap(&mut path.down, &mut path.up);
    }
    for link in &mut scenario.topology.links {
        core::mem::swap(&mut link.down, &mut link.up);
        link.behind.iter_mut().for_each(|behind| behind.reverse());
    }
    for cross in &mut scenario.cross {
        cross.direction = cross.direction.reverse();
    }
    for entry in &mut scenario.timeline {
        if let TimelineChange::Network(change) = &mut entry.change {
            let way = change.direction_mut();
            *way = way.reverse();
        }
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::Document;

    #[test]
    fn twice_mirrored_is_the_same() {
        let text = "duration = '9s'\n[[link]]\nname = 'l'\nrate = { down = '9mbit', up = '1mbit' }\n\
                    [[path]]\nname = 'a'\nlink = 'l'\ndelay = { down = '5ms', up = '9ms' }\n\
                    [[path]]\nname = 'b'\nrate = { down = '3mbit', up = '2mbit' }\ndelay = '5ms'\nloss = '1%'\n\
                    [[cross]]\npath = 'b'\nkind = 'tcp'\ndirection = 'up'\n\
                    [[timeline]]\nat = '1s'\nset = 'path.b.delay.down'\nvalue = '50ms'\n\
                    [[traffic]]\nkind = 'bulk'\n";
        let scenario = Document::parse("mirror", text).unwrap().scenario;
        let once = mirrored(scenario.clone());
        assert_ne!(once, scenario);
        assert_eq!(
            (&once.topology.paths[1].down.loss, once.topology.paths[1].up.loss.is_total()),
            (&scenario.topology.paths[1].up.loss, false)
        );
        assert_eq!(mirrored(once), scenario);
    }
}
