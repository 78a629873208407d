//! Signals between the hosts about paths and failures.

use anabranch_units::{Instant, Side};
use anabranch_wire::{AddAddr, Flags, MptcpOption, Reason, Segment};
use serde::Serialize;
use std::net::IpAddr;

/// Most notes of a connection.
const MOST: usize = 1000;

/// A signal of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// ADD_ADDR (RFC 8684 §3.4.1).
    AddAddr {
        /// Address ID.
        id: u8,
        /// The address.
        address: IpAddr,
        /// The port, if one is announced.
        port: Option<u16>,
    },
    /// The echo of an ADD_ADDR.
    Echo {
        /// Address ID.
        id: u8,
    },
    /// REMOVE_ADDR (§3.4.2).
    RemoveAddr {
        /// Address ID.
        id: u8,
    },
    /// MP_PRIO (§3.3.8).
    Priority {
        /// Use as backup from now on.
        backup: bool,
    },
    /// MP_FAIL (§3.7).
    Fail,
    /// An infinite mapping (§3.7).
    InfiniteMapping,
    /// MP_FASTCLOSE (§3.5).
    FastClose,
    /// A reset, with the code of MP_TCPRST (§3.6) if it has one.
    Reset {
        /// The code.
        code: Option<u8>,
        /// The condition is transient.
        transient: bool,
    },
    /// The end of the data (§3.3.3).
    DataFin,
}

/// A [`Signal`] with its time, its subflow, and the host that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub at: Instant,
    pub subflow: usize,
    pub from: Side,
    pub what: Signal,
}

/// Notes in the order of time; a repeated one stands once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub all: Vec<Note>,
    /// Those for which there was no room.
    pub more: u64,
}

impl Notes {
    /// Takes what a segment says.
    pub fn take(&mut self, at: Instant, subflow: usize, from: Side, segment: &Segment) {
        let mut note = |what| self.add(Note { at, subflow, from, what });
        let mut reason: Option<Reason> = None;
        for option in segment.options.mptcp() {
            match *option {
                MptcpOption::AddAddr(AddAddr { address_id: id, hmac: None, .. }) => note(Signal::Echo { id }),
                MptcpOption::AddAddr(AddAddr { address_id: id, address, port, .. }) => {
                    note(Signal::AddAddr { id, address, port });
                }
                MptcpOption::RemoveAddr(ids) => ids.iter().flatten().for_each(|&id| note(Signal::RemoveAddr { id })),
                MptcpOption::Prio { backup } => note(Signal::Priority { backup }),
                MptcpOption::Fail { .. } => note(Signal::Fail),
                MptcpOption::FastClose { .. } => note(Signal::FastClose),
                MptcpOption::TcpRst(why) => reason = Some(why),
                MptcpOption::Capable(_) | MptcpOption::Join(_) => {}
            }
        }
        if segment.flags.has(Flags::RST) {
            let (code, transient) = (reason.map(|r| r.code), reason.is_some_and(|r| r.transient));
            note(Signal::Reset { code, transient });
        }
        if let Some(dss) = segment.options.dss() {
            if dss.mapping.is_some_and(|mapping| mapping.len == 0) {
                note(Signal::InfiniteMapping);
            }
            if dss.data_fin {
                note(Signal::DataFin);
            }
        }
    }

    fn add(&mut self, note: Note) {
        // Said again on this subflow; of what concerns the connection, on any.
        let same = |known: &&Note| {
            let everywhere =
                matches!(note.what, Signal::DataFin | Signal::AddAddr { .. } | Signal::Echo { .. } | Signal::FastClose);
            (known.from, known.what) == (note.from, note.what) && (everywhere || known.subflow == note.subflow)
        };
        // An address may be announced again after its removal.
        if self.all.iter().rev().take(32).any(|known| same(&known)) {
            return;
        }
        if self.all.len() < MOST {
            self.all.push(note);
        } else {
            self.more += 1;
        }
    }
}
