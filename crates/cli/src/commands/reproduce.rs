//! `anabranch reproduce`

use crate::args::{ListFormat, ReproduceArguments};
use crate::artifacts::{Machine, command_line};
use crate::drivers::Drivers;
use crate::failure::{Failure, Salvage};
use crate::folder::Folder;
use crate::kept::Kept;
use crate::load::Loaded;
use crate::marked::Marked;
use crate::number::Repetitions;
use crate::opener::Opener;
use crate::out_folder::{OutFolder, Owner};
use crate::outcome::Outcome;
use crate::papers::{self, Source};
use crate::results_folder::{self, PAGE, make_report};
use crate::runs_csv::runs_csv;
use crate::stage::{Carried, Stage, carry_out};
use crate::terminal::text_width;
use crate::watch::Wanted;
use anabranch_report::of_reproduction::{
    self, Around, CLAIMS_CSV, claims_csv, picture, picture_name, screens_markdown, summary_markdown, text,
};
use anabranch_reproduce::{Asked, Item, PaperOutcome, Part, Ran, Reproduction, conclude, example, parts, weigh};
use anabranch_run::{Plan, Results};
use anabranch_scenario::Override;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Packets of a run that its report shows.
const PACKETS: usize = 2000;

/// An item with what it runs and where its runs are kept.
struct Work<'a> {
    item: &'a Item,
    scenario: &'a str,
    parts: Vec<Part<'a>>,
    /// The runs whose packets are shown.
    example: Option<Plan>,
    kept: &'a Kept<'a>,
    /// `blest-table4`.
    name: String,
}

/// Runs papers, or an item of one.
pub fn reproduce(arguments: &ReproduceArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let papers = papers::find(&arguments.paper)?;
    // Said before the work, not after it.
    let targets = arguments.update.iter().map(|file| Marked::read(file, &[SUMMARY, CLAIMS]));
    let targets = targets.collect::<Result<Vec<_>, Failure>>()?;
    let opener = arguments.open.then(Opener::find).transpose()?;
    let items: Vec<Vec<&Item>> = papers.iter().map(|paper| chosen(paper, arguments)).collect::<Result<_, _>>()?;
    let out = OutFolder::claim(&arguments.out, &Owner::Reproduction, arguments.force)?;
    let journals = Journals::open(arguments, drivers)?;
    let mut works: Vec<Vec<Work<'_>>> = Vec::new();
    for (source, items) in papers.iter().zip(items) {
        works.push(items.into_iter().map(|item| work(source, item, arguments, &journals)).collect::<Result<_, _>>()?);
    }
    let begun = Instant::now();
    let (ran, mut wrong) = run(&works, arguments)?;
    wrong.extend(journals.failures());
    let whole = ran.len() == works.iter().flatten().count();
    let mut found = Reproduced::of(&ran, &papers, &works, arguments.quick);
    let mut last = INCOMPLETE.to_owned();
    if whole {
        for work in works.iter().flatten() {
            wrong.extend(work.follow_packets(out.timeline(), drivers)?);
        }
        match found.write(out, begun.elapsed()) {
            Ok(page) => {
                wrong.extend(opener.and_then(|opener| opener.open(&page).err()));
                last = format!("The report: {}", page.display());
            }
            Err(failure) => {
                wrong.push(failure);
                last = "The report could not be written.".into();
            }
        }
        let tables = |name: &str| match name {
            SUMMARY => summary_markdown(&found.reproduction),
            _ => screens_markdown(&found.reproduction),
        };
        for target in &targets {
            wrong.extend(target.write(tables).err());
            wrong.extend(
                target
                    .has(CLAIMS)
                    .then(|| Folder::make(target.folder()).and_then(|folder| found.write_beside(&folder)))
                    .and_then(Result::err),
            );
        }
    } else {
        found.reproduction.papers.retain(|paper| !paper.items.is_empty());
    }
    let nothing = found.reproduction.papers.is_empty();
    let output = match arguments.format {
        _ if nothing => String::new(),
        ListFormat::Json => found.json(),
        ListFormat::Table => format!("{}\n{last}\n", text(&found.reproduction, text_width())),
    };
    Ok(Outcome::new(output, wrong))
}

/// The runs of an item: as written, then of each reading.
struct ItemRuns {
    main: Results,
    readings: Vec<ReadingRuns>,
}

/// The runs of one reading.
#[derive(Default)]
struct ReadingRuns {
    baselines: Option<Results>,
    whole: Option<Results>,
}

/// Runs every item as written and the baselines of its readings; then, wholly, the readings that these admit. Answers for the
/// items that are finished, from the first on.
fn run(works: &[Vec<Work<'_>>], arguments: &ReproduceArguments) -> Result<(Vec<ItemRuns>, Vec<Failure>), Failure> {
    let works: Vec<&Work<'_>> = works.iter().flatten().collect();
    let stages: Vec<Stage<'_>> = works.iter().flat_map(|work| work.first(arguments.jobs)).collect();
    let Carried { results, mut wrong, .. } = carry_out(&stages, Wanted::default())?;
    let mut results = results.into_iter();
    let mut ran: Vec<ItemRuns> = works.iter().map_while(|work| work.take_first(&mut results)).collect();
    let further: Vec<Vec<usize>> =
        works.iter().zip(&ran).map(|(work, ran)| work.further(ran, arguments.readings)).collect();
    let stages = works.iter().zip(&further).flat_map(|(work, further)| work.whole(further, arguments.jobs));
    if ran.len() < works.len() {
        ran.truncate(further.iter().take_while(|further| further.is_empty()).count());
        return Ok((ran, wrong));
    }
    let carried = carry_out(&stages.collect::<Vec<_>>(), Wanted::default())?;
    wrong.extend(carried.wrong);
    let mut results = carried.results.into_iter();
    let mut done = 0;
    for (ran, further) in ran.iter_mut().zip(&further) {
        for &n in further {
            ran.readings[n].whole = results.next();
        }
        if further.iter().any(|&n| ran.readings[n].whole.is_none()) {
            break;
        }
        done += 1;
    }
    ran.truncate(done);
    Ok((ran, wrong))
}

/// The last line where items are missing.
const INCOMPLETE: &str = "Incomplete: the other items were not finished; nothing is written.";

/// The outcomes of finished items.
struct Reproduced {
    reproduction: Reproduction,
    /// The runs of each item: its name and a table.
    runs: Vec<(String, String)>,
    seeds: BTreeSet<u64>,
}

impl Reproduced {
    /// `ran` are the first of `works`, perhaps all.
    fn of(ran: &[ItemRuns], papers: &[Source], works: &[Vec<Work<'_>>], quick: bool) -> Self {
        let (mut ran, mut runs, mut seeds) = (ran.iter(), Vec::new(), BTreeSet::new());
        let mut outcomes = Vec::new();
        for (source, works) in papers.iter().zip(works) {
            let mut items = Vec::new();
            for (work, own) in works.iter().zip(ran.by_ref().take(works.len())) {
                seeds.extend(own.main.runs.seeds());
                runs.push((work.name.clone(), runs_csv(&own.main)));
                let readings: Vec<Ran<'_>> = own.readings.iter().map(ReadingRuns::ran).collect();
                items.push(conclude(work.item, work.scenario, &own.main, &readings));
            }
            outcomes.push(PaperOutcome::new(&source.paper, items));
        }
        let anabranch = env!("CARGO_PKG_VERSION").to_owned();
        Self { reproduction: Reproduction { anabranch, quick, papers: outcomes }, runs, seeds }
    }

    /// The claims in every reading, as CSV and pictures, into `folder`.
    fn write_beside(&self, folder: &Folder) -> Result<(), Failure> {
        folder.write(CLAIMS_CSV, claims_csv(&self.reproduction))?;
        self.reproduction.papers.iter().try_for_each(|paper| folder.write(picture_name(paper), picture(paper)))
    }

    fn json(&self) -> String {
        serde_json::to_string_pretty(&self.reproduction).unwrap_or_default() + "\n"
    }

    /// Writes all and the report, whose page it names. The work took `wall_time`.
    fn write(&self, out: OutFolder, wall_time: Duration) -> Result<PathBuf, Failure> {
        let beside = Folder::make(out.beside())?;
        let runs = beside.make_inner("runs")?;
        self.runs.iter().try_for_each(|(name, table)| runs.write(format!("{name}.csv"), table))?;
        beside.write("reproduction.json", self.json())?;
        self.write_beside(&beside)?;
        let around = around(self.seeds.iter().copied().collect(), wall_time);
        let report = of_reproduction::report(&self.reproduction, around);
        // Strings and finite numbers only: this cannot fail.
        beside.write("report.json", serde_json::to_string(&report).unwrap_or_default() + "\n")?;
        make_report(out.beside(), None)?;
        Ok(out.take()?.join(PAGE))
    }
}

/// How the runs came about, which took `wall_time`.
fn around(seeds: Vec<u64>, wall_time: Duration) -> Around {
    let command = command_line().join(" ");
    let wall_time = format!("{:.1} s, without runs that were kept from before", wall_time.as_secs_f64());
    let settings = [("command", command), ("wall time", wall_time), ("machine", Machine::here().to_string())];
    Around {
        made_by: results_folder::made_by(),
        settings: settings.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        seeds,
        schedulers: results_folder::scheduler_names(),
    }
}

/// The places for tables: the verdicts of each paper counted, and every claim.
const SUMMARY: &str = "reproduction summary";
const CLAIMS: &str = "reproduction";

/// The item that is named, or all that may be run.
fn chosen<'a>(source: &'a Source, arguments: &ReproduceArguments) -> Result<Vec<&'a Item>, Failure> {
    let Some(id) = &arguments.item else {
        return Ok(source.paper.items.iter().filter(|item| arguments.live || !item.live).collect());
    };
    if papers::are_all(&arguments.paper) {
        let help = format!("name the paper: anabranch reproduce PAPER {id}");
        return Err(Failure::unusable("anabranch::cli::usage", "an item belongs to one paper", Some(help)));
    }
    let item = source.item(id)?;
    if item.live && !arguments.live {
        let message = format!("`{id}` has a kernel at the receiving end and runs in real time");
        let help = format!("anabranch reproduce {} {id} --live", arguments.paper.display());
        return Err(Failure::unusable("anabranch::cli::usage", message, Some(help)));
    }
    Ok(vec![item])
}

/// Where the runs are kept, those of all items together: some items share runs.
struct Journals<'a> {
    virtual_time: Kept<'a>,
    /// The journal of live items, if these may run.
    real_time: Option<Kept<'a>>,
}

impl<'a> Journals<'a> {
    fn open(arguments: &ReproduceArguments, drivers: &Drivers<'a>) -> Result<Self, Failure> {
        let real_time = || Kept::in_folder(&arguments.out, drivers.real_time, true);
        let virtual_time = Kept::in_folder(&arguments.out, drivers.virtual_time, false)?;
        Ok(Self { virtual_time, real_time: arguments.live.then(real_time).transpose()? })
    }

    fn of(&self, item: &Item) -> &Kept<'a> {
        self.real_time.as_ref().filter(|_| item.live).unwrap_or(&self.virtual_time)
    }

    fn failures(&self) -> impl Iterator<Item = Failure> {
        std::iter::once(&self.virtual_time).chain(&self.real_time).filter_map(Kept::failure)
    }
}

fn work<'a>(
    source: &'a Source,
    item: &'a Item,
    arguments: &ReproduceArguments,
    journals: &'a Journals<'_>,
) -> Result<Work<'a>, Failure> {
    let asked = Asked {
        quick: arguments.quick,
        auto: arguments.repeat == Some(Repetitions::Auto),
        overrides: match arguments.repeat {
            Some(Repetitions::Count(count)) => vec![Override::new("--repeat", "repeat", count.to_string())],
            _ => Vec::new(),
        },
    };
    let scenario = source.scenario(&item.scenario)?;
    let file = format!("{}/{}", source.folder, item.scenario);
    let mut read = |overrides| Loaded::given(&file, scenario, overrides).map(|loaded| loaded.document);
    let parts = parts(item, &asked, &mut read)?;
    let example = example(item, &asked, &mut read)?;
    let name = format!("{}-{}", source.paper.key, item.id);
    Ok(Work { item, scenario, parts, example, kept: journals.of(item), name })
}

impl Work<'_> {
    /// Runs what is shown packet by packet: kept outcomes have no packets. Says what went wrong; the verdicts do not need it.
    fn follow_packets(&self, folder: PathBuf, drivers: &Drivers<'_>) -> Result<Vec<Failure>, Failure> {
        let Some(plan) = self.example.clone() else { return Ok(Vec::new()) };
        let timeline = Some((folder, PACKETS));
        let wanted = Wanted { timeline, prefix: format!("{}-", self.name), ..Wanted::default() };
        let (driver, name) = (drivers.virtual_time, format!("{}: ", self.name));
        let stage =
            Stage { plan, driver, real_time: false, jobs: None, name, kept: Salvage::Kept, folder: None, order: None };
        Ok(carry_out(&[stage], wanted)?.wrong)
    }

    /// As written, and the baselines of the readings.
    fn first(&self, jobs: Option<NonZeroUsize>) -> Vec<Stage<'_>> {
        let main = self.parts.first().map(|part| &part.whole);
        let baselines = self.parts.iter().skip(1).filter_map(|part| part.baselines.as_ref());
        main.into_iter().chain(baselines).map(|plan| self.stage(plan, jobs)).collect()
    }

    /// The results of the stages of `first`, from the next of `results`; `None` if some are missing.
    fn take_first(&self, results: &mut impl Iterator<Item = Results>) -> Option<ItemRuns> {
        let main = results.next()?;
        let mut readings = Vec::new();
        for part in &self.parts[1..] {
            let baselines = match part.baselines {
                Some(_) => Some(results.next()?),
                None => None,
            };
            readings.push(ReadingRuns { baselines, whole: None });
        }
        Some(ItemRuns { main, readings })
    }

    /// The readings that are to be run wholly, by their places: all, or those that are admissible.
    fn further(&self, ran: &ItemRuns, all: bool) -> Vec<usize> {
        let readings = ran.readings.iter().map(|reading| reading.ran().runs());
        let runs: Vec<_> = std::iter::once(Some(ran.main.runs.to_vec())).chain(readings).collect();
        let weighed = weigh(self.item, &runs.iter().map(Option::as_deref).collect::<Vec<_>>());
        (0..ran.readings.len()).filter(|n| all || weighed[n + 1].admissible).collect()
    }

    /// These readings, every row.
    fn whole(&self, readings: &[usize], jobs: Option<NonZeroUsize>) -> Vec<Stage<'_>> {
        readings.iter().map(|n| self.stage(&self.parts[n + 1].whole, jobs)).collect()
    }

    fn stage(&self, plan: &Plan, jobs: Option<NonZeroUsize>) -> Stage<'_> {
        Stage {
            plan: plan.clone(),
            driver: self.kept,
            real_time: self.item.live,
            // Runs that follow the clock disturb each other where they share the machine.
            jobs: if self.item.live { NonZeroUsize::new(1) } else { jobs },
            name: format!("{}: ", self.name),
            kept: Salvage::Kept,
            folder: None,
            order: None,
        }
    }
}

impl ReadingRuns {
    fn ran(&self) -> Ran<'_> {
        Ran { baselines: self.baselines.as_ref(), whole: self.whole.as_ref() }
    }
}
