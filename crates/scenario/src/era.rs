//! Stacks of other years: the defaults of `[tcp] era`. `docs/era.md` has the sources.

/// Other defaults of `[tcp]`.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    /// The name, as in `era`.
    pub name: &'static str,
    /// Keys of `[tcp]` with their values, as a file would write them without quotes.
    pub keys: &'static [(&'static str, &'static str)],
}

/// Their names, as the key's form lists them.
pub(crate) const NAMES: &[&str] = &["linux-3.11", "linux-3.14", "ns-3", "ns-2"];

/// All of them.
pub const ERAS: &[Era] = &[
    Era {
        name: NAMES[0],
        keys: &[
            ("recovery", "fack"),
            ("tail_loss_probe", "true"),
            ("abc_limit", "1"),
            ("cwnd_slack", "3"),
            ("slow_start_at_threshold", "true"),
            ("limited_decay", "linux"),
            ("buffer_accounting", "truesize"),
            ("autotune", "true"),
        ],
    },
    Era {
        name: NAMES[1],
        keys: &[
            ("recovery", "fack"),
            ("tail_loss_probe", "true"),
            ("ack_counting", "acks-in-avoidance"),
            ("cwnd_slack", "3"),
            ("slow_start_at_threshold", "true"),
            ("limited_decay", "linux"),
            ("buffer_accounting", "truesize"),
            ("autotune", "true"),
        ],
    },
    Era {
        name: NAMES[2],
        keys: &[
            ("recovery", "sack"),
            ("sack", "false"),
            ("timestamps", "false"),
            ("rto_form", "rfc6298"),
            ("rto_min", "200ms"),
            ("rto_initial", "3s"),
            ("initial_window", "1"),
            ("initial_ssthresh", "65535B"),
            ("abc_limit", "1"),
            ("idle_restart", "false"),
            ("delayed_ack", "200ms"),
            ("quick_acks", "0"),
            ("nagle", "false"),
        ],
    },
    Era {
        name: NAMES[3],
        keys: &[
            ("recovery", "sack"),
            ("timestamps", "false"),
            ("rto_form", "rfc6298"),
            ("rto_min", "200ms"),
            ("rto_initial", "3s"),
            ("initial_window", "2"),
            ("abc_limit", "1"),
            ("idle_restart", "false"),
            ("delayed_ack", "0s"),
            ("nagle", "false"),
        ],
    },
];

/// The era with this name.
pub(crate) fn find(name: &str) -> Option<&'static Era> {
    ERAS.iter().find(|era| era.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Section;

    #[test]
    fn an_era_has_a_name_and_known_keys_once_each() {
        assert_eq!(ERAS.iter().map(|era| era.name).collect::<Vec<_>>(), NAMES);
        for era in ERAS {
            for (n, (key, _)) in era.keys.iter().enumerate() {
                assert!(*key != "era" && Section::Tcp.key(key).is_some(), "{}: {key}", era.name);
                assert!(era.keys[..n].iter().all(|(before, _)| before != key), "{}: {key} twice", era.name);
            }
        }
    }
}
