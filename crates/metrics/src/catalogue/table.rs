//! The table of all metrics.

use super::{MetricInfo, names};

const fn of_run(name: &'static str, label: &'static str, about: &'static str) -> MetricInfo {
    MetricInfo::new(name, label, about, false)
}

const fn of_path(name: &'static str, label: &'static str, about: &'static str) -> MetricInfo {
    MetricInfo::new(name, label, about, true)
}

/// Every metric, in the order of results. A metric that does not apply to a run is absent there.
pub const METRICS: &[MetricInfo] = &[
    of_run(names::GOODPUT, "goodput", "Bits that the application received in order, per second of the measured time. With direction = \"both\": both applications together.").more(),
    of_run(names::GOODPUT_DOWN, "goodput down", "As goodput_bps, of data that the server sends; where both ends send.").more(),
    of_run(names::GOODPUT_UP, "goodput up", "As goodput_bps, of data that the client sends; where both ends send.").more(),
    of_run(
        "delivered_bytes",
        "delivered",
        "Bytes delivered to the application in the measured time; sized traffic only.",
    )
    .more(),
    of_run(
        names::COMPLETION,
        "completion time",
        "First SYN sent to last byte delivered, over all connections; sized traffic that finished. Of a web page: \
         to the last byte of its last object.",
    )
    .less(),
    of_run(names::COMPLETION_DOWN, "completion down", "As completion_s, of data that the server sends; where both ends send.").less(),
    of_run(names::COMPLETION_UP, "completion up", "As completion_s, of data that the client sends; where both ends send.").less(),
    of_run(
        names::FLOW_COMPLETION,
        "flow completion",
        "Several sized flows: a flow's own SYN to the last of its bytes delivered, mean over the flows that \
         finished.",
    )
    .less(),
    of_run(
        "flow_completion_p50_s",
        "flow p50",
        "Median of the finished flows' completion times (error at most 0.05 %).",
    )
    .less(),
    of_run("flow_completion_p95_s", "flow p95", "95th percentile of the finished flows' completion times.")
        .less(),
    of_run("flow_completion_max_s", "flow max", "Greatest of the finished flows' completion times.").less(),
    of_run("flows_finished", "flows finished", "Number of finished flows, of several sized flows.").more(),
    of_run(
        names::RESPONSE,
        "response time",
        "Request/response: from the time at which the client writes a request to the delivery of the whole \
         response. A response that is still under way when the run ends counts with the time so far, if that \
         is above the mean of those delivered.",
    )
    .less()
    .in_ms(),
    of_run("response_p50_s", "response p50", "Median of the response times (error of quantiles at most 0.05 %).")
        .less()
        .in_ms(),
    of_run("response_p95_s", "response p95", "95th percentile of the response times.").less().in_ms(),
    of_run("response_p99_s", "response p99", "99th percentile of the response times.").less().in_ms(),
    of_run("response_max_s", "response max", "Greatest of the response times.").less().in_ms(),
    of_run(
        names::FRAME_DELAY,
        "frame delay",
        "Frames: from the time at which the application has a frame to write, to its complete delivery in order. \
         A frame that is still under way when the run ends counts with the time so far, if that is above the mean \
         of those delivered.",
    )
    .less()
    .in_ms(),
    of_run("app_delay_p50_s", "frame p50", "Median of the frames' delays (error of quantiles at most 0.05 %).")
        .less()
        .in_ms(),
    of_run("app_delay_p95_s", "frame p95", "95th percentile of the frames' delays.").less().in_ms(),
    of_run("app_delay_p99_s", "frame p99", "99th percentile of the frames' delays.").less().in_ms(),
    of_run("app_delay_max_s", "frame max", "Greatest of the frames' delays.").less().in_ms(),
    of_run(
        names::LATE,
        "late",
        "Frames with a deadline: share of those whose time of play-out lies in the measured time that are not complete by then, or never. A \
         frame is played out its deadline after it was due.",
    )
    .less()
    .in_percent(),
    of_run(names::LATE_DOWN, "late down", "As late_ratio, of frames that the server sends; where both ends send.").less().in_percent(),
    of_run(names::LATE_UP, "late up", "As late_ratio, of frames that the client sends; where both ends send.").less().in_percent(),
    of_run(
        names::LATE_PER_MINUTE,
        "late frames per minute",
        "Late frames per minute of play-out, of a connection and direction on average.",
    )
    .less()
    .decimals(1),
    of_run(
        names::STALL,
        "stall",
        "Time for which there was nothing to play out; sum over connections and directions. Frames with a deadline: from the play-out time of \
         a late frame to that of the next frame in time. Video: after play has begun, from when the buffer is empty until it holds \
         traffic.resume_at again, or the rest of the video.",
    )
    .less(),
    of_run(names::STALL_DOWN, "stall down", "As stall_s, of frames that the server sends; where both ends send.").less(),
    of_run(names::STALL_UP, "stall up", "As stall_s, of frames that the client sends; where both ends send.").less(),
    of_run(
        names::STALL_RATIO,
        "stalled",
        "stall_s ÷ time in which there was something to be played out, of all connections and directions: of a video, from the begin of \
         play to its end.",
    )
    .less()
    .in_percent(),
    of_run(names::STALL_RATIO_DOWN, "stalled down", "As stall_ratio, of frames that the server sends; where both ends send.").less().in_percent(),
    of_run(names::STALL_RATIO_UP, "stalled up", "As stall_ratio, of frames that the client sends; where both ends send.").less().in_percent(),
    of_run(
        names::FREEZE,
        "longest freeze",
        "Longest stall, as stall_s counts it, in any direction of any connection.",
    )
    .less()
    .in_ms(),
    of_run(names::FREEZE_DOWN, "longest freeze down", "As freeze_max_s, of frames that the server sends; where both ends send.").less().in_ms(),
    of_run(names::FREEZE_UP, "longest freeze up", "As freeze_max_s, of frames that the client sends; where both ends send.").less().in_ms(),
    of_run(
        names::QOE,
        "QoE",
        "Video: quality of experience per segment, the linear form of Yin et al. (SIGCOMM 2015, eq. 5) with their balanced weights. Σ rate of \
         a segment − 1 × Σ |change of rate to the next| − 3 × stall_s − 3 × startup_s, ÷ number of segments; rates in Mbit/s, times in s. \
         So a second without a picture costs as much as 3 Mbit/s of one segment. It may be negative. Segments count that were complete in the measured time.",
    )
    .more()
    .signed()
    .decimals(3),
    of_run(names::BITRATE, "video rate", "Video: mean rate at which the segments were encoded that were complete in the measured time.").more(),
    of_run(
        names::SWITCHES,
        "switches",
        "Video: number of segments that have another rate than the one before; sum over connections.",
    )
    .less(),
    of_run(
        names::STARTUP,
        "startup",
        "Video: first SYN sent to begin of play, mean over connections. Play that has not begun when the run ends counts with the time so far.",
    )
    .less(),
    of_run(names::PLAYED, "played", "Video: time in which it was played, mean over connections.").more(),
    of_run(
        names::LIVE_LATENCY,
        "live latency",
        "Live video that plays when the run ends: how far play is then behind the newest moment, mean over connections. It is traffic.live in whole \
         segments, and startup and all stalls since the connection was established.",
    )
    .less(),
    of_run(
        names::OFO_MEAN,
        "OFO mean",
        "Connection-level out-of-order queue of the receiver: mean of the maxima within samples of 10 ms. Data that waits in a \
         subflow for an earlier segment of that subflow counts as subflow_ofo_…; the packet timeline shows both.",
    )
    .less(),
    of_run(
        "ofo_p95_bytes",
        "OFO p95",
        "95th percentile of the out-of-order queue's maxima within samples of 10 ms (error at most 0.05 %).",
    )
    .less(),
    of_run("ofo_max_bytes", "OFO max", "Greatest length of the out-of-order queue.").less(),
    of_run(
        "subflow_ofo_mean_bytes",
        "subflow OFO mean",
        "Out-of-order queues of the receiver's subflows, all together: data that waits for an earlier segment of its own \
         subflow and has not reached the connection. Mean of the maxima within samples of 10 ms.",
    )
    .less(),
    of_run(
        "subflow_ofo_p95_bytes",
        "subflow OFO p95",
        "95th percentile of the maxima, within samples of 10 ms, of the subflows' out-of-order queues (error at most 0.05 %).",
    )
    .less(),
    of_run(
        "subflow_ofo_max_bytes",
        "subflow OFO max",
        "Greatest length of the subflows' out-of-order queues, all together.",
    )
    .less(),
    of_run(
        "rbd_mean_packets",
        "RBD mean",
        "Mean occupancy of the reorder buffer after each arrival (RFC 5236), in blocks of one MSS of the data \
         sequence; a block counts when it is first complete; no displacement threshold unless set.",
    )
    .less()
    .decimals(2),
    of_run(
        "reordered_ratio",
        "reordered",
        "Share of such blocks that arrived after a later one (RFC 4737, Type-P-Reordered).",
    )
    .less(),
    of_run(
        "reorder_extent_mean_packets",
        "reordering extent",
        "Mean reordering extent (RFC 4737): how many arrivals ago the first later block had come.",
    )
    .less(),
    of_run("opportunistic_packets", "PR", "Retransmitted on another subflow by opportunistic retransmission (PR, OR).")
        .less(),
    of_run("opportunistic_bytes", "PR", "Payload of opportunistic_packets.").less(),
    of_run(
        "rescued_packets",
        "rescued",
        "Retransmitted on another subflow after silence, a timeout or a subflow's death.",
    )
    .less(),
    of_run("rescued_bytes", "rescued", "Payload of rescued_packets.").less(),
    of_run("copied_packets", "copied", "Redundant copies sent.").less(),
    of_run("copied_bytes", "copied", "Payload of copied_packets.").less(),
    of_run("reinjected_packets", "reinjected", "Opportunistic, rescued and copied packets together.").less(),
    of_run("reinjected_bytes", "reinjected", "Payload of reinjected_packets.").less(),
    of_run("duplicate_bytes", "duplicate", "Bytes that the receiver got more than once at connection level.").less(),
    of_run(names::RETRANSMITTED, "retransmitted", "TCP retransmissions of data, over all subflows.").less(),
    of_run("timeouts", "timeouts", "Retransmission timeouts, over all subflows.").less(),
    of_run("path_probes", "path probes", "Segments without payload that probed whether a silent path is back."),
    of_run(
        "syns_sent",
        "SYNs sent",
        "SYNs that the client sent, of first subflows, candidates of a race and joins, repetitions and warm-up \
         included: the cost of opening.",
    )
    .less(),
    of_run(
        "idle_restarts",
        "idle restarts",
        "Congestion windows restarted after idling (RFC 2861), over all subflows.",
    )
    .less(),
    of_run(
        "window_blocked_s",
        "window blocked",
        "Time in which data waited only because the peer's data-level window was full.",
    )
    .less(),
    of_run("outage_s", "outage", "Longest time without delivery while data waited.").less(),
    of_run(
        "head_start_packets",
        "head start",
        "Data packets that the connection had got over its first path before the first came over another, warm-up \
         included. Data behind a gap of its subflow does not count as got.",
    ),
    of_run(
        "head_start_rtt_ratio",
        "head start RTT ratio",
        "RTT of the second path's first data packet ÷ mean of the first path's RTT samples until it arrived (γ of \
         Chen and Towsley).",
    ),
    of_run(
        "increment_efficiency_mean",
        "increment efficiency",
        "`lia` over two paths: increase of its window on the path with the greater w/RTT² ÷ that of a single \
         path, 1/(1 + β/γ)², with β = w₂/w₁ and γ = R₂/R₁ (Chen and Towsley, eq. 12); mean over time.",
    ),
    of_run(
        names::BENEFIT,
        "benefit",
        "Goodput g against the single-path goodputs C: (g − max C)/(ΣC − max C) if g ≥ max C, else (g − max \
         C)/max C. 1 = the paths add up, 0 = as good as the best path, −1 = nothing.",
    )
    .more()
    .signed(),
    of_run(names::BEST_SINGLE_RATIO, "× best path", "Goodput ÷ goodput of the best single path.").more(),
    of_run(
        names::ORACLE_RATIO,
        "of oracle",
        "At most 1. Unlimited data: goodput ÷ Σ rate × payload share × (1 − loss). Sized: T*/T, with T* the least \
         time in which the paths' capacities could carry the bytes after handshake and delay: of a page or of \
         responses as if all were requested at once, of flows none before its arrival. Frames: the least mean \
         time in which they could carry each frame alone, without handshake, ÷ app_delay_mean_s. Of Multipath TCP \
         over all paths, opened on any of them, and plain TCP over one, the bound takes the best. Absent for \
         responses without end, and for video.",
    )
    .more(),
    of_run(
        names::ORACLE_RATIO_OF_ALL,
        "of all paths' oracle",
        "Of plain TCP over one path alone: as oracle_ratio, but against the best over all of the scenario's paths.",
    )
    .more(),
    of_run(
        names::PRICE,
        "price",
        "Money spent: Σ over paths of price per byte × payload bytes sent, repetitions included.",
    )
    .less()
    .decimals(5),
    of_run(
        "cross_goodput_bps",
        "cross goodput",
        "Bytes delivered by all TCP cross flows together, per measured time of the connection.",
    )
    .more(),
    of_run(
        "cross_completion_mean_s",
        "cross completion",
        "TCP cross flows with a size: first SYN sent to last byte delivered, mean over those that finished in the \
         run, warm-up and the time after the connection's own transfer included.",
    )
    .less(),
    of_run(
        "cross_finished",
        "cross flows finished",
        "Number of TCP cross flows with a size that finished in the run.",
    )
    .more(),
    of_path("sent_bytes", "sent", "Payload bytes sent on the path, repetitions included."),
    of_path(
        "sent_ratio",
        "sent ÷ transfer",
        "Payload bytes sent on the path, repetitions included, ÷ all payload bytes sent for the first time: what the path carries, relative \
         to the size of the transfer. The paths' sum is above 1 where data is repeated.",
    )
    .in_percent(),
    of_path(names::SHARE, "share", "The path's part of all payload bytes sent for the first time.").in_percent(),
    of_path(names::RETRANSMITTED, "retransmitted", "TCP retransmissions of data on the path.").less(),
    of_path("loss_ratio", "loss", "The path's retransmitted ÷ sent data packets, as its sender sees them.").less(),
    of_path("srtt_mean_s", "SRTT mean", "Smoothed RTT of the path's sender, mean over time.").less().in_ms(),
    of_path(
        "rtt_mean_s",
        "RTT mean",
        "Mean of the RTT samples of the path's sender: arrival of an acknowledgment less the sending of the \
         newest packet that it acknowledges; retransmitted packets give none unless timestamps show \
         which copy arrived. A Linux sender's RTT samples are not available.",
    )
    .less()
    .in_ms(),
    of_path("cwnd_mean_packets", "cwnd mean", "Congestion window, mean over time."),
    of_path(
        "queue_max_packets",
        "queue max",
        "Most packets waiting at the path's bottleneck on the way of the data, of any flow: server → client, or as traffic.direction says.",
    )
    .less(),
    of_path(
        "marked_packets",
        "marked",
        "Packets that the queue at the path's bottleneck on the way of the data marked (ECN) in place of dropping them, of any flow. Absent \
         where that queue does not mark.",
    )
    .less(),
    of_path(
        "utilisation",
        "utilisation",
        "Bytes of all packets of this path, other flows' included, that left its bottleneck on the way of the data ÷ \
         the bytes that the bottleneck could carry. On a shared link, and beside TCP flows that have a delay of their own: \
         the path's part of it.",
    )
    .more(),
    of_path(
        "lost_subflows",
        "lost subflows",
        "Subflows on the path that ended otherwise than in order, as the client sees them: reset, refused, or not answered for too \
         long. Absent where there is none.",
    )
    .less(),
    of_path(
        "return_s",
        "return",
        "End of the path's outage to the first data arriving over it that the receiver does not have yet (the \
         longest, if there were several outages; at least the time to the end, if none came). Absent without an \
         outage that ended.",
    )
    .less(),
    of_path(
        names::IDLE_RTT,
        "idle RTT",
        "Real links: the least of ten round-trip times of the path right before the run, when nothing else of this connection flows.",
    )
    .less()
    .in_ms(),
    of_path(
        names::IDLE_JITTER,
        "idle jitter",
        "Real links: mean difference between one of these round-trip times and the next (RFC 3393's ipdv, both ways together, \
         without its sign).",
    )
    .less()
    .in_ms(),
    of_path(
        names::IDLE_LOSS,
        "idle loss",
        "Real links: share of the ten datagrams to which no answer came within 900 ms.",
    )
    .less(),
];
