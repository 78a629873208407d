//! One source of an inference: its testbeds, their runs, and their answers to the claims.

use super::Request;
use super::making::Making;
use crate::failure::Failure;
use crate::input::{TEXT, read_within, why};
use crate::load::{Loaded, unusable};
use crate::papers::{self, UNSAID_CODE, mistaken};
use crate::runs_table::{Cells, Column};
use anabranch_reproduce::infer::{
    Drawn, Extent, Fitted, Inference, MOST_DRAWS, NamedReading, NoneNearer, Position, Ruler, Search, Subject, Tally,
    Unsaid, by_testbed, fit, read_measured, tally, values,
};
use anabranch_reproduce::{Item, Judged, Mistake, Testbed, baselines_in, judge, published, whole_in};
use anabranch_run::RunRecord;
use anabranch_scenario::{Diagnostic, Document, Override, Source};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Testbeds whose runs are held at a time.
const BATCH: usize = 100;

/// The reading that scenarios are.
const AS_WRITTEN: &str = "as written";

/// Seeds of the nearest testbed that show how much single runs vary.
const SEEDS: u32 = 6;

/// The source of an inference: a paper, or a file of the user's.
pub struct Study {
    /// Short name.
    name: String,
    /// The file of the unknowns.
    file: Source,
    repetitions: Option<u32>,
    unsaid: Unsaid,
    places: Vec<Place>,
}

/// An item with its scenario.
struct Place {
    item: Item,
    scenario: Source,
    /// Where the files are that the scenario names.
    folder: PathBuf,
    fitted: Fitted,
}

impl Study {
    /// The sources that a request names.
    ///
    /// # Errors
    /// A file cannot be read, or has mistakes; more testbeds are to be kept than drawn.
    pub fn find(request: &Request<'_>) -> Result<Vec<Self>, Failure> {
        let path = request.source;
        let mut studies = match path.is_file() {
            true => vec![Self::of_file(path)?],
            false => papers::find(path)?.iter().map(Self::of_paper).collect::<Result<_, _>>()?,
        };
        for study in &mut studies {
            let Extent { draws, keep, .. } = &mut study.unsaid.extent;
            let number =
                |given: Option<NonZeroUsize>| given.map(|count| u32::try_from(count.get()).unwrap_or(u32::MAX));
            *draws = number(request.draws).unwrap_or(*draws);
            *keep = number(request.keep).unwrap_or((*keep).min(*draws));
            if *keep > *draws || *draws > MOST_DRAWS {
                let message = format!("{keep} of {draws} testbeds cannot be kept");
                let help = format!("draw at most {MOST_DRAWS}, and keep at most as many as are drawn");
                return Err(Failure::unusable("anabranch::cli::usage", message, Some(help)));
            }
        }
        Ok(studies)
    }

    /// A user's file, which names its scenario.
    fn of_file(path: &Path) -> Result<Self, Failure> {
        let file = path.display().to_string();
        let text = read_within(TEXT, 0, path).map_err(|error| {
            Failure::unusable("anabranch::cli::unreadable", format!("cannot read {file}: {}", why(&error)), None)
        })?;
        let unsaid = read_measured(&text).map_err(|mistakes| mistaken(UNSAID_CODE, &file, &text, mistakes))?;
        let items = unsaid.measured.iter().map(|measured| measured.item());
        let beside = path.parent().unwrap_or(Path::new(""));
        let place = |item: Item| {
            let own = beside.join(&item.scenario);
            let loaded = Loaded::read(if own.is_file() { &own } else { Path::new(&item.scenario) }, Vec::new())?;
            Ok(Place { item, scenario: loaded.source, folder: beside.to_owned(), fitted: Fitted::default() })
        };
        let places = items.map(place).collect::<Result<_, Failure>>()?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, file: Source { name: file, text }, repetitions: None, unsaid, places }.fitted()
    }

    fn of_paper(source: &papers::Source) -> Result<Self, Failure> {
        let (unsaid, (file, text)) = (source.unsaid()?, source.unsaid_text()?);
        let items = unsaid.items(&source.paper).map_err(|mistakes| mistaken(UNSAID_CODE, &file, text, mistakes))?;
        let place = |item: Item| {
            let text = source.scenario(&item.scenario)?.to_owned();
            let scenario = Source { name: format!("{}/{}", source.folder, item.scenario), text };
            Ok(Place { item, scenario, folder: PathBuf::new(), fitted: Fitted::default() })
        };
        let places = items.into_iter().map(place).collect::<Result<_, Failure>>()?;
        let (name, repetitions) = (source.paper.key.clone(), source.paper.repetitions);
        let file = Source { name: file, text: text.to_owned() };
        Self { name, file, repetitions, unsaid, places }.fitted()
    }

    /// Finds the keys that each item has.
    fn fitted(mut self) -> Result<Self, Failure> {
        let fitted = {
            let mut reads: Vec<(&Item, Box<Reading<'_>>)> = Vec::new();
            for place in &self.places {
                place.diagnosed(&[]).map_err(unusable)?;
                reads.push((&place.item, Box::new(|set: &[Override]| place.diagnosed(set).map(|_| ()))));
            }
            let subjects: Vec<Subject<'_>> =
                reads.iter().map(|(item, read)| Subject { item: &item.id, rows: &item.rows, read }).collect();
            fit(&self.unsaid.unknowns, &subjects)
                .map_err(|mistakes| mistaken(UNSAID_CODE, &self.file.name, &self.file.text, mistakes))?
        };
        for place in &mut self.places {
            let own = fitted.iter().find(|fitted| fitted.item == place.item.id);
            place.fitted = own.cloned().unwrap_or_default();
        }
        Ok(self)
    }
}

/// Reads a scenario with some keys set.
type Reading<'a> = dyn Fn(&[Override]) -> Result<(), Vec<Diagnostic>> + 'a;

impl Place {
    fn diagnosed(&self, set: &[Override]) -> Result<Document, Vec<Diagnostic>> {
        Loaded::diagnosed(self.scenario.clone(), &self.folder, set.to_vec()).map(|loaded| loaded.document)
    }

    fn read(&self, set: Vec<Override>) -> Result<Document, Failure> {
        self.diagnosed(&set).map_err(unusable)
    }

    /// These draws, by their numbers, in this scenario.
    fn testbeds(&self, unsaid: &Unsaid, draws: &[(usize, &Position)]) -> Result<Vec<Testbed>, Failure> {
        let of = |(number, position): &(usize, &Position)| {
            let set = self.fitted.settings(&unsaid.unknowns, position);
            Testbed::of(&self.item, &(number + 1).to_string(), set).map_err(unusable)
        };
        draws.iter().map(of).collect()
    }
}

impl Study {
    /// The inference and its draws; `None` of a shard that lacks runs.
    pub(super) fn infer(&self, making: &Making<'_>) -> Result<Option<(Inference, Vec<Column>)>, Failure> {
        let anchors =
            || self.places.iter().flat_map(|place| place.item.anchors.iter().map(move |anchor| (place, anchor)));
        let mut search = Search::new(self.unsaid.extent, anchors().map(|(_, anchor)| published(anchor)).collect());
        while let Some(positions) = search.next(&self.unsaid.unknowns) {
            let Some(ours) = self.baselines(&positions, search.library.positions.len(), making)? else {
                return Ok(None);
            };
            search.add(positions, ours).map_err(|why| self.none_nearer(why))?;
        }
        let drawn =
            anchors().enumerate().map(|(n, (place, anchor))| Drawn::of(&search, n, &place.item, anchor)).collect();
        let mut inference = Inference::of(&self.name, &self.unsaid, &search, drawn);
        // A shard makes its part of both in one call.
        let readings = self.readings(&search, making)?;
        let claims = self.claims(&search, &inference.anchors, making)?;
        let (Some(readings), Some(claims)) = (readings, claims) else { return Ok(None) };
        let written = readings.iter().filter(|reading| reading.name == AS_WRITTEN);
        let ours: Vec<Option<f64>> = written.flat_map(|reading| reading.ours.iter().copied()).collect();
        inference.as_written = search.ruler.distance(&ours, &search.ruler.published);
        (inference.readings, inference.claims) = (readings, claims);
        inference.failed = making.driver.failed();
        let draws = self.draws(&search, &inference);
        Ok(Some((inference, draws)))
    }

    fn none_nearer(&self, why: NoneNearer) -> Failure {
        let (why, help) = match why {
            NoneNearer::NoValues => {
                ("no draw has a value for every anchor", "see that the transfers end, and that metrics apply")
            }
            NoneNearer::EquallyFar => ("all draws are equally far", "no unknown moves a baseline: give one that does"),
        };
        let at = self.unsaid.unknowns.first().map_or(0..0, |unknown| unknown.at.clone());
        let mistake = Mistake { at, message: format!("{}: {why}", self.name), help: Some(help.into()) };
        mistaken(UNSAID_CODE, &self.file.name, &self.file.text, vec![mistake])
    }

    /// The values of the baselines in each draw; the first has the number `from`.
    fn baselines(
        &self,
        positions: &[Position],
        from: usize,
        making: &Making<'_>,
    ) -> Result<Option<Vec<Vec<Option<f64>>>>, Failure> {
        let mut ours: Option<Vec<Vec<Option<f64>>>> = Some(Vec::new());
        let draws: Vec<(usize, &Position)> = (from..).zip(positions).collect();
        for draws in draws.chunks(BATCH) {
            let (mut plans, mut planned) = (Vec::new(), Vec::new());
            for place in &self.places {
                let testbeds = place.testbeds(&self.unsaid, draws)?;
                let repeat = self.unsaid.extent.repeat;
                let own = baselines_in(&place.item, &testbeds, repeat, &mut |set| place.read(set))?;
                planned.push((place, testbeds, own.len()));
                plans.extend(own);
            }
            let Some(results) = making.carry(&self.name, plans)? else {
                ours = None;
                continue;
            };
            let mut all = vec![Vec::new(); draws.len()];
            let mut results = results.iter();
            for (place, testbeds, plans) in &planned {
                let own = results.by_ref().take(*plans);
                let runs = by_testbed(testbeds, own.flat_map(|results| results.runs.iter()));
                let each = all.iter_mut().zip(testbeds).zip(&runs);
                each.for_each(|((own, testbed), runs)| own.extend(values(&place.item, testbed, runs)));
            }
            ours.iter_mut().for_each(|ours| ours.extend(all.iter().cloned()));
        }
        Ok(ours)
    }

    /// The named readings of each item, as points among the draws.
    fn readings(&self, search: &Search, making: &Making<'_>) -> Result<Option<Vec<NamedReading>>, Failure> {
        let mut found = Some(Vec::new());
        let mut first = 0;
        for place in &self.places {
            let item = &place.item;
            let own = first..first + item.anchors.len();
            first = own.end;
            let readings = item.readings.iter().filter(|reading| reading.open);
            let named = readings.map(|reading| (reading.name.as_str(), reading.set.clone()));
            let testbeds = std::iter::once((AS_WRITTEN, Vec::new()))
                .chain(named)
                .map(|(name, set)| Testbed::of(item, name, set).map_err(unusable))
                .collect::<Result<Vec<_>, _>>()?;
            if item.anchors.is_empty() {
                continue;
            }
            let plans = baselines_in(item, &testbeds, self.unsaid.extent.repeat, &mut |set| place.read(set))?;
            let Some(results) = making.carry(&self.name, plans)? else {
                found = None;
                continue;
            };
            let ruler = search.ruler.part(own.clone());
            let distances: Vec<Option<f64>> =
                search.library.ours.iter().map(|ours| ruler.distance(&ours[own.clone()], &ruler.published)).collect();
            let of = |(testbed, runs): (&Testbed, &Vec<_>)| reading(item, testbed, runs, (&ruler, &distances));
            let runs = results.iter().flat_map(|results| results.runs.iter());
            let points = testbeds.iter().zip(&by_testbed(&testbeds, runs)).map(of).collect::<Vec<_>>();
            found.iter_mut().for_each(|found| found.extend(points.iter().cloned()));
        }
        Ok(found)
    }

    /// The claims over the kept testbeds.
    fn claims(&self, search: &Search, anchors: &[Drawn], making: &Making<'_>) -> Result<Option<Vec<Tally>>, Failure> {
        let kept: Vec<(usize, &Position)> =
            search.kept().iter().map(|&draw| (draw, &search.library.positions[draw])).collect();
        let mut found = Some(Vec::new());
        for place in self.places.iter().filter(|place| !place.item.claims.is_empty()) {
            let nearest = place.judged(self, &kept[..kept.len().min(1)], SEEDS, making)?;
            let testbeds = place.judged(self, &kept, 1, making)?;
            let (Some(nearest), Some(testbeds)) = (nearest, testbeds) else {
                found = None;
                continue;
            };
            let outside = anchors.iter().filter(|anchor| anchor.item == place.item.id && anchor.outside);
            let outside: Vec<String> = outside.map(|anchor| anchor.text.clone()).collect();
            let repeated = nearest.first().map_or(&[][..], Vec::as_slice);
            let tallies = tally(&place.item, &testbeds, repeated, self.repetitions, &outside);
            found.iter_mut().for_each(|found| found.extend(tallies.iter().cloned()));
        }
        Ok(found)
    }

    /// A row for each draw: its values, what the baselines gave, how far they are, and whether it is kept.
    fn draws(&self, search: &Search, inference: &Inference) -> Vec<Column> {
        let library = &search.library;
        let (count, first) = (library.positions.len(), search.first());
        let column = |name: &str, cells: Cells| Column { name: name.to_owned(), cells };
        let mut columns = vec![
            column("testbed", Cells::Whole((1..=count as u64).collect())),
            column("round", Cells::Whole((0..count).map(|n| 1 + u64::from(n >= first)).collect())),
        ];
        columns.extend(self.unsaid.unknowns.iter().enumerate().map(|(n, unknown)| {
            let texts = library.positions.iter().map(|position| Some(unknown.prior.text(position[n]))).collect();
            column(&unknown.name, Cells::Text(texts))
        }));
        columns.extend(inference.anchors.iter().enumerate().map(|(n, anchor)| {
            let values = library.ours.iter().map(|ours| ours[n]).collect();
            column(&format!("{}: {}", anchor.item, anchor.text), Cells::Real(values))
        }));
        columns.push(column("distance", Cells::Real(search.ruler.distances(library))));
        columns.push(column("kept", Cells::Truth((0..count).map(|n| search.kept().contains(&n)).collect())));
        columns
    }
}

impl Place {
    /// The claims in each of these draws; `None` of a shard that lacks runs.
    fn judged(
        &self,
        study: &Study,
        draws: &[(usize, &Position)],
        repeat: u32,
        making: &Making<'_>,
    ) -> Result<Option<Vec<Vec<Judged>>>, Failure> {
        let mut all = Some(Vec::new());
        for draws in draws.chunks(BATCH) {
            let testbeds = self.testbeds(&study.unsaid, draws)?;
            let plans = whole_in(&self.item, &testbeds, repeat, &mut |set| self.read(set))?;
            let name = format!("{} {}", study.name, self.item.id);
            let Some(results) = making.carry(&name, plans)? else {
                all = None;
                continue;
            };
            let runs = by_testbed(&testbeds, results.iter().flat_map(|results| results.runs.iter()));
            let judged =
                |(testbed, runs): (&Testbed, &Vec<_>)| judge(&self.item.claims, runs, &self.item.rows, &testbed.rows);
            all.iter_mut().for_each(|all| all.extend(testbeds.iter().zip(&runs).map(judged)));
        }
        Ok(all)
    }
}

/// A reading as a point: `distances` are those of the draws over the same anchors.
fn reading(
    item: &Item,
    testbed: &Testbed,
    runs: &[RunRecord],
    (ruler, distances): (&Ruler, &[Option<f64>]),
) -> NamedReading {
    let ours = values(item, testbed, runs);
    let distance = ruler.distance(&ours, &ruler.published);
    let nearer = distances.iter().flatten().filter(|other| distance.is_none_or(|own| **other < own)).count();
    NamedReading { item: item.id.clone(), name: testbed.name.clone(), ours, distance, nearer }
}
