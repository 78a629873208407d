//! Impairments of packets at the far end of a path.

use crate::{LossSpec, ReorderSpec, WaySpec};
use anabranch_trace::DropCause;
use anabranch_units::{Duration, Rng};
use core::fmt::Debug;

/// The fate of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// The packet does not arrive, for this cause.
    pub dropped: Option<DropCause>,
    /// The packet arrives with a wrong checksum.
    pub corrupted: bool,
    /// The packet arrives twice.
    pub duplicated: bool,
    /// The packet arrives late by this time.
    pub held_back: Duration,
}

/// An impairment of the packets of one direction of a path.
///
/// It is called once per packet, in the order of arrival at the far end, and always with two numbers from its
/// own random stream, whether needed or not: so packet n has the same draws whatever else happens in the run.
pub trait Impairment: Debug + Send {
    /// Decides the next packet's fate. `luck`: two draws, uniform in `[0, 1)`.
    fn befall(&mut self, luck: [f64; 2], fate: &mut Fate);
}

/// Independent random loss with this probability.
#[derive(Clone, Copy, Debug)]
pub struct Loss(pub f64);

impl Impairment for Loss {
    fn befall(&mut self, [luck, _]: [f64; 2], fate: &mut Fate) {
        if luck < self.0 {
            fate.dropped = Some(DropCause::Loss);
        }
    }
}

/// Loss in two states (tc-netem(8), `loss gemodel`); starts in the good one.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    /// Probability good → bad, per packet.
    p: f64,
    /// Probability bad → good.
    r: f64,
    /// Loss probability in the bad state, 1-h.
    loss_bad: f64,
    /// Loss probability in the good state, 1-k.
    loss_good: f64,
    bad: bool,
}

impl GilbertElliott {
    /// `p` good → bad, `r` bad → good; delivery probability `h` in the bad state, `k` in the good one.
    pub fn new(p: f64, r: f64, h: f64, k: f64) -> Self {
        Self { p, r, loss_bad: 1.0 - h, loss_good: 1.0 - k, bad: false }
    }
}

impl Impairment for GilbertElliott {
    /// As in netem, the state before the packet decides its loss; the state after it applies to the next packet.
    fn befall(&mut self, [luck, turn]: [f64; 2], fate: &mut Fate) {
        let (loss, change) = if self.bad { (self.loss_bad, self.r) } else { (self.loss_good, self.p) };
        self.bad ^= turn < change;
        if luck < loss {
            fate.dropped = Some(DropCause::Loss);
        }
    }
}

/// A wrong checksum with this probability.
#[derive(Clone, Copy, Debug)]
pub struct Corruption(pub f64);

impl Impairment for Corruption {
    fn befall(&mut self, [luck, _]: [f64; 2], fate: &mut Fate) {
        fate.corrupted |= luck < self.0;
    }
}

/// A second copy with this probability.
#[derive(Clone, Copy, Debug)]
pub struct Duplication(pub f64);

impl Impairment for Duplication {
    fn befall(&mut self, [luck, _]: [f64; 2], fate: &mut Fate) {
        fate.duplicated |= luck < self.0;
    }
}

/// A probability with which a packet is held back, and others overtake it.
#[derive(Clone, Copy, Debug)]
pub struct Reordering {
    /// Probability per packet.
    pub probability: f64,
    /// The delay.
    pub by: Duration,
}

impl Reordering {
    fn of(ReorderSpec { probability, by }: ReorderSpec) -> Option<Self> {
        (probability > 0.0).then_some(Self { probability, by })
    }
}

impl Impairment for Reordering {
    fn befall(&mut self, [luck, _]: [f64; 2], fate: &mut Fate) {
        if luck < self.probability {
            fate.held_back = self.by;
        }
    }
}

impl LossSpec {
    fn build(&self) -> Option<Box<dyn Impairment>> {
        match *self {
            LossSpec::None => None,
            LossSpec::Bernoulli(p) => Some(Box::new(Loss(p))),
            LossSpec::GilbertElliott { p, r, h, k } => Some(Box::new(GilbertElliott::new(p, r, h, k))),
        }
    }
}

/// All impairments of one direction of a path, each with its random stream.
#[derive(Debug)]
pub(crate) struct Impairments {
    loss: Option<Box<dyn Impairment>>,
    loss_luck: Rng,
    /// Packets that met no loss model. Their draws are deferred, so that a way without loss costs nothing; if loss
    /// begins, the stream skips them, so that each packet still has its own draws.
    not_drawn: u64,
    others: Vec<(Rng, Box<dyn Impairment>)>,
    reordering: Option<Reordering>,
    reorder_luck: Rng,
}

impl Impairments {
    /// The impairments of `spec`, for the direction `way` (`"path.wlan.down"`).
    pub(crate) fn new(spec: &WaySpec, seed: u64, way: &str) -> Self {
        let luck = |name| Rng::stream(seed, &[way, name].join("."));
        let mut others: Vec<(Rng, Box<dyn Impairment>)> = vec![];
        if spec.corrupt > 0.0 {
            others.push((luck("corrupt"), Box::new(Corruption(spec.corrupt))));
        }
        if spec.duplicate > 0.0 {
            others.push((luck("duplicate"), Box::new(Duplication(spec.duplicate))));
        }
        let (loss, reordering) = (spec.loss.build(), Reordering::of(spec.reorder));
        Self { loss, loss_luck: luck("loss"), not_drawn: 0, others, reordering, reorder_luck: luck("reorder") }
    }

    /// Sets which packets are held back from the next one on.
    pub(crate) fn set_reorder(&mut self, spec: ReorderSpec) {
        self.reordering = Reordering::of(spec);
    }

    /// Sets the loss model from the next packet on.
    pub(crate) fn set_loss(&mut self, spec: &LossSpec) {
        self.loss = spec.build();
        if self.loss.is_some() {
            for _ in 0..core::mem::take(&mut self.not_drawn) {
                draw(&mut self.loss_luck);
            }
        }
    }

    /// Whether there is any impairment.
    pub(crate) fn any(&self) -> bool {
        self.loss.is_some() || !self.others.is_empty() || self.reordering.is_some()
    }

    /// True if the next packet meets no impairment, so that [`Self::befall`] need not be called: the usual case.
    pub(crate) fn spare(&mut self) -> bool {
        let none = !self.any();
        self.not_drawn += u64::from(none);
        none
    }

    /// The fate of the next packet.
    pub(crate) fn befall(&mut self) -> Fate {
        let mut fate = Fate::default();
        match &mut self.loss {
            Some(loss) => loss.befall(draw(&mut self.loss_luck), &mut fate),
            None => self.not_drawn += 1,
        }
        for (luck, impairment) in &mut self.others {
            impairment.befall(draw(luck), &mut fate);
        }
        if let Some(reordering) = &mut self.reordering {
            reordering.befall(draw(&mut self.reorder_luck), &mut fate);
        }
        fate
    }
}

/// One packet's draws from one stream.
fn draw(luck: &mut Rng) -> [f64; 2] {
    [luck.unit(), luck.unit()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of runs of lost packets among `n`, and the number of lost packets.
    fn bursts(mut model: impl Impairment, n: u32) -> (Vec<u32>, u32) {
        let mut rng = Rng::stream(3, "test");
        let (mut runs, mut run, mut lost) = (vec![], 0, 0);
        for _ in 0..n {
            let mut fate = Fate::default();
            model.befall([rng.unit(), rng.unit()], &mut fate);
            if fate.dropped == Some(DropCause::Loss) {
                run += 1;
                lost += 1;
            } else if run > 0 {
                runs.push(core::mem::take(&mut run));
            }
        }
        (runs, lost)
    }

    fn near(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() < relative * b, "{a} is not near {b}");
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_burst_length() {
        let n = 400_000;
        // Gilbert's model: every packet is lost in the bad state; bursts are 1/r long, π(bad) = p/(p+r).
        let (runs, lost) = bursts(GilbertElliott::new(0.01, 0.25, 0.0, 1.0), n);
        near(f64::from(lost) / f64::from(n), 0.01 / 0.26, 0.03);
        near(f64::from(runs.iter().sum::<u32>()) / runs.len() as f64, 4.0, 0.03);
        // All four parameters: π(bad)·(1-h) + π(good)·(1-k).
        let (_, lost) = bursts(GilbertElliott::new(0.02, 0.08, 0.4, 0.99), n);
        near(f64::from(lost) / f64::from(n), 0.2 * 0.6 + 0.8 * 0.01, 0.03);
    }

    #[test]
    fn gilbert_elliott_loses_by_the_state_before_the_turn() {
        let mut model = GilbertElliott::new(1.0, 1.0, 0.0, 1.0);
        let mut lost = || {
            let mut fate = Fate::default();
            model.befall([0.5, 0.5], &mut fate);
            fate.dropped.is_some()
        };
        assert_eq!([lost(), lost(), lost(), lost()], [false, true, false, true]);
    }

    #[test]
    fn bernoulli_loss_comes_in_short_bursts() {
        let (runs, lost) = bursts(Loss(0.2), 200_000);
        near(f64::from(lost) / 200_000.0, 0.2, 0.03);
        near(f64::from(runs.iter().sum::<u32>()) / runs.len() as f64, 1.25, 0.03);
    }
}
