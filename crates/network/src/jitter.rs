//! Jitter: the delay of each packet varies (tc-netem(8), `delay TIME JITTER CORRELATION`, `distribution`).

use anabranch_units::{Duration, Rng};
use core::fmt;
use std::sync::Arc;

/// The most that a delay differs from its mean, in spreads: a table of netem has 16 bits, of which 8192 are one spread.
const MOST: f64 = 4.0;

/// Units of one spread in a table of netem.
const UNITS: f64 = 8192.0;

/// The variation of a delay, drawn per packet.
#[derive(Clone, Debug, PartialEq)]
pub struct JitterSpec {
    /// The distribution's unit: half its width if it is uniform, its standard deviation if it is normal. Zero is no jitter.
    pub spread: Duration,
    /// The share of the packet before in a packet's uniform number, from 0 to 1.
    pub correlation: f64,
    /// The distribution.
    pub distribution: DelayDistribution,
    /// A packet may overtake others.
    pub free: bool,
}

/// The distribution of a delay around its mean.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayDistribution {
    /// Uniform, within one spread of the mean.
    Uniform,
    /// Normal.
    Normal,
    /// Pareto's with exponent 3, moved to a mean of zero.
    Pareto,
    /// A quarter normal, three quarters Pareto's.
    ParetoNormal,
    /// A table of quantiles.
    Table(Arc<DelayTable>),
}

/// Quantiles of a distribution, equally probable, from a file in iproute2's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTable {
    /// The file's name.
    pub file: String,
    /// Quantiles; 8192 are one spread.
    quantiles: Vec<i16>,
}

/// Why a text is not a table of a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// Line, from 1.
    pub line: usize,
    /// The word that is no quantile; none if the text has no quantile, or too many.
    pub word: Option<String>,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, word } = self;
        match word {
            Some(word) => write!(f, "line {line}: `{word}` is not a whole number from -32768 to 32767"),
            None => write!(f, "line {line}: a table has 1 to {} numbers", DelayTable::MOST),
        }
    }
}

impl core::error::Error for TableError {}

impl DelayTable {
    /// The most quantiles, as in netem.
    pub const MOST: usize = 16_384;

    /// The table in `file`, which is yet to be read.
    pub fn unread(file: String) -> Self {
        Self { file, quantiles: Vec::new() }
    }

    /// Reads whole numbers with blanks between them; a line that begins with `#` is a comment.
    ///
    /// # Errors
    /// The first word that is no quantile.
    pub fn parse(file: &str, text: &str) -> Result<Self, TableError> {
        let mut quantiles = Vec::new();
        let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
        for (line, words) in lines.filter(|(_, line)| !line.trim_start().starts_with('#')) {
            for word in words.split_whitespace() {
                let quantile =
                    word.parse().map_err(|_| TableError { line, word: Some(word.chars().take(20).collect()) })?;
                quantiles.push(quantile);
                if quantiles.len() > Self::MOST {
                    return Err(TableError { line, word: None });
                }
            }
        }
        if quantiles.is_empty() {
            return Err(TableError { line: text.lines().count().max(1), word: None });
        }
        Ok(Self { file: file.into(), quantiles })
    }

    /// The quantile of `probability`, in spreads.
    fn quantile(&self, probability: f64) -> f64 {
        let place = (probability * self.quantiles.len() as f64) as usize;
        let quantile = self.quantiles.get(place).or(self.quantiles.last());
        quantile.map_or(0.0, |quantile| f64::from(*quantile) / UNITS)
    }
}

impl DelayDistribution {
    /// The quantile of `probability`, in `[0, 1)`: how far above the mean, in spreads. At most four, as in netem's tables.
    pub fn quantile(&self, probability: f64) -> f64 {
        match self {
            Self::Uniform => 2.0 * probability - 1.0,
            Self::Normal => normal(probability).clamp(-MOST, MOST),
            Self::Pareto => pareto(probability),
            Self::ParetoNormal => (Self::Normal.quantile(probability) + 3.0 * Self::Pareto.quantile(probability)) / 4.0,
            Self::Table(table) => table.quantile(probability),
        }
    }
}

/// Pareto's distribution with exponent 3 has a mean of 3/2 and a variance of 3/4; netem multiplies by the variance's inverse.
fn pareto(probability: f64) -> f64 {
    ((1.0 / libm::cbrt(1.0 - probability) - 1.5) * (4.0 / 3.0)).min(MOST)
}

/// The quantile of the standard normal distribution. Relative error below 1.2·10⁻⁹ (P. J. Acklam's rational approximation).
fn normal(probability: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 5] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    const TAIL: f64 = 0.02425;
    let polynomial = |of: &[f64], x: f64| of.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |p: f64| {
        let x = libm::sqrt(-2.0 * libm::log(p.max(f64::MIN_POSITIVE)));
        polynomial(&C, x) / polynomial(&D, x)
    };
    if probability < TAIL {
        return tail(probability);
    }
    if probability > 1.0 - TAIL {
        return -tail(1.0 - probability);
    }
    let x = probability - 0.5;
    x * polynomial(&A, x * x) / polynomial(&B, x * x)
}

impl JitterSpec {
    /// No jitter.
    pub const NONE: Self =
        Self { spread: Duration::ZERO, correlation: 0.0, distribution: DelayDistribution::Uniform, free: false };

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.spread.is_zero()
    }

    /// The most that a packet comes before others with its mean delay.
    pub fn earliest(&self) -> Duration {
        let least = match &self.distribution {
            DelayDistribution::Table(table) => f64::from(table.quantiles.iter().copied().min().unwrap_or(0)) / UNITS,
            other => other.quantile(0.0),
        };
        Duration::from_nanos(libm::ceil(-least.min(0.0) * self.spread.as_nanos() as f64) as u64)
    }
}

/// The jitter of one direction of a path, with its own random stream.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    spec: JitterSpec,
    luck: Rng,
    /// The uniform number of the packet before.
    last: f64,
    packets: u64,
    /// Packets whose number was drawn. As with loss, draws of packets that met no jitter are deferred.
    drawn: u64,
}

impl Jitter {
    /// Jitter with `luck` as its stream.
    pub(crate) fn new(spec: &JitterSpec, mut luck: Rng) -> Self {
        // As in netem, the first packet has one before it.
        let last = luck.unit();
        Self { spec: spec.clone(), luck, last, packets: 0, drawn: 0 }
    }

    pub(crate) fn spec(&self) -> &JitterSpec {
        &self.spec
    }

    /// Sets the jitter of the packets from the next one on.
    pub(crate) fn set(&mut self, spec: &JitterSpec) {
        self.spec = spec.clone();
    }

    /// Packets so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// The next packet meets no jitter.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.packets += 1;
    }

    /// How far the next packet's delay is above the mean, in nanoseconds.
    pub(crate) fn next(&mut self) -> i64 {
        if self.spec.is_none() {
            self.skip();
            return 0;
        }
        for _ in self.drawn..self.packets {
            self.last = self.luck.unit();
        }
        self.packets += 1;
        self.drawn = self.packets;
        let JitterSpec { spread, correlation, distribution, .. } = &self.spec;
        // As in netem, which mixes uniform numbers: the more they correlate, the narrower the distribution becomes.
        self.last = (1.0 - correlation) * self.luck.unit() + correlation * self.last;
        libm::round(distribution.quantile(self.last) * spread.as_nanos() as f64) as i64
    }
}

#[cfg(test)]
mod tests;
