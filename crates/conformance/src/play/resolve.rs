//! A pattern's fields → the numbers on the wire.

use super::stream::dss_checksum;
use super::world::{InOut, World};
use crate::packet::{Map, Opt, Sized64, proof};
use crate::script::{Field, KeyName, MapPattern, Number, OptionPattern, Stamp, Wide, Width};

type Result<T> = core::result::Result<T, String>;

/// Resolves the options of one packet.
pub struct Resolver<'a> {
    /// The known values.
    pub world: &'a World,
    /// The packet's path.
    pub path: u8,
    /// The packet's direction.
    pub way: InOut,
    /// Payload as in the stream, for a checksum over all of it.
    pub payload: &'a [u8],
}

fn unknown<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| "the host's key has not been seen yet".to_owned())
}

fn open<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| "another form of the option came".to_owned())
}

/// A field: the received value where the pattern leaves it open, `right` where it is to be computed.
fn field(field: Field, heard: Option<u64>, right: impl FnOnce() -> Result<u64>) -> Result<u64> {
    Ok(match field {
        Field::Any => open(heard)?,
        Field::Right => right()?,
        // The mask is non-zero in every byte, so that the value is wrong at any width.
        Field::Wrong => right()? ^ 0x0101_0101_0101_0101,
        Field::Is(number) => number,
    })
}

fn given() -> Result<u64> {
    Err("this field cannot be computed: write its number".to_owned())
}

impl Resolver<'_> {
    /// The option; open fields are taken from `heard`, the received option of the same form.
    ///
    /// # Errors
    /// A value is not known yet, or `heard` has another form.
    pub fn option(&self, pattern: &OptionPattern, heard: Option<&Opt>) -> Result<Opt> {
        Ok(match pattern {
            OptionPattern::Nop => Opt::Nop,
            OptionPattern::End => Opt::End,
            OptionPattern::SackOk => Opt::SackOk,
            OptionPattern::Raw(bytes) => Opt::Raw(bytes.clone()),
            OptionPattern::RemoveAddr(ids) => Opt::RemoveAddr(ids.clone()),
            OptionPattern::Prio(backup) => Opt::Prio(*backup),
            OptionPattern::Mss(mss) => {
                let heard = if let Some(Opt::Mss(mss)) = heard { Some(u64::from(*mss)) } else { None };
                Opt::Mss(field(*mss, heard, given)? as u16)
            }
            OptionPattern::WindowScale(shift) => {
                let heard = if let Some(Opt::WindowScale(shift)) = heard { Some(u64::from(*shift)) } else { None };
                Opt::WindowScale(field(*shift, heard, given)? as u8)
            }
            OptionPattern::Sack(blocks) => Opt::Sack(self.blocks(blocks)),
            OptionPattern::Stamps(val, ecr) => {
                let heard = if let Some(Opt::Stamps(val, ecr)) = heard { Some((*val, *ecr)) } else { None };
                let val = self.stamp(*val, heard.map(|heard| heard.0))?;
                Opt::Stamps(val, self.stamp(*ecr, heard.map(|heard| heard.1))?)
            }
            OptionPattern::Capable { .. } => self.capable(pattern, heard)?,
            OptionPattern::JoinSyn { .. } | OptionPattern::JoinSynAck { .. } | OptionPattern::JoinAck { .. } => {
                self.join(pattern, heard)?
            }
            OptionPattern::Dss { fin, ack, map } => {
                let (heard_ack, heard_map) =
                    if let Some(Opt::Dss { ack, map, .. }) = heard { (*ack, *map) } else { (None, None) };
                // `*` also permits its absence.
                let ack = ack.filter(|ack| ack.at != Number::Any || heard_ack.is_some());
                let ack = ack.map(|ack| self.wide(ack, self.way.back(), heard_ack)).transpose()?;
                let map = map.map(|map| self.map(&map, *fin, heard_map)).transpose()?;
                Opt::Dss { fin: *fin, ack, map }
            }
            OptionPattern::AddAddr { .. } => self.add_addr(pattern, heard)?,
            OptionPattern::Fail(at) => {
                let heard =
                    if let Some(Opt::Fail(dsn)) = heard { Some(Sized64 { wide: true, number: *dsn }) } else { None };
                // RFC 8684 §3.7: a number of the direction that failed.
                let wide = Wide { width: Width::Eight, at: *at };
                Opt::Fail(self.wide(wide, self.way.back(), heard)?.number)
            }
            OptionPattern::FastClose(key) => {
                let heard = if let Some(Opt::FastClose(key)) = heard { Some(*key) } else { None };
                Opt::FastClose(field(*key, heard, || unknown(self.world.key(self.way.back())))?)
            }
            OptionPattern::TcpRst { transient, reason } => {
                let heard = if let Some(Opt::TcpRst { reason, .. }) = heard { Some((*reason).into()) } else { None };
                Opt::TcpRst { transient: *transient, reason: field(*reason, heard, given)? as u8 }
            }
        })
    }

    /// Blocks name numbers of the direction that is acknowledged.
    fn blocks(&self, blocks: &[(i64, i64)]) -> Vec<(u32, u32)> {
        let path = &self.world.paths[usize::from(self.path)];
        let isn = match self.way {
            InOut::In => path.local_isn.unwrap_or(0),
            InOut::Out => path.peer_isn,
        };
        blocks.iter().map(|(left, right)| (isn.wrapping_add(*left as u32), isn.wrapping_add(*right as u32))).collect()
    }

    fn stamp(&self, stamp: Stamp, heard: Option<u32>) -> Result<u32> {
        Ok(match stamp {
            Stamp::Any => open(heard)?,
            Stamp::Is(number) => number,
            Stamp::Last(plus) => self.world.paths[usize::from(self.path)].last_stamp.wrapping_add(plus as u32),
        })
    }

    fn capable(&self, pattern: &OptionPattern, heard: Option<&Opt>) -> Result<Opt> {
        let OptionPattern::Capable { version, flags, keys, len, csum } = pattern else { return open(None) };
        let (heard_flags, heard) = if let Some(Opt::Capable { flags, keys, len, csum, .. }) = heard {
            (Some(*flags), Some((keys, *len, *csum)))
        } else {
            (None, None)
        };
        let heard_key = |at: usize| heard.and_then(|(keys, ..)| keys.get(at).copied());
        let key = |(at, name): (usize, &KeyName)| match name {
            KeyName::Local => unknown(self.world.local_key),
            KeyName::Peer => Ok(super::world::PEER_KEY),
            KeyName::Is(key) => Ok(*key),
            KeyName::Any => open(heard_key(at)),
        };
        let keys = keys.iter().enumerate().map(key).collect::<Result<Vec<_>>>()?;
        let heard_len = heard.and_then(|(_, len, _)| len).map(u64::from);
        let len = len.map(|len| field(len, heard_len, given)).transpose()?.map(|len| len as u16);
        let right = || {
            let dsn = unknown(self.world.idsn(self.way))?.wrapping_add(1);
            let payload = self.covered(0, len.unwrap_or(0).into());
            Ok(dss_checksum(dsn, 1, len.unwrap_or(0), &payload).into())
        };
        let heard_csum = heard.and_then(|(.., csum)| csum).map(u64::from);
        let csum = csum.map(|csum| field(csum, heard_csum, right)).transpose()?.map(|csum| csum as u16);
        let flags = flags.map_or_else(|| open(heard_flags), Ok)?;
        Ok(Opt::Capable { version: *version, flags, keys, len, csum })
    }

    /// The bytes that a mapping covers: the payload as sent, if it is all of them; otherwise the stream's.
    fn covered(&self, offset: i64, len: usize) -> Vec<u8> {
        if self.payload.len() == len {
            return self.payload.to_vec();
        }
        let stream = match self.way {
            InOut::In => &self.world.sent,
            InOut::Out => &self.world.written,
        };
        stream.bytes(offset.max(0) as u64, len)
    }

    fn wide(&self, wide: Wide, way: InOut, heard: Option<Sized64>) -> Result<Sized64> {
        let is_wide = match wide.width {
            Width::Either => heard.is_none_or(|heard| heard.wide),
            Width::Four => false,
            Width::Eight => true,
        };
        let number = match wide.at {
            Number::Any => open(heard)?.number,
            Number::Wire(number) => number,
            Number::At(at) => unknown(self.world.idsn(way))?.wrapping_add(at as u64),
        };
        Ok(Sized64 { wide: is_wide, number: if is_wide { number } else { number & 0xffff_ffff } })
    }

    fn map(&self, map: &MapPattern, fin: bool, heard: Option<Map>) -> Result<Map> {
        let dsn = self.wide(map.dsn, self.way, heard.map(|heard| heard.dsn))?;
        let ssn = field(map.ssn, heard.map(|heard| heard.ssn.into()), given)? as u32;
        let len = field(map.len, heard.map(|heard| heard.len.into()), given)? as u16;
        let heard_csum = heard.and_then(|heard| heard.csum).map(u64::from);
        let right = || {
            let offset = unknown(self.world.data_offset(self.way, dsn))?;
            // The checksum covers all 64 bits, however many are sent.
            let whole = unknown(self.world.idsn(self.way))?.wrapping_add(offset as u64 + 1);
            let whole = if dsn.wide { dsn.number } else { whole };
            let payload = self.covered(offset, usize::from(len).saturating_sub(fin.into()));
            Ok(dss_checksum(whole, ssn, len, &payload).into())
        };
        let csum = map.csum.filter(|csum| *csum != Field::Any || heard_csum.is_some());
        let csum = csum.map(|csum| field(csum, heard_csum, right)).transpose()?.map(|csum| csum as u16);
        Ok(Map { dsn, ssn, len, csum })
    }

    fn join(&self, pattern: &OptionPattern, heard: Option<&Opt>) -> Result<Opt> {
        let (ours, theirs) = (self.world.key(self.way), self.world.key(self.way.back()));
        let (host, script) = self.world.paths[usize::from(self.path)].nonces;
        let (mine, other) = if self.way == InOut::In { (script, host) } else { (host, script) };
        let token = || Ok(u64::from(proof::token(unknown(theirs)?)));
        let hmac = || -> Result<[u8; 32]> { Ok(proof::join(unknown(ours)?, unknown(theirs)?, mine, other)) };
        Ok(match *pattern {
            OptionPattern::JoinSyn { backup, id, token: given_token, nonce } => {
                let heard = if let Some(Opt::JoinSyn { id, token, nonce, .. }) = heard {
                    Some((*id, *token, *nonce))
                } else {
                    None
                };
                Opt::JoinSyn {
                    backup,
                    id: field(id, heard.map(|heard| heard.0.into()), given)? as u8,
                    token: field(given_token, heard.map(|heard| heard.1.into()), token)? as u32,
                    nonce: field(nonce, heard.map(|heard| heard.2.into()), || Ok(mine.into()))? as u32,
                }
            }
            OptionPattern::JoinSynAck { backup, id, hmac: given_hmac, nonce } => {
                let heard = if let Some(Opt::JoinSynAck { id, hmac, nonce, .. }) = heard {
                    Some((*id, *hmac, *nonce))
                } else {
                    None
                };
                Opt::JoinSynAck {
                    backup,
                    id: field(id, heard.map(|heard| heard.0.into()), given)? as u8,
                    hmac: field(given_hmac, heard.map(|heard| heard.1), || Ok(proof::join_short(&hmac()?)))?,
                    nonce: field(nonce, heard.map(|heard| heard.2.into()), || Ok(mine.into()))? as u32,
                }
            }
            OptionPattern::JoinAck { hmac: given_hmac } => {
                let mut right = match (given_hmac, heard) {
                    (Field::Any, Some(Opt::JoinAck(heard))) => *heard,
                    (Field::Any, _) => open(None)?,
                    _ => proof::join_long(&hmac()?),
                };
                right[19] ^= u8::from(given_hmac == Field::Wrong);
                Opt::JoinAck(right)
            }
            _ => open(None)?,
        })
    }

    fn add_addr(&self, pattern: &OptionPattern, heard: Option<&Opt>) -> Result<Opt> {
        let OptionPattern::AddAddr { echo, id, address, port, hmac } = *pattern else { return open(None) };
        let heard = if let Some(Opt::AddAddr { id, hmac, .. }) = heard { Some((*id, *hmac)) } else { None };
        let id = field(id, heard.map(|heard| heard.0.into()), given)? as u8;
        let address = self.world.address(address);
        let (ours, theirs) = (self.world.key(self.way), self.world.key(self.way.back()));
        let right = || Ok(proof::announced(unknown(ours)?, unknown(theirs)?, id, address, port));
        let hmac = if echo { None } else { Some(field(hmac, heard.and_then(|heard| heard.1), right)?) };
        Ok(Opt::AddAddr { echo, id, address, port, hmac })
    }
}

/// True if the option has the pattern's form.
pub fn same_form(pattern: &OptionPattern, option: &Opt) -> bool {
    matches!(
        (pattern, option),
        (OptionPattern::Mss(_), Opt::Mss(_))
            | (OptionPattern::WindowScale(_), Opt::WindowScale(_))
            | (OptionPattern::SackOk, Opt::SackOk)
            | (OptionPattern::Sack(_), Opt::Sack(_))
            | (OptionPattern::Stamps(..), Opt::Stamps(..))
            | (OptionPattern::Raw(_), Opt::Raw(_))
            | (OptionPattern::Capable { .. }, Opt::Capable { .. })
            | (OptionPattern::JoinSyn { .. }, Opt::JoinSyn { .. })
            | (OptionPattern::JoinSynAck { .. }, Opt::JoinSynAck { .. })
            | (OptionPattern::JoinAck { .. }, Opt::JoinAck(_))
            | (OptionPattern::Dss { .. }, Opt::Dss { .. })
            | (OptionPattern::AddAddr { .. }, Opt::AddAddr { .. })
            | (OptionPattern::RemoveAddr(_), Opt::RemoveAddr(_))
            | (OptionPattern::Prio(_), Opt::Prio(_))
            | (OptionPattern::Fail(_), Opt::Fail(_))
            | (OptionPattern::FastClose(_), Opt::FastClose(_))
            | (OptionPattern::TcpRst { .. }, Opt::TcpRst { .. })
    )
}
