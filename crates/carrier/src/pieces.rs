//! Packets that a path does not carry whole: made when it carried more, they travel in two pieces.

use crate::MAX_DATAGRAM;
use crate::format::{Content, OVERHEAD, PIECE_HEADER, Piece};

/// The pieces of one path, to send and received.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Number of the next packet that is cut.
    next: u32,
    /// The piece that came last, if its other half has not come.
    half: Option<Half>,
}

#[derive(Debug)]
struct Half {
    is_first: bool,
    number: u32,
    bytes: Vec<u8>,
}

impl Pieces {
    /// The contents of the two datagrams of `packet`, none larger than a packet of `most` bytes. `None` if two are not enough.
    pub fn cut(&mut self, packet: &[u8], most: usize) -> Option<[Vec<u8>; 2]> {
        let room = most.saturating_sub(PIECE_HEADER);
        let (first, last) = packet.split_at_checked(room).filter(|(_, last)| last.len() <= room)?;
        let number = self.next;
        self.next = number.wrapping_add(1);
        let piece = |is_first, bytes| Content::Piece(Piece { is_first, number, bytes }).bytes();
        Some([piece(true, first), piece(false, last)])
    }

    /// Takes a piece; with its other half it is a packet. It waits for that until another packet's piece comes: what the network mixes
    /// up is lost.
    pub fn join(&mut self, Piece { is_first, number, bytes }: Piece<'_>) -> Option<Vec<u8>> {
        // None that we make is larger; what waits has a bound.
        if bytes.len() > MAX_DATAGRAM - OVERHEAD {
            return None;
        }
        let other = self.half.take_if(|half| half.number == number && half.is_first != is_first);
        match other {
            Some(half) if half.is_first => Some([&half.bytes, bytes].concat()),
            Some(half) => Some([bytes, &half.bytes].concat()),
            None => {
                self.half = Some(Half { is_first, number, bytes: bytes.to_vec() });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(content: &[u8]) -> Piece<'_> {
        let Some(Content::Piece(piece)) = Content::parse(content) else { panic!("{content:?}") };
        piece
    }

    proptest! {
        #[test]
        fn pieces_fit_and_join_in_either_order(packet in proptest::collection::vec(any::<u8>(), 1..3_000), most in 10usize..1_441) {
            let (mut sender, mut receiver) = (Pieces::default(), Pieces::default());
            for backwards in [false, true] {
                let Some(mut pieces) = sender.cut(&packet, most) else {
                    prop_assert!(packet.len() < most - PIECE_HEADER || packet.len() > 2 * (most - PIECE_HEADER));
                    continue;
                };
                prop_assert!(pieces.iter().all(|content| content.len() <= most));
                if backwards {
                    pieces.reverse();
                }
                prop_assert_eq!(receiver.join(piece(&pieces[0])), None);
                prop_assert_eq!(receiver.join(piece(&pieces[1])), Some(packet.clone()));
            }
        }
    }

    #[test]
    fn a_packet_with_a_lost_piece_is_lost_and_no_other() {
        let (mut sender, mut receiver) = (Pieces::default(), Pieces::default());
        let [one, two, three] = [1, 2, 3].map(|n| sender.cut(&[n; 100], 60).unwrap());
        assert!([&one[0], &two[1], &two[1]].iter().all(|content| receiver.join(piece(content)).is_none()));
        assert_eq!(receiver.join(piece(&two[0])), Some(vec![2; 100]));
        assert!(receiver.join(piece(&three[1])).is_none() && receiver.join(piece(&one[1])).is_none());
        assert!(receiver.join(piece(&three[0])).is_none(), "it did not wait");
    }

    #[test]
    fn what_waits_is_bounded() {
        let large = vec![0; MAX_DATAGRAM];
        let mut receiver = Pieces::default();
        assert!(receiver.join(Piece { is_first: true, number: 1, bytes: &large }).is_none());
        assert!(receiver.half.is_none());
    }
}
