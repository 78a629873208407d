//! A call's frames: speech, and the pictures of a camera.

use anabranch_units::{Duration, FramePattern, Rate, Rng};

/// Time from one frame of speech to the next: Opus's default (RFC 6716 §2.1.4).
const AUDIO: Duration = Duration::from_millis(20);
const AUDIO_PER_SECOND: u64 = 50;

/// Frames over which a key frame's surplus is made up for, itself included: K_d of RFC 8593 §5.2.
const BURST: u32 = 8;
/// A key frame ÷ mean frame: K_B = 13.5 KB over B0 = 4170 bytes, of 720p at 30 frames per second (RFC 8593, table 1).
const KEY: f64 = 13_500.0 / 4_170.0;
/// Parameter of the Laplace distribution of other frames' relative deviation: SCALE_B (RFC 8593 §5.3, table 1).
const SCALE: f64 = 0.15;

/// One end's speech and pictures, at constant rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Payload of speech.
    pub audio: Rate,
    /// Pictures, if there are any.
    pub video: Option<Video>,
}

/// Pictures of a camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// Mean payload.
    pub rate: Rate,
    /// Frames per second; at least 1.
    pub frame_rate: u32,
    /// From a key frame to the next, in frames; at least 8.
    pub key_every: u32,
}

impl Call {
    /// Frames of both, with sizes drawn from `rng`; of frames that are due together, speech comes first. The draws repeat with the pattern.
    pub fn frames(&self, rng: &mut Rng) -> FramePattern {
        let Some(video) = self.video else {
            return FramePattern::steady(self.audio.bytes_in(AUDIO), AUDIO);
        };
        let (rate, every) = (u64::from(video.frame_rate.max(1)), u64::from(video.key_every.max(BURST)));
        // The least number of groups of pictures that last a whole number of frames of speech.
        let groups = rate / greatest_common_divisor(rate, AUDIO_PER_SECOND * every);
        let speech = AUDIO_PER_SECOND * groups * every / rate;
        let spoken = (0..speech).map(|n| (AUDIO * n, self.audio.bytes_in(AUDIO)));
        let seen = (0..groups * every).map(|n| {
            let at = Duration::from_nanos(n * 1_000_000_000 / rate);
            (at, video.size((n % every) as u32, rng))
        });
        let mut frames: Vec<(Duration, u64)> = spoken.chain(seen).collect();
        frames.sort_by_key(|(at, _)| *at);
        FramePattern::new(AUDIO * speech, frames)
    }
}

impl Video {
    /// Bytes of the frame that is the `n`th after a key frame. RFC 8593 has its burst where the encoder changes its rate; here each key
    /// frame is one.
    fn size(&self, n: u32, rng: &mut Rng) -> u64 {
        let mean = self.rate.as_bps() as f64 / 8.0 / f64::from(self.frame_rate.max(1));
        let of_mean = match n {
            0 => KEY,
            n if n < BURST => (f64::from(BURST) - KEY) / f64::from(BURST - 1),
            _ => 1.0 + if rng.chance(0.5) { SCALE } else { -SCALE } * rng.exponential(),
        };
        ((mean * of_mean) as u64).max(1)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        audio: Rate::from_bps(32_000),
        video: Some(Video { rate: Rate::from_bps(1_000_000), frame_rate: 30, key_every: 300 }),
    };

    fn frames(call: Call) -> Vec<(u64, u64)> {
        let pattern = call.frames(&mut Rng::stream(1, "call"));
        (0..800).map(|n| (pattern.at(n).as_nanos(), pattern.size(n))).collect()
    }

    #[test]
    fn speech_alone_is_a_frame_of_80_bytes_every_20_ms() {
        let pattern = Call { video: None, ..CALL }.frames(&mut Rng::stream(1, "call"));
        assert_eq!((pattern.at(3), pattern.size(3)), (Duration::from_millis(60), 80));
    }

    /// 10 s: 500 frames of speech and 300 pictures, of 1 Mbit/s within what 292 draws allow: 0.15 · √2 / √292 = 1.2 % as standard error.
    #[test]
    fn ten_seconds_have_the_rates_asked_for() {
        let all = frames(CALL);
        let (speech, pictures): (Vec<_>, Vec<_>) = all.iter().partition(|(_, size)| *size == 80);
        assert_eq!((speech.len(), pictures.len()), (500, 300));
        assert!(all.is_sorted_by_key(|(at, _)| *at) && all[0] == (0, 80));
        let bits = pictures.iter().map(|(_, size)| size * 8).sum::<u64>() as f64;
        assert!((bits / 10e6 - 1.0).abs() < 0.05, "{bits}");
        // 4166.7 bytes on average: 13,489 and seven times 2,834, then around the mean.
        let sizes: Vec<u64> = pictures.iter().map(|(_, size)| *size).collect();
        assert_eq!(
            sizes[..9].iter().map(|size| size / 10).collect::<Vec<_>>()[..8],
            [1348, 283, 283, 283, 283, 283, 283, 283]
        );
        let distinct: std::collections::BTreeSet<_> = sizes[8..].iter().collect();
        assert!(distinct.len() > 200);
        let far = sizes[8..].iter().filter(|size| (**size as f64 / 4166.7 - 1.0).abs() > 0.15).count();
        // A share of 1/e lies beyond the scale.
        assert!((far as f64 / 292.0 - 0.368).abs() < 0.1, "{far}");
    }

    #[test]
    fn a_pattern_ends_where_both_rows_of_frames_do() {
        // 24 frames per second, a key frame every 10: a group lasts 20.83 frames of speech; six of them last 2.5 s.
        let video = Video { rate: Rate::from_bps(500_000), frame_rate: 24, key_every: 10 };
        let pattern = Call { video: Some(video), ..CALL }.frames(&mut Rng::stream(1, "call"));
        let each = 60 + 125;
        assert_eq!(pattern.at(each), Duration::from_millis(2500));
        assert_eq!(pattern.size(each + 1), pattern.size(1));
    }
}
