//! Video in segments, each at a rate that the player chooses.

use crate::abr::{Abr, AbrView};
use crate::request::Requests;
use crate::{Exchange, Fault, Ladder, Objects, Stream, Workload};
use anabranch_units::{Duration, Instant, Playback, PlaybackRule};

/// A video, and how a player keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoStream {
    /// Rates.
    pub ladder: Ladder,
    /// Segments, and when the player plays.
    pub rule: PlaybackRule,
    /// Most playing time that the player keeps; at least a segment.
    pub buffer: Duration,
    /// Live: how far behind the newest moment the player begins, at least a segment; whole segments count. `None` = all is there from the beginning.
    pub live: Option<Duration>,
}

impl VideoStream {
    /// The server's objects: each segment at each rate of the ladder; `request` bytes request one.
    pub fn exchange(&self, request: u64) -> Exchange {
        let sizes = self.ladder.rates().iter().map(|rate| rate.bytes_in(self.rule.segment).max(1));
        Exchange { objects: Objects::Segments { sizes: sizes.collect(), count: self.rule.count }, request }
    }

    /// Most playing time that can be in the buffer, `position` being played, so long after the beginning: of a live video at most what has
    /// appeared and was not played.
    fn capacity(&self, since: Duration, position: Duration) -> Duration {
        let not_played = |there: Duration| (there + since).saturating_sub(position);
        self.there_at_first().map_or(self.buffer, |there| not_played(there).min(self.buffer)).max(self.rule.segment)
    }

    /// Live: playing time of the segments that are there when the player begins.
    pub fn there_at_first(&self) -> Option<Duration> {
        let segment = self.rule.segment;
        self.live.map(|live| segment * (live.as_nanos() / segment.as_nanos().max(1)))
    }

    /// When segment `number` appears, after the player's beginning.
    fn appears(&self, number: u64) -> Duration {
        let there = self.there_at_first();
        there.map_or(Duration::ZERO, |there| (self.rule.segment * (number + 1)).saturating_sub(there))
    }
}

/// A player: requests a segment when the last one has come, the next one exists, and the buffer has room for it.
#[derive(Debug)]
pub struct VideoClient {
    video: VideoStream,
    abr: Box<dyn Abr>,
    playback: Playback,
    requests: Requests,
    /// When the player began.
    begun: Instant,
    /// Segments requested, and when and at which place of the ladder the last.
    requested: u64,
    requested_at: Instant,
    place: Option<usize>,
    /// When the next segment is due.
    due: Option<Instant>,
    finished: bool,
}

impl VideoClient {
    /// A player of `video` that chooses by `abr`; `request` bytes request a segment.
    pub fn new(video: VideoStream, abr: Box<dyn Abr>, request: u64) -> Self {
        Self {
            playback: Playback::new(video.rule),
            requests: Requests::new(video.exchange(request)),
            video,
            abr,
            begun: Instant::ZERO,
            requested: 0,
            requested_at: Instant::ZERO,
            place: None,
            due: None,
            finished: false,
        }
    }

    /// No segment is under way: when the next is to be requested, or the end.
    fn plan(&mut self, now: Instant, io: &mut dyn Stream) {
        if self.video.rule.count.is_some_and(|count| self.requested >= count) {
            self.finished = true;
            io.finish();
            return;
        }
        self.playback.advance(now);
        // Yin et al., SIGCOMM 2015, eq. 4: Δt = (B + L − Bmax)₊.
        let room = self.playback.falls_to(self.video.buffer.saturating_sub(self.video.rule.segment));
        let appears = self.begun + self.video.appears(self.requested);
        // A player that waits has room by the rules of scenarios; else it would wait for ever.
        self.due = Some(room.unwrap_or(now).max(appears).max(now));
    }

    fn go_on(&mut self, now: Instant, io: &mut dyn Stream) {
        if self.due.take_if(|due| *due <= now).is_none() {
            return self.requests.go_on(io);
        }
        self.playback.advance(now);
        let ladder = self.video.ladder.rates();
        let (level, last) = (self.playback.level(), self.place);
        let capacity = self.video.capacity(now.since(self.begun), self.playback.position());
        let segment = self.video.rule.segment;
        let choice = self.abr.choose(&AbrView { ladder, segment, level, capacity, last });
        let place = choice.min(ladder.len() - 1);
        let number = self.requested * ladder.len() as u64 + place as u64;
        io.request_segment(ladder[place], self.requests.size(number).unwrap_or(0));
        (self.place, self.requested_at) = (Some(place), now);
        self.requested += 1;
        self.requests.request(number, io);
    }
}

impl Workload for VideoClient {
    fn on_established(&mut self, now: Instant, io: &mut dyn Stream) {
        self.begun = now;
        self.plan(now, io);
        self.go_on(now, io);
    }

    fn on_writable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn on_readable(&mut self, now: Instant, io: &mut dyn Stream) {
        if !self.requests.read(io) {
            return;
        }
        self.playback.on_segment(now);
        if let Some(place) = self.place {
            let bytes = self.requests.size(place as u64).unwrap_or(0);
            self.abr.on_segment(bytes, now.since(self.requested_at));
        }
        self.plan(now, io);
        self.go_on(now, io);
    }

    fn on_wakeup(&mut self, now: Instant, io: &mut dyn Stream) {
        self.go_on(now, io);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.due
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::registry;
    use crate::pipe::{Both, Pipe};
    use crate::{ResponseServer, pattern};
    use anabranch_units::Rate;
    use bytes::Bytes;
    use proptest::prelude::*;

    /// A client's end that notes which segments are requested, and when.
    struct Noted<'a>(Both<'a>, Instant, &'a mut Vec<(u64, u64)>);

    impl Stream for Noted<'_> {
        fn write(&mut self, data: Bytes) -> usize {
            self.0.write(data)
        }
        fn request_segment(&mut self, rate: Rate, size: u64) {
            assert_eq!(size, rate.bytes_in(Duration::from_secs(4)));
            self.2.push((self.1.since(Instant::ZERO).as_millis(), rate.as_bps() / 1000));
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
    }

    fn stream(count: Option<u64>, buffer: u64, live: Option<u64>) -> VideoStream {
        let secs = Duration::from_secs;
        let rule = PlaybackRule { segment: secs(4), start_at: secs(4), resume_at: secs(4), count };
        VideoStream { ladder: Ladder::default(), rule, buffer: secs(buffer), live: live.map(secs) }
    }

    /// Times in ms and rates in kbit/s of the segments that a player requests in `seconds`, over a network that brings each at once.
    fn requested(video: VideoStream, abr: &str, given: &[(String, f64)], seconds: u64) -> Vec<(u64, u64)> {
        let exchange = video.exchange(100);
        let mut client = VideoClient::new(video, registry::find(abr).unwrap().build(given), 100);
        let mut server = ResponseServer::new(exchange);
        let (mut up, mut down) = (Pipe::new(1000, 7), Pipe::new(10 << 20, 70_000));
        let (mut noted, mut now) = (Vec::new(), Instant::ZERO);
        client.on_established(now, &mut Noted(Both(&mut up, &mut down), now, &mut noted));
        while now <= Instant::from_millis(seconds * 1000) && !client.is_done() {
            for _ in 0..100 {
                let io = &mut Noted(Both(&mut up, &mut down), now, &mut noted);
                client.on_writable(now, io);
                client.on_readable(now, io);
                let io = &mut Both(&mut down, &mut up);
                server.on_readable(now, io);
                server.on_writable(now, io);
            }
            assert_eq!((client.fault(), server.fault()), (None, None));
            now = client.next_wakeup().unwrap_or(now.next());
        }
        noted
    }

    fn fixed(rung: f64) -> [(String, f64); 1] {
        [("rung".into(), rung)]
    }

    /// A buffer of 12 s takes three segments at once; the next when 4 s are played.
    #[test]
    fn a_full_buffer_takes_a_segment_per_segment_played() {
        let all = requested(stream(Some(6), 12, None), "fixed", &fixed(2.0), 100);
        assert_eq!(all, [(0, 750), (0, 750), (0, 750), (4000, 750), (8000, 750), (12_000, 750)]);
    }

    /// 10 s behind: two segments of 4 s are there at the beginning, one more every 4 s; the buffer has room for them.
    #[test]
    fn live_segments_appear_one_by_one() {
        let all = requested(stream(None, 30, Some(10)), "fixed", &fixed(1.0), 13);
        assert_eq!(all, [(0, 300), (0, 300), (4000, 300), (8000, 300), (12_000, 300)]);
    }

    /// In a buffer of 30 s at most 26 s are there at a request. With V = 6.5/(2.6626 + 5) = 0.84828 and levels of 0, 1, 2 … segments, BOLA
    /// leaves 300 kbit/s when (V·5 − Q)/300 < (V·(0.9163 + 5) − Q)/750: Q > 3.7232 segments, so after four.
    #[test]
    fn an_empty_buffer_asks_for_the_lowest_rate_first() {
        let all = requested(stream(None, 30, None), "bola", &[], 3);
        assert_eq!(all[..5].iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [300, 300, 300, 300, 750]);
    }

    proptest! {
        /// Spiteri et al., theorem 1, as a player has it: by no rule and over no network does the buffer exceed its size; and no player waits for ever.
        #[test]
        fn no_rule_fills_the_buffer_beyond_its_size(
            times in prop::collection::vec(1u64..20_000, 1..40),
            (buffer, live) in (4u64..60, prop::option::of(4u64..40)),
            (rule, start) in (0..registry::all().len(), 1u64..15),
        ) {
            let mut video = stream(Some(times.len() as u64), buffer, live);
            let segment = video.rule.segment;
            let capacity = video.buffer.max(segment);
            // As a scenario has it: no more than the whole segments that the buffer has room for.
            video.rule.start_at = (segment * start).min(segment * (buffer * 1_000_000_000 / segment.as_nanos()).max(1));
            let mut client = VideoClient::new(video, registry::all()[rule].build(&[]), 100);
            let (mut up, mut down) = (Pipe::new(1 << 20, 1 << 20), Pipe::new(10 << 20, 1 << 20));
            let (mut noted, mut now, mut sent) = (Vec::new(), Instant::ZERO, 0);
            client.on_established(now, &mut Noted(Both(&mut up, &mut down), now, &mut noted));
            for (n, time) in times.iter().enumerate() {
                while noted.len() <= n {
                    now = client.next_wakeup().expect("a player that waits has a time");
                    client.on_wakeup(now, &mut Noted(Both(&mut up, &mut down), now, &mut noted));
                }
                // The segment comes that was requested; its rate is in kbit/s.
                now += Duration::from_millis(*time);
                let end = sent + noted[n].1 * 500;
                while sent < end {
                    let piece = pattern::piece(sent, (end - sent).min(1 << 17) as usize);
                    sent += down.write(piece) as u64;
                }
                client.on_readable(now, &mut Noted(Both(&mut up, &mut down), now, &mut noted));
                prop_assert_eq!(client.fault(), None);
                prop_assert!(client.playback.level() <= capacity, "{:?}", client.playback);
            }
            prop_assert!(client.is_served() && up.finished == 1);
        }
    }
}
