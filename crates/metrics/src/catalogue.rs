//! What every metric means.

/// One metric, as lists and explanations show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Its name in results.
    pub name: &'static str,
    /// Its unit; empty for counts and ratios.
    pub unit: &'static str,
    /// What it means, in a sentence or two.
    pub about: &'static str,
    /// One value a path, not one a run.
    pub per_path: bool,
}

const fn of_run(name: &'static str, unit: &'static str, about: &'static str) -> MetricInfo {
    MetricInfo { name, unit, about, per_path: false }
}

const fn of_path(name: &'static str, unit: &'static str, about: &'static str) -> MetricInfo {
    MetricInfo { name, unit, about, per_path: true }
}

/// Every metric, in the order of results. A metric that does not apply to a run is absent there.
pub const METRICS: &[MetricInfo] = &[
    of_run("goodput_bps", "bit/s", "Bytes delivered to the application in order, per measured time."),
    of_run("delivered_bytes", "byte", "Bytes delivered to the application in the measured time; sized traffic only."),
    of_run(
        "completion_s",
        "s",
        "First SYN sent to last byte delivered, over all connections; sized traffic that finished. Of a web page: to the \
         last byte of its last object.",
    ),
    of_run(
        "flow_completion_mean_s",
        "s",
        "Several sized flows: a flow's own SYN to the last of its bytes delivered, mean over the flows that finished.",
    ),
    of_run("flow_completion_p50_s", "s", "Median of the finished flows' completion times (error at most 0.05 %)."),
    of_run("flow_completion_p95_s", "s", "95th percentile of the finished flows' completion times."),
    of_run("flow_completion_max_s", "s", "Greatest of the finished flows' completion times."),
    of_run("flows_finished", "", "How many of several sized flows finished."),
    of_run(
        "response_mean_s",
        "s",
        "Request/response: from the time at which the client writes a request to the delivery of the whole response. A \
         response still under way at the end counts with its age, if that is above the mean of the others.",
    ),
    of_run("response_p50_s", "s", "Median of the response times (error of quantiles at most 0.05 %)."),
    of_run("response_p95_s", "s", "95th percentile of the response times."),
    of_run("response_p99_s", "s", "99th percentile of the response times."),
    of_run("response_max_s", "s", "Greatest of the response times."),
    of_run(
        "app_delay_mean_s",
        "s",
        "Frames: from the time at which the application has a frame to write, to its delivery whole and in order. A frame \
         still under way at the end counts with its age, if that is above the mean of the others.",
    ),
    of_run("app_delay_p50_s", "s", "Median of the frames' delays (error of quantiles at most 0.05 %)."),
    of_run("app_delay_p95_s", "s", "95th percentile of the frames' delays."),
    of_run("app_delay_p99_s", "s", "99th percentile of the frames' delays."),
    of_run("app_delay_max_s", "s", "Greatest of the frames' delays."),
    of_run(
        "ofo_mean_bytes",
        "byte",
        "Connection-level out-of-order queue of the receiver: mean of the maxima within samples of 10 ms.",
    ),
    of_run(
        "ofo_p95_bytes",
        "byte",
        "95th percentile of the out-of-order queue's maxima within samples of 10 ms (error at most 0.05 %).",
    ),
    of_run("ofo_max_bytes", "byte", "Greatest length of the out-of-order queue."),
    of_run(
        "rbd_mean_packets",
        "packet",
        "Mean occupancy of the reorder buffer after each arrival (RFC 5236), in blocks of one MSS of the data sequence; \
         a block counts when it is first complete; no displacement threshold unless set.",
    ),
    of_run("reordered_ratio", "", "Share of such blocks that arrived after a later one (RFC 4737, Type-P-Reordered)."),
    of_run(
        "reorder_extent_mean_packets",
        "packet",
        "Mean reordering extent (RFC 4737): how many arrivals ago the first later block had come.",
    ),
    of_run(
        "opportunistic_packets",
        "packet",
        "Sent again on another subflow by opportunistic retransmission (PR, OR).",
    ),
    of_run("opportunistic_bytes", "byte", "Payload of opportunistic_packets."),
    of_run("rescued_packets", "packet", "Sent again on another subflow after silence, a timeout or a subflow's death."),
    of_run("rescued_bytes", "byte", "Payload of rescued_packets."),
    of_run("copied_packets", "packet", "Redundant copies sent."),
    of_run("copied_bytes", "byte", "Payload of copied_packets."),
    of_run("reinjected_packets", "packet", "Opportunistic, rescued and copied packets together."),
    of_run("reinjected_bytes", "byte", "Payload of reinjected_packets."),
    of_run("duplicate_bytes", "byte", "Bytes that the receiver got more than once at connection level."),
    of_run("retransmitted_packets", "packet", "TCP retransmissions of data, over all subflows."),
    of_run("timeouts", "", "Retransmission timeouts, over all subflows."),
    of_run("path_probes", "", "Segments without payload that found out whether a silent path is back."),
    of_run(
        "syns_sent",
        "",
        "SYNs that the client sent, of first subflows, candidates of a race and joins, repetitions and warm-up included: what \
         opening costs.",
    ),
    of_run("idle_restarts", "", "Congestion windows restarted after idling (RFC 2861), over all subflows."),
    of_run("window_blocked_s", "s", "Time in which data waited only because the peer's data-level window was full."),
    of_run("outage_s", "s", "Longest time without delivery while data waited."),
    of_run(
        "head_start_packets",
        "packet",
        "Data packets that the connection had got over its first path before the first came over another, warm-up included. \
         What waits behind a gap of its subflow has not been got.",
    ),
    of_run(
        "head_start_rtt_ratio",
        "",
        "RTT of the second path's first data packet ÷ mean of the first path's RTT samples until it arrived (γ of Chen and \
         Towsley).",
    ),
    of_run(
        "increment_efficiency_mean",
        "",
        "`lia` over two paths: increase of its window on the path with the greater w/RTT² ÷ that of a single path, \
         1/(1 + β/γ)², with β = w₂/w₁ and γ = R₂/R₁ (Chen and Towsley, eq. 12); mean over time.",
    ),
    of_run(
        "aggregation_benefit",
        "",
        "Goodput g against the single-path goodputs C: (g − max C)/(ΣC − max C) if g ≥ max C, else (g − max C)/max C. \
         1 = the paths add up, 0 = as good as the best path, −1 = nothing.",
    ),
    of_run("best_single_ratio", "", "Goodput ÷ goodput of the best single path."),
    of_run(
        "oracle_ratio",
        "",
        "At most 1. Unlimited data: goodput ÷ Σ rate × payload share × (1 − loss). Sized: T*/T, with T* the least time \
         in which the paths' capacities could carry the bytes after handshake and delay: of a page or of responses as if \
         all were asked for at once, of flows none before its arrival. Frames: the least mean time in which they could carry \
         each frame alone, without handshake, ÷ app_delay_mean_s. Of Multipath TCP over all paths, opened on any of them, \
         and plain TCP over one, the bound takes the best. Absent for responses without end.",
    ),
    of_run("price", "", "Money spent: Σ over paths of price per byte × payload bytes sent, repetitions included."),
    of_run(
        "cross_goodput_bps",
        "bit/s",
        "Bytes delivered by all TCP cross flows together, per measured time of the connection.",
    ),
    of_run(
        "cross_completion_mean_s",
        "s",
        "TCP cross flows with a size: first SYN sent to last byte delivered, mean over those that finished in the run, \
         warm-up and the time after the connection's own transfer included.",
    ),
    of_run("cross_finished", "", "How many of the TCP cross flows with a size finished in the run."),
    of_path("sent_bytes", "byte", "Payload bytes sent on the path, repetitions included."),
    of_path("share", "", "The path's part of all payload bytes sent for the first time."),
    of_path("retransmitted_packets", "packet", "TCP retransmissions of data on the path."),
    of_path("loss_ratio", "", "The path's retransmitted ÷ sent data packets, as its sender sees them."),
    of_path("srtt_mean_s", "s", "Smoothed RTT of the path's sender, mean over time."),
    of_path(
        "rtt_mean_s",
        "s",
        "Mean of the RTT samples of the path's sender: arrival of an acknowledgment less the sending of the newest packet \
         that it acknowledges; packets sent twice give none unless timestamps tell. A Linux sender's are not seen.",
    ),
    of_path("cwnd_mean_packets", "packet", "Congestion window, mean over time."),
    of_path(
        "queue_max_packets",
        "packet",
        "Most packets waiting at the path's server → client bottleneck, of any flow.",
    ),
    of_path(
        "utilisation",
        "",
        "Bytes of all packets of this path, other flows' included, that left its server → client bottleneck ÷ what the \
         bottleneck could carry. On a shared link, and beside TCP flows that have a delay of their own: the path's part of it.",
    ),
    of_path(
        "return_s",
        "s",
        "End of the path's outage to the first data arriving over it that the receiver does not have yet (the longest, \
         if there were several outages; at least the time to the end, if none came). Absent without an outage that ended.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_units() {
        for metric in METRICS {
            let unit = match metric.name {
                n if n.ends_with("_bps") => "bit/s",
                n if n.ends_with("_s") => "s",
                n if n.ends_with("_bytes") => "byte",
                n if n.ends_with("_packets") => "packet",
                _ => "",
            };
            assert_eq!(metric.unit, unit, "{}", metric.name);
        }
    }

    #[test]
    fn names_are_unique_within_their_kind() {
        for (i, a) in METRICS.iter().enumerate() {
            assert!(METRICS[..i].iter().all(|b| (a.name, a.per_path) != (b.name, b.per_path)), "{}", a.name);
        }
    }
}
