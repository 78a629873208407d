//! The files that single runs write: time series, events, captures, timelines of packets; and progress.

use crate::failure::Failure;
use crate::folder::Folder;
use crate::output::Output;
use crate::progress::Progress;
use anabranch_recorders::{PcapNg, SeriesRecorders, TimelineRecorder};
use anabranch_report::of_run::Series;
use anabranch_run::{CONNECTION, Labelled, Observer};
use anabranch_trace::{DecisionLog, Event, JsonLines, Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_wire::Packet;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where to write what. The first repetition of each row is written; of events, that of the first row alone.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Directory for time series.
    pub series: Option<PathBuf>,
    /// Directory for captures.
    pub captures: Option<PathBuf>,
    /// The hosts whose packets are captured.
    pub captured: &'static [Side],
    /// File for events.
    pub events: Option<PathBuf>,
    /// Directory for timelines of packets, and how many packets of the measured time to follow.
    pub timeline: Option<(PathBuf, usize)>,
    /// The connection that series and timelines follow.
    pub connection: ConnId,
    /// Begins the files' names.
    pub prefix: String,
}

impl Default for Wanted {
    fn default() -> Self {
        let (series, captures, events, timeline) = (None, None, None, None);
        let captured = &[Side::Client, Side::Server];
        Self { series, captures, captured, events, timeline, connection: CONNECTION, prefix: String::new() }
    }
}

impl Wanted {
    /// A file is written of the first repetition of this job's row.
    fn has_files_of(&self, job: &Labelled<'_>) -> bool {
        let of_every_row = self.series.is_some() || self.captures.is_some() || self.timeline.is_some();
        of_every_row || (self.events.is_some() && job.row == 0)
    }
}

/// Watches runs: their progress, and the wanted files.
pub struct Watch<'p> {
    wanted: Wanted,
    progress: &'p dyn Progress,
    /// Runs that are done, and those that are planned.
    runs: [AtomicUsize; 2],
    /// The file for events, until the first run takes it.
    events: Mutex<Option<File>>,
    /// The first file that could not be written.
    error: Mutex<Option<Failure>>,
}

impl<'p> Watch<'p> {
    /// Makes the directories and the file for events: what cannot be written at all is said before the runs.
    pub fn new(wanted: Wanted, progress: &'p dyn Progress) -> Result<Self, Failure> {
        let timeline = wanted.timeline.as_ref().map(|(folder, _)| folder);
        for folder in [wanted.series.as_ref(), wanted.captures.as_ref(), timeline].into_iter().flatten() {
            Folder::make(folder)?;
        }
        let events = wanted.events.as_deref().map(|file| Output::claim(file)?.begin()).transpose()?;
        Ok(Self { wanted, progress, runs: Default::default(), events: Mutex::new(events), error: Mutex::new(None) })
    }

    /// `after 3 of 9 runs`.
    pub fn progress_so_far(&self) -> String {
        let [done, planned] = self.runs.each_ref().map(|count| count.load(Ordering::Relaxed));
        format!("after {done} of {planned} runs")
    }

    /// Ends the progress; returns the file that could not be written, if any.
    #[must_use]
    pub fn finish(self) -> Option<Failure> {
        self.progress.end();
        self.error.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep<T>(&self, file: &Path, result: io::Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                self.error.lock().map(|mut slot| slot.get_or_insert(Failure::unwritable(file, &error)).exit_code())
            })
            .ok()
    }
}

impl Observer for Watch<'_> {
    fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        if job.repetition > 0 || !self.wanted.has_files_of(job) {
            return run(&mut ());
        }
        let name = |ending| format!("{}{}", self.wanted.prefix, file_name(job, ending));
        let place = |folder: &Option<PathBuf>, ending| folder.as_ref().map(|f| f.join(name(ending)));
        let events = if job.row == 0 { self.events.lock().ok().and_then(|mut file| file.take()) } else { None };
        // One file per host: a common one would have every packet twice.
        let captures = [(Side::Client, "client.pcapng"), (Side::Server, "server.pcapng")]
            .map(|(host, ending)| (host, place(&self.wanted.captures, ending)))
            .map(|(host, file)| (host, file.filter(|_| self.wanted.captured.contains(&host))));
        let series = place(&self.wanted.series, "csv");
        let timeline = self.wanted.timeline.as_ref().map(|(folder, n)| (folder.join(name("json")), *n));
        let paths: Vec<String> = job.job.scenario.topology.paths.iter().map(|path| path.name.clone()).collect();

        let way = job.job.scenario.direction().first();
        let create = |file: &PathBuf| self.keep(file, in_folder(file)).map(BufWriter::new);
        let mut files = Files {
            now: Instant::ZERO,
            series: series
                .is_some()
                .then(|| SeriesRecorders::new(self.wanted.connection, paths.len(), job.job.scenario.direction())),
            events: events.map(BufWriter::new).map(JsonLines::new),
            timeline: timeline.as_ref().map(|(_, limit)| {
                let from = Instant::ZERO + job.job.scenario.warmup;
                let (connection, limit) = (self.wanted.connection, *limit);
                let log = DecisionLog::new(connection, from, limit).of(way.sender());
                TimelineRecorder::new(connection, from, limit).sent(way).with_decisions(log)
            }),
            captures: captures.each_ref().map(|(host, file)| {
                let sink = create(file.as_ref()?)?;
                let capture = self.keep(file.as_ref()?, PcapNg::new(sink, paths.clone()))?;
                Some(capture.only(*host))
            }),
        };
        run(&mut files);
        if let (Some(file), Some(recorder)) = (&self.wanted.events, files.events) {
            self.keep(file, recorder.finish());
        }
        for ((_, file), recorder) in captures.iter().zip(files.captures) {
            if let (Some(file), Some(recorder)) = (file, recorder) {
                self.keep(file, recorder.finish());
            }
        }
        if let (Some(file), Some(recorder)) = (&series, files.series) {
            let series = Series::of(&recorder.finish(files.now), job.job);
            self.keep(file, in_folder(file).and_then(|file| series.write(file)));
        }
        if let (Some((file, _)), Some(recorder)) = (&timeline, files.timeline)
            && let Some(mut sink) = create(file)
        {
            let written = serde_json::to_writer(&mut sink, &recorder.finish(files.now, paths));
            self.keep(file, written.map_err(io::Error::from).and_then(|()| sink.flush()));
        }
    }

    fn progress(&self, done: usize, planned: usize) {
        for (count, now) in self.runs.iter().zip([done, planned]) {
            count.store(now, Ordering::Relaxed);
        }
        self.progress.advance(done, planned);
    }
}

/// A new file in a directory.
fn in_folder(file: &Path) -> io::Result<File> {
    let (folder, name) = Folder::around(file)?;
    folder.create(name)
}

/// The recorders of one run.
struct Files {
    now: Instant,
    series: Option<SeriesRecorders>,
    events: Option<JsonLines<BufWriter<File>>>,
    captures: [Option<PcapNg<BufWriter<File>>>; 2],
    timeline: Option<TimelineRecorder>,
}

impl Recorder for Files {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.now = self.now.max(now);
        self.series.record(now, origin, event);
        self.events.record(now, origin, event);
        self.timeline.record(now, origin, event);
    }

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        for recorder in self.captures.iter_mut().flatten() {
            recorder.packet(now, host, sent, path, packet);
        }
        self.timeline.packet(now, host, sent, path, packet);
    }

    fn decisions(&self) -> Option<DecisionLog> {
        self.timeline.decisions()
    }
}

fn file_name(job: &Labelled<'_>, ending: &str) -> String {
    format!(
        "{}.{ending}",
        file_stem(job.scheduler, job.congestion, job.job.seed, job.job.cell.iter().map(|(key, value)| (key, value)))
    )
}

/// `blest-olia-seed1-path.wlan.loss=1%`; in captures' names the host follows.
pub fn file_stem<K: Display, V: Display>(
    scheduler: &str,
    congestion: &str,
    seed: u64,
    cell: impl Iterator<Item = (K, V)>,
) -> String {
    let mut name = format!("{scheduler}-{congestion}-seed{seed}");
    cell.for_each(|(key, value)| name += &format!("-{key}={value}"));
    let plain = |c: char| if c.is_ascii_alphanumeric() || "+-._=%".contains(c) { c } else { '-' };
    name.chars().map(plain).collect()
}
