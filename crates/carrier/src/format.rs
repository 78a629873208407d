//! The four kinds of datagrams, as `docs/carrier.md` has them. Numbers are little-endian.

use crate::macs::{COOKIE_NONCE, Door, MAC, SEALED_COOKIE, Tag};
use crate::noise::{FIRST, SECOND, TAG};

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const COOKIE: u8 = 3;
const DATA: u8 = 4;

/// Bytes before the ciphertext of a data datagram.
pub(crate) const HEADER: usize = 16;
/// Bytes that a data datagram adds to its content.
pub const OVERHEAD: usize = HEADER + TAG;

pub(crate) const INITIATION_LEN: usize = 8 + FIRST + 2 * MAC;
pub(crate) const RESPONSE_LEN: usize = 12 + SECOND + 2 * MAC;
pub(crate) const COOKIE_LEN: usize = 8 + COOKIE_NONCE + SEALED_COOKIE;

/// A datagram's parts. Nothing of it is authenticated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    Initiation(Initiation<'a>),
    Response(Response<'a>),
    Cookie { receiver: u32, nonce: &'a [u8; COOKIE_NONCE], sealed: &'a [u8; SEALED_COOKIE] },
    Data { receiver: u32, nonce: u64, sealed: &'a [u8] },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Initiation<'a> {
    pub sender: u32,
    pub noise: &'a [u8; FIRST],
    pub tags: Tags<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub sender: u32,
    pub receiver: u32,
    pub noise: &'a [u8; SECOND],
    pub tags: Tags<'a>,
}

/// A handshake message's tags, and the bytes that they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tags<'a> {
    pub covered: &'a [u8],
    pub mac1: &'a Tag,
    pub mac2: &'a Tag,
}

/// The next `N` bytes; `None` if there are fewer.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    take::<4>(rest).map(|bytes| u32::from_le_bytes(*bytes))
}

fn tags<'a>(datagram: &'a [u8], rest: &mut &'a [u8]) -> Option<Tags<'a>> {
    let covered = datagram.get(..datagram.len() - 2 * MAC)?;
    Some(Tags { covered, mac1: take(rest)?, mac2: take(rest)? })
}

impl<'a> Message<'a> {
    /// `None` if it is of no known kind, or has not that kind's length.
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let mut rest = datagram;
        let [kind, 0, 0, 0] = *take::<4>(&mut rest)? else { return None };
        match (kind, datagram.len()) {
            (INITIATION, INITIATION_LEN) => {
                let (sender, noise) = (number(&mut rest)?, take(&mut rest)?);
                Some(Self::Initiation(Initiation { sender, noise, tags: tags(datagram, &mut rest)? }))
            }
            (RESPONSE, RESPONSE_LEN) => {
                let (sender, receiver, noise) = (number(&mut rest)?, number(&mut rest)?, take(&mut rest)?);
                Some(Self::Response(Response { sender, receiver, noise, tags: tags(datagram, &mut rest)? }))
            }
            (COOKIE, COOKIE_LEN) => {
                let receiver = number(&mut rest)?;
                Some(Self::Cookie { receiver, nonce: take(&mut rest)?, sealed: take(&mut rest)? })
            }
            (DATA, OVERHEAD..) => {
                let (receiver, nonce) = (number(&mut rest)?, u64::from_le_bytes(*take(&mut rest)?));
                Some(Self::Data { receiver, nonce, sealed: rest })
            }
            _ => None,
        }
    }
}

fn begin(kind: u8, len: usize, numbers: &[u32]) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(len);
    datagram.extend_from_slice(&[kind, 0, 0, 0]);
    numbers.iter().for_each(|number| datagram.extend_from_slice(&number.to_le_bytes()));
    datagram
}

/// Appends both tags, and returns `mac1`.
fn mark(datagram: &mut Vec<u8>, door: &Door, cookie: Option<&Tag>) -> Tag {
    let mac1 = door.mac1(datagram);
    let mac2 = cookie.map_or([0; MAC], |cookie| crate::macs::mac2(cookie, datagram, &mac1));
    datagram.extend_from_slice(&mac1);
    datagram.extend_from_slice(&mac2);
    mac1
}

/// A first message and its `mac1`.
pub(crate) fn initiation(sender: u32, noise: &[u8; FIRST], door: &Door, cookie: Option<&Tag>) -> (Vec<u8>, Tag) {
    let mut datagram = begin(INITIATION, INITIATION_LEN, &[sender]);
    datagram.extend_from_slice(noise);
    let mac1 = mark(&mut datagram, door, cookie);
    (datagram, mac1)
}

/// A second message.
pub(crate) fn response(sender: u32, receiver: u32, noise: &[u8; SECOND], door: &Door) -> Vec<u8> {
    let mut datagram = begin(RESPONSE, RESPONSE_LEN, &[sender, receiver]);
    datagram.extend_from_slice(noise);
    mark(&mut datagram, door, None);
    datagram
}

/// The answer to a handshake message under load.
pub(crate) fn cookie_reply(receiver: u32, nonce: &[u8; COOKIE_NONCE], sealed: &[u8; SEALED_COOKIE]) -> Vec<u8> {
    let mut datagram = begin(COOKIE, COOKIE_LEN, &[receiver]);
    datagram.extend_from_slice(nonce);
    datagram.extend_from_slice(sealed);
    datagram
}

/// The header of a data datagram.
pub(crate) fn data_header(receiver: u32, nonce: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = DATA;
    header[4..8].copy_from_slice(&receiver.to_le_bytes());
    header[8..].copy_from_slice(&nonce.to_le_bytes());
    header
}

/// The content of a data datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    Nothing,
    /// An IPv4 packet.
    Packet(&'a [u8]),
    /// One of the two pieces of a packet.
    Piece(Piece<'a>),
    /// To be answered from where it was received.
    Challenge([u8; 8]),
    Answer([u8; 8]),
    /// Padding of some size (RFC 8899 §4.1), to be acknowledged.
    Probe(u32),
    ProbeSeen(u32),
    /// The server's number of the session.
    Incarnation([u8; 8]),
}

/// A packet that its path does not carry whole travels in two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The piece has the packet's first bytes.
    pub is_first: bool,
    /// The packet's, among those of its path that were cut.
    pub number: u32,
    pub bytes: &'a [u8],
}

/// Bytes before those of a piece.
pub(crate) const PIECE_HEADER: usize = 5;

const CHALLENGE: u8 = 1;
const ANSWER: u8 = 2;
const PROBE: u8 = 3;
const PROBE_SEEN: u8 = 4;
const FIRST_PIECE: u8 = 5;
const LAST_PIECE: u8 = 6;
const INCARNATION: u8 = 7;

impl<'a> Content<'a> {
    /// `None` for a kind that is unknown or too short.
    pub fn parse(plain: &'a [u8]) -> Option<Self> {
        let Some((kind, mut rest)) = plain.split_first() else { return Some(Self::Nothing) };
        match *kind {
            CHALLENGE if rest.len() == 8 => take(&mut rest).map(|token| Self::Challenge(*token)),
            ANSWER if rest.len() == 8 => take(&mut rest).map(|token| Self::Answer(*token)),
            PROBE => number(&mut rest).map(Self::Probe),
            PROBE_SEEN if rest.len() == 4 => number(&mut rest).map(Self::ProbeSeen),
            INCARNATION if rest.len() == 8 => take(&mut rest).map(|incarnation| Self::Incarnation(*incarnation)),
            FIRST_PIECE | LAST_PIECE => {
                let (is_first, number) = (*kind == FIRST_PIECE, number(&mut rest)?);
                Some(Self::Piece(Piece { is_first, number, bytes: rest }))
            }
            0x40..=0x4f => Some(Self::Packet(plain)),
            _ => None,
        }
    }

    /// Bytes of the content; a packet's are its own.
    pub fn bytes(&self) -> Vec<u8> {
        let frame = |kind: u8, rest: &[u8]| [&[kind], rest].concat();
        match self {
            Self::Nothing => Vec::new(),
            Self::Packet(packet) => packet.to_vec(),
            Self::Piece(Piece { is_first, number, bytes }) => {
                let kind = if *is_first { FIRST_PIECE } else { LAST_PIECE };
                frame(kind, &[&number.to_le_bytes(), *bytes].concat())
            }
            Self::Challenge(token) => frame(CHALLENGE, token),
            Self::Answer(token) => frame(ANSWER, token),
            Self::Probe(id) => frame(PROBE, &id.to_le_bytes()),
            Self::ProbeSeen(id) => frame(PROBE_SEEN, &id.to_le_bytes()),
            Self::Incarnation(incarnation) => frame(INCARNATION, incarnation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PublicKey;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let door = Door::of(&PublicKey([1; 32]));
        let (first, mac1) = initiation(7, &[2; FIRST], &door, Some(&[3; MAC]));
        let Some(Message::Initiation(read)) = Message::parse(&first) else { panic!("{first:?}") };
        assert_eq!((read.sender, read.noise, read.tags.mac1), (7, &[2; FIRST], &mac1));
        assert!(door.is_mac1(read.tags.covered, &mac1) && read.tags.mac2 != &[0; MAC]);
        let second = response(8, 7, &[4; SECOND], &door);
        let Some(Message::Response(read)) = Message::parse(&second) else { panic!("{second:?}") };
        assert_eq!((read.sender, read.receiver, read.noise, read.tags.mac2), (8, 7, &[4; SECOND], &[0; MAC]));
        let reply = cookie_reply(9, &[5; COOKIE_NONCE], &[6; SEALED_COOKIE]);
        let cookie = Message::Cookie { receiver: 9, nonce: &[5; COOKIE_NONCE], sealed: &[6; SEALED_COOKIE] };
        assert_eq!(Message::parse(&reply), Some(cookie));
        let data = [&data_header(10, 11)[..], &[0; TAG]].concat();
        assert_eq!(Message::parse(&data), Some(Message::Data { receiver: 10, nonce: 11, sealed: &[0; TAG] }));
        for datagram in [first, second, reply, data] {
            assert_eq!(Message::parse(&datagram[..datagram.len() - 1]), None, "a byte is missing");
            let mut other = datagram.clone();
            other[1] = 1;
            assert_eq!(Message::parse(&other), None, "a reserved byte is not zero");
        }
        assert_eq!((INITIATION_LEN, RESPONSE_LEN, COOKIE_LEN, OVERHEAD), (164, 92, 64, 32));
    }

    #[test]
    fn contents_are_read_as_they_are_written() {
        let packet = [0x45; 20];
        let contents = [
            Content::Nothing,
            Content::Packet(&packet),
            Content::Piece(Piece { is_first: true, number: 7, bytes: &packet }),
            Content::Piece(Piece { is_first: false, number: 8, bytes: &[] }),
            Content::Challenge([1; 8]),
            Content::Answer([2; 8]),
            Content::Probe(3),
            Content::ProbeSeen(4),
            Content::Incarnation([5; 8]),
        ];
        for content in contents {
            assert_eq!(Content::parse(&content.bytes()), Some(content));
        }
        assert_eq!(Content::parse(&[PROBE, 5, 0, 0, 0, 0, 0]), Some(Content::Probe(5)), "padded");
        for bad in [
            &[0][..],
            &[9],
            &[0x60; 40],
            &[CHALLENGE, 1],
            &[PROBE, 1],
            &[FIRST_PIECE, 1],
            &[PROBE_SEEN, 1, 2, 3, 4, 5],
            &[INCARNATION, 1],
        ] {
            assert_eq!(Content::parse(bad), None, "{bad:?}");
        }
    }
}
