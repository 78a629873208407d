//! Every model with its parameters by name.

use crate::model::{Column, Model, Parameter, Range, Unit, Values};
use crate::{BufferbloatLoss, Cycle, DelayedStart, IdleRestart, IncrementEfficiency, LossMode, RttCycle, Storage};
use anabranch_units::Duration;

/// Every model.
pub fn all() -> &'static [Model] {
    MODELS
}

/// The model with this name.
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

const MODELS: &[Model] = &[
    Model {
        name: "delayed-start",
        about: "packets that the first subflow receives before the second one's first delivery",
        source: "Chen and Towsley 2014, equations 1 to 9, figure 2",
        page: include_str!("pages/delayed-start.md"),
        parameters: &[GAMMA, LOSS, INITIAL_WINDOW, DELAYED_ACK, ROUNDS_FACTOR, LOSS_MODE],
        columns: &[
            column("rounds", Unit::Rounds, "rounds of the first subflow in the delay"),
            column("expected_packets", Unit::Packets, "expected packets (eq 9)"),
            column("loss_free_packets", Unit::Packets, "packets if nothing is lost (eq 3)"),
            column("no_loss", Unit::Probability, "probability that nothing is lost, given at most one loss (eq 7)"),
        ],
        evaluate: |values| {
            let model = delayed_start(values);
            vec![vec![model.rounds(), model.expected_packets(), model.loss_free_packets(), model.no_loss()]]
        },
    },
    Model {
        name: "bufferbloat-loss",
        about: "loss rate of a flow that fills a bottleneck's buffer, over the buffer's size",
        source: "Chen and Towsley 2014, figure 5",
        page: include_str!("pages/bufferbloat-loss.md"),
        parameters: &[RATE, RTT, PACKET, BUFFER, BDP, DELAYED_ACK],
        columns: &[
            column("bdp_packets", Unit::Packets, "bandwidth-delay product μτ"),
            column("storage_packets", Unit::Packets, "F: packets that path and buffer hold"),
            column("cycle_s", Unit::Time, "T_ca as printed: the window reaches F + 1"),
            column("cycle_packets", Unit::Packets, "N with it: packets per cycle"),
            column("loss_ratio", Unit::Probability, "1/N"),
            column("cycle_text_s", Unit::Time, "T_ca as its text says: the window reaches F"),
            column("cycle_text_packets", Unit::Packets, "N with that"),
            column("loss_ratio_text", Unit::Probability, "1/N with that"),
        ],
        evaluate: |values| {
            let storage = storage(values);
            let model = BufferbloatLoss { storage, delayed_ack: DELAYED_ACK.of(values) };
            let mut row = vec![storage.bdp_packets(), storage.packets()];
            for cycle in Cycle::ALL {
                row.push(storage.cycle_time(model.delayed_ack, cycle));
                row.extend([model.cycle_packets(cycle), model.loss_ratio(cycle)]);
            }
            vec![row]
        },
    },
    Model {
        name: "rtt-cycle",
        about: "window and round-trip time over one cycle of congestion avoidance",
        source: "Chen and Towsley 2014, equation 10, figure 4",
        page: include_str!("pages/rtt-cycle.md"),
        parameters: &[RATE, RTT, PACKET, BUFFER, BDP, DELAYED_ACK, CYCLE, STEPS],
        columns: &[
            column("time_s", Unit::Time, "since the buffer began to fill"),
            column("window_packets", Unit::Packets, "congestion window (eq 10)"),
            column("rtt_s", Unit::Time, "round-trip time"),
        ],
        evaluate: |values| {
            let (storage, delayed_ack) = (storage(values), DELAYED_ACK.of(values));
            let model = RttCycle { storage, delayed_ack, cycle: Cycle::ALL[CYCLE.whole(values) as usize] };
            model.moments(STEPS.whole(values)).map(|m| vec![m.time, m.window, m.rtt]).collect()
        },
    },
    Model {
        name: "increment-efficiency",
        about: "a coupled subflow's increase ÷ that of TCP alone",
        source: "Chen and Towsley 2014, equations 11 and 12, figure 6",
        page: include_str!("pages/increment-efficiency.md"),
        parameters: &[BETA, GAMMA, WINDOW],
        columns: &[
            column("efficiency", Unit::None, "increase ÷ that of TCP alone"),
            column("increase_packets", Unit::Packets, "increase of the window per acknowledged packet"),
        ],
        evaluate: |values| {
            let [beta, gamma, window] = [BETA, GAMMA, WINDOW].map(|parameter| parameter.of(values));
            let model = IncrementEfficiency { beta, gamma, window };
            vec![vec![model.efficiency(), model.increase()]]
        },
    },
    Model {
        name: "idle-restart",
        about: "window and threshold of a subflow after an idle restart",
        source: "RFC 2861; Chen and Towsley 2014, figures 7 and 8",
        page: include_str!("pages/idle-restart.md"),
        parameters: &[IDLE_WINDOW, SSTHRESH, INITIAL_WINDOW_WHOLE, RTO, IDLE],
        columns: &[
            column("window_packets", Unit::Packets, "congestion window"),
            column("ssthresh_packets", Unit::Packets, "slow-start threshold"),
        ],
        evaluate: |values| {
            let model = IdleRestart {
                window: IDLE_WINDOW.whole(values),
                ssthresh: SSTHRESH.whole(values),
                initial_window: INITIAL_WINDOW_WHOLE.whole(values),
                rto: Duration::from_secs_f64(RTO.of(values)),
                idle: Duration::from_secs_f64(IDLE.of(values)),
            };
            let (window, ssthresh) = model.after();
            vec![vec![window.into(), ssthresh.into()]]
        },
    },
];

const fn column(name: &'static str, unit: Unit, about: &'static str) -> Column {
    Column { name, unit, about }
}

const fn real(name: &'static str, unit: Unit, default: f64, min: f64, max: f64, about: &'static str) -> Parameter {
    Parameter { name, default, range: Range::Real(min, max), unit, about }
}

const fn whole(name: &'static str, unit: Unit, default: u32, (min, max): (u32, u32), about: &'static str) -> Parameter {
    Parameter { name, default: default as f64, range: Range::Whole(min, max), unit, about }
}

const fn words(name: &'static str, words: &'static [&'static str], about: &'static str) -> Parameter {
    Parameter { name, default: 0.0, range: Range::Words(words), unit: Unit::None, about }
}

/// A larger window than any network holds; half of the engine's limit.
const PACKETS: u32 = 1 << 23;

const GAMMA: Parameter =
    real("gamma", Unit::None, 4.0, 0.01, 50.0, "RTT of the second subflow ÷ RTT of the first, R2/R1");
const BETA: Parameter =
    real("beta", Unit::None, 2.0, 0.0, 1e6, "window of the second subflow ÷ window of the first, w2/w1");
const LOSS: Parameter = real("loss", Unit::Probability, 0.009, 0.0, 0.99, "probability that a packet is lost");
const INITIAL_WINDOW: Parameter = real("initial_window", Unit::Packets, 10.0, 1.0, 1e4, "initial window Iw");
const INITIAL_WINDOW_WHOLE: Parameter = whole("initial_window", Unit::Packets, 10, (1, PACKETS), "initial window Iw");
const DELAYED_ACK: Parameter =
    real("delayed_ack", Unit::Packets, 2.0, 1.0, 100.0, "packets that one acknowledgment covers, b");
const ROUNDS_FACTOR: Parameter =
    whole("rounds_factor", Unit::None, 2, (1, 2), "rounds of the first subflow in the delay ÷ gamma; eq 1 says 2");
const LOSS_MODE: Parameter = words(
    "loss_mode",
    &["literal", "any", "exactly-one"],
    "a round has its loss if one given packet is lost (as printed), at least one, or exactly one",
);
const RATE: Parameter = real("rate", Unit::Rate, 10e6, 1e3, 1e12, "rate of the bottleneck μ");
const RTT: Parameter = real("rtt", Unit::Time, 0.015, 1e-6, 100.0, "round-trip time without queueing τ");
const PACKET: Parameter = real("packet", Unit::Bytes, 1500.0, 40.0, 65_535.0, "size of a packet");
const BUFFER: Parameter = real("buffer", Unit::Bdp, 1.0, 0.0, 1e3, "buffer B in bandwidth-delay products μτ");
const BDP: Parameter = words("bdp", &["exact", "floor"], "take μτ as it is, or rounded down to whole packets");
const CYCLE: Parameter = words("cycle", &["printed", "text"], "the cycle ends at w = F + 1, or at w = F");
const STEPS: Parameter = whole("steps", Unit::None, 10, (1, 1000), "intervals between the rows");
const WINDOW: Parameter = real("window", Unit::Packets, 10.0, 1.0, 1e6, "window of the first subflow w1");
const IDLE_WINDOW: Parameter = whole("window", Unit::Packets, 80, (1, PACKETS), "window before");
const SSTHRESH: Parameter = whole("ssthresh", Unit::Packets, 40, (2, PACKETS), "slow-start threshold before");
const RTO: Parameter = real("rto", Unit::Time, 0.2, 1e-3, 1e3, "retransmission timeout");
const IDLE: Parameter = real("idle", Unit::Time, 1.0, 0.0, 1e6, "time since the last packet was sent");

fn delayed_start(values: &Values<'_>) -> DelayedStart {
    DelayedStart {
        gamma: GAMMA.of(values),
        loss: LOSS.of(values),
        initial_window: INITIAL_WINDOW.of(values),
        delayed_ack: DELAYED_ACK.of(values),
        rounds_factor: ROUNDS_FACTOR.of(values),
        loss_mode: LossMode::ALL[LOSS_MODE.whole(values) as usize],
    }
}

fn storage(values: &Values<'_>) -> Storage {
    Storage {
        rate: RATE.of(values),
        rtt: RTT.of(values),
        packet: PACKET.of(values),
        buffer: BUFFER.of(values),
        floor_bdp: BDP.of(values) != 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_allowed_and_every_row_is_complete_and_finite() {
        for model in all() {
            for parameter in model.parameters {
                assert!(parameter.accepts(parameter.default), "{} {}", model.name, parameter.name);
                let same = model.parameters.iter().filter(|other| other.name == parameter.name);
                assert_eq!(same.count(), 1, "{} {}", model.name, parameter.name);
            }
            let rows = (model.evaluate)(&Values::new(model.parameters));
            assert!(!rows.is_empty());
            for row in rows {
                assert_eq!(row.len(), model.columns.len(), "{}", model.name);
                assert!(row.iter().all(|value| value.is_finite()), "{} {row:?}", model.name);
            }
        }
    }

    /// Both ends of every parameter's range, with all others at their defaults, and all at the same end.
    #[test]
    fn ends_of_ranges_give_finite_numbers() {
        let ends = |parameter: &Parameter| match parameter.range {
            Range::Real(min, max) => [min, max],
            Range::Whole(min, max) => [min.into(), max.into()],
            Range::Words(words) => [0.0, words.len() as f64 - 1.0],
        };
        for model in all() {
            let mut tried = vec![Values::new(model.parameters); 2];
            for parameter in model.parameters {
                for (which, end) in ends(parameter).into_iter().enumerate() {
                    assert!(tried[which].set(parameter.name, end));
                    let mut alone = Values::new(model.parameters);
                    assert!(alone.set(parameter.name, end));
                    tried.push(alone);
                }
            }
            for values in tried {
                let rows = (model.evaluate)(&values);
                assert!(rows.iter().flatten().all(|value| value.is_finite()), "{} {values:?}", model.name);
            }
        }
    }

    #[test]
    fn words_stand_in_the_order_of_the_enums() {
        let with = |name, word| {
            let model = find("delayed-start").unwrap();
            let mut values = Values::new(model.parameters);
            assert!(values.set(name, word));
            delayed_start(&values)
        };
        assert_eq!(with("loss_mode", 0.0), DelayedStart::default());
        assert_eq!(with("loss_mode", 1.0).loss_mode, LossMode::Any);
        assert_eq!(with("loss_mode", 2.0).loss_mode, LossMode::ExactlyOne);
        assert_eq!(find("delayed").map(|model| model.name), None);
    }
}
