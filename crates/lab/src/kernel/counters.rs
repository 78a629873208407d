//! The kernel's MIB counters.

use crate::{LabError, Namespace};
use std::collections::BTreeMap;

/// Counters by their `nstat` names: `TcpRetransSegs`, `MPTcpExtMPJoinSynRx`.
pub type Counters = BTreeMap<String, u64>;

/// The counters of a namespace. `nstat` keeps a history file that namespaces share, so the tables are read directly.
///
/// # Errors
/// The tables cannot be read.
pub fn counters(namespace: &Namespace) -> Result<Counters, LabError> {
    let mut all = Counters::new();
    for table in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"] {
        let text = namespace.enter(|| std::fs::read_to_string(table))?.map_err(LabError::system(table))?;
        read(&text, &mut all);
    }
    Ok(all)
}

/// Pairs of lines: `Tcp: RtoAlgorithm RtoMin …`, `Tcp: 1 200 …`.
fn read(text: &str, into: &mut Counters) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((_, values))) = (names.split_once(':'), values.split_once(':')) else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            if let Ok(value) = value.parse() {
                into.insert(format!("{group}{name}"), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_become_names_as_nstat_writes_them() {
        let mut all = Counters::new();
        read("Tcp: MaxConn RetransSegs\nTcp: -1 7\nMPTcpExt: MPCapableSYNRX MPJoinSynRx\nMPTcpExt: 1 2\n", &mut all);
        let expected = [("MPTcpExtMPCapableSYNRX", 1), ("MPTcpExtMPJoinSynRx", 2), ("TcpRetransSegs", 7)];
        assert_eq!(all, expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    }
}
