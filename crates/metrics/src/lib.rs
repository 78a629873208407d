#![doc = include_str!("../README.md")]

mod benefit;
mod capacity;
mod catalogue;
mod curves;
mod efficiency;
mod fairness;
mod histogram;
mod inference;
mod interval;
mod links;
mod meter;
mod oracle;
mod over_time;
mod reorder;
mod results;
mod statistics;
mod student;

pub use benefit::{aggregation_benefit, best_single_ratio, oracle_ratio};
pub use capacity::CapacityCurve;
pub use catalogue::{
    METRICS, MetricInfo, MetricRef, Prominence, Scale, main_metric, main_metrics, names, shown_metrics,
};
pub use curves::{CurveConfig, CurveRecorder, TimeCurve};
pub use efficiency::IncrementEfficiency;
pub use fairness::jain;
pub use histogram::Histogram;
pub use inference::{
    Better, Bootstrap, Difference, EffectSize, RankClaim, Ranking, SIGNIFICANT, SignedRank, Verdict, holm,
    normal_probability, normal_quantile, sign_flip_probability, superiority, verdicts,
};
pub use interval::{LEAST_RUNS, mean_interval, student_interval};
pub use links::{LinkMeter, LinkTotals};
pub use meter::{CrossFlow, FrameSchedule, Meter, MeterConfig, PathConfig, ResponseSchedule, Timed, VideoSchedule};
pub use oracle::{Oracle, SegmentSizes, Timeline, header_len};
pub use reorder::{Arrivals, Density, Disorder, Extents, Reorder};
pub use results::{FrameTimes, PathMetrics, RunMetrics, WrittenFrames};
pub use statistics::{Paired, SampleStatistics, half_width, mean, quantile};
pub use student::{t_probability, t_quantile};
