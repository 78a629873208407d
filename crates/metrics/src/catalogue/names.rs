//! Names of the metrics that code refers to, as results write them.

/// Goodput of unlimited data, by which baselines are compared.
pub const GOODPUT: &str = "goodput_bps";
/// Goodput of data that the server sends, where both ends send.
pub const GOODPUT_DOWN: &str = "goodput_down_bps";
/// Goodput of data that the client sends, where both ends send.
pub const GOODPUT_UP: &str = "goodput_up_bps";
/// Completion time of data that the server sends, where both ends send.
pub const COMPLETION_DOWN: &str = "completion_down_s";
/// Completion time of data that the client sends, where both ends send.
pub const COMPLETION_UP: &str = "completion_up_s";
/// Completion time of sized transfers and web pages.
pub const COMPLETION: &str = "completion_s";
/// Mean completion time of several sized flows.
pub const FLOW_COMPLETION: &str = "flow_completion_mean_s";
/// Mean response time of requests.
pub const RESPONSE: &str = "response_mean_s";
/// Mean delay of frames.
pub const FRAME_DELAY: &str = "app_delay_mean_s";
/// Share of frames that miss their deadline.
pub const LATE: &str = "late_ratio";
/// Share of late frames among those that the server sends, where both ends send.
pub const LATE_DOWN: &str = "late_down_ratio";
/// Share of late frames among those that the client sends, where both ends send.
pub const LATE_UP: &str = "late_up_ratio";
/// Late frames per minute.
pub const LATE_PER_MINUTE: &str = "late_per_minute";
/// Time without a frame to play out.
pub const STALL: &str = "stall_s";
/// Stall time of frames that the server sends, where both ends send.
pub const STALL_DOWN: &str = "stall_down_s";
/// Stall time of frames that the client sends, where both ends send.
pub const STALL_UP: &str = "stall_up_s";
/// Share of the time without a frame in the time in which frames are played out.
pub const STALL_RATIO: &str = "stall_ratio";
/// Stall ratio of frames that the server sends, where both ends send.
pub const STALL_RATIO_DOWN: &str = "stall_down_ratio";
/// Stall ratio of frames that the client sends, where both ends send.
pub const STALL_RATIO_UP: &str = "stall_up_ratio";
/// Longest time without a frame to play out.
pub const FREEZE: &str = "freeze_max_s";
/// Longest freeze of frames that the server sends, where both ends send.
pub const FREEZE_DOWN: &str = "freeze_max_down_s";
/// Longest freeze of frames that the client sends, where both ends send.
pub const FREEZE_UP: &str = "freeze_max_up_s";
/// Quality of experience of a video.
pub const QOE: &str = "qoe";
/// Mean rate of a video's segments.
pub const BITRATE: &str = "bitrate_mean_bps";
/// Changes of rate from a segment to the next.
pub const SWITCHES: &str = "switches";
/// Time until a video begins.
pub const STARTUP: &str = "startup_s";
/// Time in which a video was played.
pub const PLAYED: &str = "played_s";
/// How far a live video is behind.
pub const LIVE_LATENCY: &str = "live_latency_s";
/// The connection-level out-of-order queue.
pub const OFO_MEAN: &str = "ofo_mean_bytes";
/// Over all subflows, or on one path.
pub const RETRANSMITTED: &str = "retransmitted_packets";
/// Goodput against those of the single paths.
pub const BENEFIT: &str = "aggregation_benefit";
/// Goodput against that of the best single path.
pub const BEST_SINGLE_RATIO: &str = "best_single_ratio";
/// Against the best that the paths allow.
pub const ORACLE_RATIO: &str = "oracle_ratio";
/// Oracle ratio of a run over one path alone, against the best that all paths allow.
pub const ORACLE_RATIO_OF_ALL: &str = "oracle_ratio_of_all";
/// Money spent.
pub const PRICE: &str = "price";
/// A path's part of the data.
pub const SHARE: &str = "share";
/// Least round-trip time of the idle path, on real links.
pub const IDLE_RTT: &str = "idle_rtt_s";
/// How much that varies.
pub const IDLE_JITTER: &str = "idle_jitter_s";
/// How much of what the idle path carries is lost.
pub const IDLE_LOSS: &str = "idle_loss_ratio";
