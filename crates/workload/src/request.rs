//! Requests and responses: a client requests objects one after the other on each connection, a server answers.

use crate::halves::{Reader, Writer};
use crate::{Fault, Objects, Stream, Workload, pattern};
use anabranch_units::{Duration, Instant};
use bytes::Bytes;

/// Bytes at the beginning of a request: the object's number. The pattern follows.
const NUMBER: usize = 8;

/// Least and greatest size of a request, bytes.
pub const REQUEST_BYTES: core::ops::RangeInclusive<u64> = NUMBER as u64..=64 << 10;

/// The parameters of an exchange, common to client and server.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The objects.
    pub objects: Objects,
    /// Bytes of a request, in [`REQUEST_BYTES`].
    pub request: u64,
}

impl Exchange {
    fn request_len(&self) -> usize {
        self.request.clamp(*REQUEST_BYTES.start(), *REQUEST_BYTES.end()) as usize
    }

    /// The request for object `number` that begins at `offset` of its stream: one piece, so that it is one segment.
    fn request(&self, number: u64, offset: u64) -> Bytes {
        let mut bytes = pattern::piece(offset, self.request_len()).to_vec();
        bytes[..NUMBER].copy_from_slice(&number.to_be_bytes());
        bytes.into()
    }
}

/// The client's half of an exchange: one request at a time, and the response to it.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    exchange: Exchange,
    /// Bytes of all requests so far, and the unwritten rest of the last.
    requested: u64,
    unwritten: Bytes,
    /// Bytes of all requested responses.
    expected: u64,
    reader: Reader,
}

impl Requests {
    pub fn new(exchange: Exchange) -> Self {
        let (unwritten, reader) = (Bytes::new(), Reader::default());
        Self { exchange, requested: 0, unwritten, expected: 0, reader }
    }

    /// Bytes of the object; `None` if there is none.
    pub fn size(&self, number: u64) -> Option<u64> {
        self.exchange.objects.size(number)
    }

    /// Requests an object.
    pub fn request(&mut self, number: u64, io: &mut dyn Stream) {
        self.unwritten = self.exchange.request(number, self.requested);
        self.requested += self.unwritten.len() as u64;
        self.expected += self.size(number).unwrap_or(0);
        self.go_on(io);
    }

    /// Writes the request as far as there is room.
    pub fn go_on(&mut self, io: &mut dyn Stream) {
        while !self.unwritten.is_empty() {
            let room = (self.unwritten.len() as u64).min(io.writable()) as usize;
            let taken = if room > 0 { io.write(self.unwritten.slice(..room)) } else { 0 };
            if taken == 0 {
                return;
            }
            self.unwritten = self.unwritten.slice(taken..);
        }
    }

    /// The response is still under way.
    pub fn is_waiting(&self) -> bool {
        self.reader.received() < self.expected
    }

    /// Reads all there is. True if that completes the response.
    pub fn read(&mut self, io: &mut dyn Stream) -> bool {
        let waited = self.is_waiting();
        let ended = self.reader.read(io);
        if ended || self.reader.received() > self.expected {
            self.reader.expect(self.expected);
        }
        waited && !self.is_waiting() && self.fault().is_none()
    }

    /// The server has finished.
    pub fn has_ended(&self) -> bool {
        self.reader.has_ended()
    }

    pub fn fault(&self) -> Option<Fault> {
        self.reader.fault()
    }
}

/// Requests objects, each after the previous response, and finishes after the last.
#[derive(Clone, Debug)]
pub struct RequestClient {
    requests: Requests,
    think: Duration,
    shared: bool,
    /// Most objects that it requests.
    most: u64,
    /// Objects that this connection has chosen.
    chosen: u64,
    /// The next request, and when it is due.
    next: Option<(Instant, u64)>,
    finished: bool,
}

impl RequestClient {
    /// Requests all objects in order, each `think` after the previous response.
    pub fn new(exchange: Exchange, think: Duration) -> Self {
        let requests = Requests::new(exchange);
        Self { requests, think, shared: false, most: u64::MAX, chosen: 0, next: None, finished: false }
    }

    /// Requests the objects that the host's other connections have not requested ([`Stream::take_ticket`]).
    pub fn sharing(exchange: Exchange) -> Self {
        Self { shared: true, ..Self::new(exchange, Duration::ZERO) }
    }

    /// Requests one object that none of the host's other connections has requested.
    pub fn for_one(exchange: Exchange) -> Self {
        Self { most: 1, ..Self::sharing(exchange) }
    }

    /// No request is outstanding: chooses the next object, to request at `due`, or finishes.
    fn choose(&mut self, due: Instant, io: &mut dyn Stream) {
        let mut choose = || if self.shared { io.take_ticket() } else { self.chosen };
        let number = (self.chosen < self.most).then(&mut choose);
        match number.filter(|number| self.requests.size(*number).is_some()) {
            Some(number) => {
                self.chosen += 1;
                self.next = Some((due, number));
            }
            None => {
                self.finished = true;
                io.finish();
            }
        }
    }

    /// Sends the due request, as far as there is room.
    fn go_on(&mut self, now: Instant, io: &mut dyn Stream) {
        match self.next.take_if(|(due, _)| *due <= now) {
            Some((_, number)) => self.requests.request(number, io),
            None => self.requests.go_on(io),
        }
    }
}

impl Workload for RequestClient {
    fn on_established(&mut self, now: Instant, io: &mut dyn Stream) {
        self.choose(now, io);
        self.go_on(now, io);
    }

    fn on_writable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn on_readable(&mut self, now: Instant, io: &mut dyn Stream) {
        if self.requests.read(io) {
            self.choose(now + self.think, io);
            self.go_on(now, io);
        }
    }

    fn on_wakeup(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.next.map(|(due, _)| due)
    }

    fn is_done(&self) -> bool {
        self.finished && self.requests.has_ended()
    }

    fn is_served(&self) -> bool {
        self.finished
    }

    fn fault(&self) -> Option<Fault> {
        self.requests.fault()
    }
}

/// Answers each request of a [`RequestClient`] with the object, one message each.
#[derive(Clone, Debug)]
pub struct ResponseServer {
    exchange: Exchange,
    /// Bytes of requests so far.
    received: u64,
    number: [u8; NUMBER],
    ended: bool,
    fault: Option<Fault>,
    /// Bytes of all requested responses.
    asked: u64,
    writer: Writer,
}

impl ResponseServer {
    /// A server of the exchange's objects.
    pub fn new(exchange: Exchange) -> Self {
        let (number, writer) = ([0; NUMBER], Writer::default());
        Self { exchange, received: 0, number, ended: false, fault: None, asked: 0, writer }
    }

    /// Takes `data` of at most the rest of a request.
    fn take(&mut self, data: &[u8]) {
        let inside = (self.received % self.exchange.request_len() as u64) as usize;
        let digits = NUMBER.saturating_sub(inside).min(data.len());
        self.number[inside.min(NUMBER)..][..digits].copy_from_slice(&data[..digits]);
        let wrong = pattern::mismatch(self.received + digits as u64, &data[digits..]);
        self.fault = self.fault.or(wrong.map(|offset| Fault::WrongByte { offset }));
        self.received += data.len() as u64;
    }

    /// Handles a complete request.
    fn answer(&mut self, io: &mut dyn Stream) {
        let request = self.exchange.request_len() as u64;
        match self.exchange.objects.size(u64::from_be_bytes(self.number)) {
            // It came before the previous answer was written.
            _ if self.writer.written() < self.asked => {
                let (got, expected) = (self.received, self.received - request);
                self.fault = self.fault.or(Some(Fault::WrongLength { got, expected }));
            }
            Some(size) => {
                self.asked += size;
                io.begin_message(size, None);
            }
            // There is no such object.
            None => self.fault = self.fault.or(Some(Fault::WrongByte { offset: self.received - request })),
        }
    }

    fn go_on(&mut self, io: &mut dyn Stream) {
        if self.writer.write(io, self.asked) && self.ended {
            self.writer.finish(io);
        }
    }
}

impl Workload for ResponseServer {
    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        let request = self.exchange.request_len();
        while let Some(mut data) = io.read() {
            while !data.is_empty() && self.fault.is_none() {
                let left = request - (self.received % request as u64) as usize;
                let part = data.split_to(left.min(data.len()));
                self.take(&part);
                if part.len() == left && self.fault.is_none() {
                    self.answer(io);
                    self.go_on(io);
                }
            }
        }
        self.ended |= io.read_finished();
        if self.ended && !self.received.is_multiple_of(request as u64) {
            let expected = self.received.next_multiple_of(request as u64);
            self.fault = self.fault.or(Some(Fault::WrongLength { got: self.received, expected }));
        }
        self.go_on(io);
    }

    fn on_writable(&mut self, _now: Instant, io: &mut dyn Stream) {
        self.go_on(io);
    }

    fn is_done(&self) -> bool {
        self.writer.is_finished()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{Both, Pipe};
    use proptest::prelude::*;

    fn exchange(sizes: &[u64], request: u64) -> Exchange {
        Exchange { objects: Objects::Each(sizes.into()), request }
    }

    /// A client's end, with the tickets of its host.
    struct Shared<'a>(Both<'a>, &'a mut u64);

    impl Stream for Shared<'_> {
        fn write(&mut self, data: Bytes) -> usize {
            self.0.write(data)
        }
        fn writable(&self) -> u64 {
            self.0.writable()
        }
        fn finish(&mut self) {
            self.0.finish();
        }
        fn read(&mut self) -> Option<Bytes> {
            self.0.read()
        }
        fn read_finished(&self) -> bool {
            self.0.read_finished()
        }
        fn take_ticket(&mut self) -> u64 {
            let ticket = *self.1;
            *self.1 += 1;
            ticket
        }
    }

    struct Line {
        client: RequestClient,
        server: ResponseServer,
        up: Pipe,
        down: Pipe,
    }

    impl Line {
        fn new(client: RequestClient, exchange: &Exchange, room: u64, per_write: usize) -> Self {
            let server = ResponseServer::new(exchange.clone());
            Self { client, server, up: Pipe::new(room, per_write), down: Pipe::new(room, per_write) }
        }

        /// One round of both ends. The client draws `tickets`.
        fn turn(&mut self, now: Instant, first: bool, tickets: &mut u64) {
            let io = &mut Shared(Both(&mut self.up, &mut self.down), tickets);
            if first {
                self.client.on_established(now, io);
            }
            self.client.on_readable(now, io);
            self.client.on_writable(now, io);
            let io = &mut Both(&mut self.down, &mut self.up);
            self.server.on_readable(now, io);
            self.server.on_writable(now, io);
        }

        fn is_done(&self) -> bool {
            assert_eq!((self.client.fault(), self.server.fault()), (None, None));
            self.client.is_done() && self.server.is_done()
        }
    }

    proptest! {
        #[test]
        fn connections_share_a_page_out(
            sizes in prop::collection::vec(1u64..100_000, 1..40),
            connections in 1usize..8,
            request in 8u64..3000,
            room in 1000u64..50_000,
            per_write in 3usize..70_000,
        ) {
            let exchange = exchange(&sizes, request);
            let line = |_| Line::new(RequestClient::sharing(exchange.clone()), &exchange, room, per_write);
            let mut lines: Vec<Line> = (0..connections).map(line).collect();
            let mut tickets = 0;
            for turn in 0..200_000 {
                lines.iter_mut().for_each(|line| line.turn(Instant::ZERO, turn == 0, &mut tickets));
                if lines.iter().all(Line::is_done) {
                    break;
                }
            }
            prop_assert!(lines.iter().all(Line::is_done));
            // Each object once, and each connection has found that there is no other one.
            prop_assert_eq!(tickets as usize, sizes.len() + connections);
            prop_assert_eq!(lines.iter().map(|line| line.client.chosen).sum::<u64>(), sizes.len() as u64);
            let received: u64 = lines.iter().map(|line| line.client.requests.reader.received()).sum();
            prop_assert_eq!(received, sizes.iter().sum::<u64>());
            // Every response is announced as one message.
            let mut messages: Vec<u64> = lines.iter().flat_map(|line| line.down.messages.clone()).collect();
            messages.sort_unstable();
            let mut sorted = sizes.clone();
            sorted.sort_unstable();
            prop_assert_eq!(messages, sorted);
        }
    }

    #[test]
    fn a_client_thinks_between_a_response_and_the_next_request() {
        let exchange = Exchange { objects: Objects::Same { size: 500, count: Some(2) }, request: 100 };
        let think = Duration::from_millis(30);
        let mut line = Line::new(RequestClient::new(exchange.clone(), think), &exchange, 10_000, 10_000);
        line.turn(Instant::ZERO, true, &mut 0);
        // The first response arrives at 5 ms: the second request is due at 35 ms and not before.
        let io = &mut Both(&mut line.up, &mut line.down);
        line.client.on_readable(Instant::from_millis(5), io);
        assert_eq!((line.client.next_wakeup(), line.up.held), (Some(Instant::from_millis(35)), 0));
        let io = &mut Both(&mut line.up, &mut line.down);
        line.client.on_wakeup(Instant::from_millis(35), io);
        assert_eq!((line.client.next_wakeup(), line.up.held), (None, 100));
        for _ in 0..3 {
            line.turn(Instant::from_millis(40), false, &mut 0);
        }
        // After the last response there is no think time.
        assert!(line.is_done());
    }

    #[test]
    fn a_request_is_one_piece_that_names_its_object() {
        let request = exchange(&[7, 8, 9], 100).request(2, 300);
        assert_eq!((request.len(), &request[..8]), (100, &[0, 0, 0, 0, 0, 0, 0, 2][..]));
        assert_eq!(pattern::mismatch(308, &request[8..]), None);
    }

    /// The fault that a server with one object finds in these bytes.
    fn verdict(requests: &[Bytes], end: bool) -> Option<Fault> {
        let mut server = ResponseServer::new(exchange(&[5000], 100));
        let (mut up, mut down) = (Pipe::new(u64::MAX, usize::MAX), Pipe::new(1000, usize::MAX));
        requests.iter().for_each(|request| {
            up.write(request.clone());
        });
        up.finished = end.into();
        server.on_readable(Instant::ZERO, &mut Both(&mut down, &mut up));
        server.fault()
    }

    #[test]
    fn a_server_reports_the_first_fault() {
        let exchange = exchange(&[5000], 100);
        let first = exchange.request(0, 0);
        assert_eq!(verdict(std::slice::from_ref(&first), true), None);
        assert_eq!(verdict(&[exchange.request(1, 0)], false), Some(Fault::WrongByte { offset: 0 }));
        assert_eq!(verdict(&[first.slice(..40)], false), None);
        assert_eq!(verdict(&[first.slice(..40)], true), Some(Fault::WrongLength { got: 40, expected: 100 }));
        let early = [first.clone(), exchange.request(0, 100)];
        assert_eq!(verdict(&early, false), Some(Fault::WrongLength { got: 200, expected: 100 }));
        let mut flipped = first.to_vec();
        flipped[50] ^= 1;
        assert_eq!(verdict(&[flipped.into()], false), Some(Fault::WrongByte { offset: 50 }));
    }

    #[test]
    fn a_client_reports_a_response_of_the_wrong_length() {
        let client = || RequestClient::new(exchange(&[500], 100), Duration::ZERO);
        for (len, end, expected) in [(500, true, None), (501, false, Some(501)), (499, true, Some(499))] {
            let (mut client, mut up, mut down) = (client(), Pipe::new(1000, 1000), Pipe::new(1000, 1000));
            client.on_established(Instant::ZERO, &mut Both(&mut up, &mut down));
            down.write(pattern::piece(0, len));
            down.finished = u32::from(end);
            client.on_readable(Instant::ZERO, &mut Both(&mut up, &mut down));
            assert_eq!(client.fault(), expected.map(|got| Fault::WrongLength { got, expected: 500 }));
        }
    }
}
