//! `arq`, `aggregate`, `wake`, `slots`: the layers under a path's link.

use super::fields::{Fields, Pair};
use super::jitter::Order;
use super::path::Way;
use super::value;
use crate::diagnostic::Code;
use crate::keys::{Form, Key, Section};
use crate::notation::{Notation, POSITIVE_TIME, PROBABILITY, TIME, integer, word};
use crate::row::{Row, inline};
use crate::tree::{Node, Report};
use anabranch_network::{ArqSpec, RadioChange, RadioSpec, SlotsSpec, WakeSpec};
use anabranch_units::{Direction, Duration};

const ARQ: Notation<ArqSpec> = Notation {
    form: Form::Table(Section::Arq, "{ loss = \"10%\", attempts = 4, delay = \"8ms\" }"),
    read: arq,
    write: |spec| inline(&[], &arq_rows(&mut Draft::from(spec))),
};
const WAKE: Notation<WakeSpec> = Notation {
    form: Form::Table(Section::Wake, "{ idle = \"10s\", delay = \"300ms\" }"),
    read: wake,
    write: |spec| inline(&[], &wake_rows(&mut spec.clone())),
};
const SLOTS: Notation<SlotsSpec> = Notation {
    form: Form::Table(Section::Slots, "{ every = \"15s\", step = \"8ms\", loss = \"20%\", burst = \"100ms\" }"),
    read: slots,
    write: |spec| inline(&[], &slots_rows(&mut spec.clone())),
};

/// An ARQ while it is read.
pub(crate) struct Draft {
    spec: ArqSpec,
    order: Order,
}

impl Default for Draft {
    fn default() -> Self {
        Self::from(&ArqSpec::NONE)
    }
}

impl From<&ArqSpec> for Draft {
    fn from(spec: &ArqSpec) -> Self {
        Self { spec: *spec, order: if spec.free { Order::Free } else { Order::Kept } }
    }
}

/// Keys of a path that are of these layers.
#[rustfmt::skip] // A table reads best with one key per row.
pub(crate) fn rows(radio: &mut RadioSpec) -> Vec<Row<'_>> {
    vec![
        Row::unless("arq", ARQ, &mut radio.arq, ArqSpec::NONE, "retransmission below IP (HARQ and RLC of cellular networks, retries of Wi-Fi): loss becomes delay").silent("none").both().changeable(),
        Row::new("aggregate", TIME, &mut radio.aggregate, "packets wait behind the bottleneck and are released together at multiples of this time, from a beginning that the seed draws (bursts of airtime)").both().changeable(),
        Row::unless("wake", WAKE, &mut radio.wake, WakeSpec::NONE, "a device that sleeps after idling, and at first (RRC promotion, DRX): the first packet, and those that follow, wait before the queue until it is awake").silent("none: it is awake").both().changeable(),
        Row::unless("slots", SLOTS, &mut radio.slots, SlotsSpec::NONE, "slots of a schedule, as Starlink has them: in each the delay differs, and its beginning loses packets; the seed draws where in a slot the run begins, for all paths alike").silent("none").both().changeable(),
    ]
}

/// Keys of `arq`.
#[rustfmt::skip]
pub(crate) fn arq_rows(draft: &mut Draft) -> Vec<Row<'_>> {
    let spec = &mut draft.spec;
    vec![
        Row::new("loss", PROBABILITY, &mut spec.loss, "probability that an attempt fails, independently of others; 0 is no ARQ").required(),
        Row::optional("attempts", integer(1, 65_535), &mut spec.attempts, "transmissions of a packet, the first one among them; after the last the packet is lost, with the probability loss to the power of attempts").silent("no packet is given up"),
        Row::new("delay", TIME, &mut spec.delay, "time from one attempt to the next").required(),
        Row::new("order", word(), &mut draft.order, "kept: a packet waits for all before it, and for the last attempt of one that is lost; free: a packet arrives when it is received"),
    ]
}

/// Keys of `wake`.
#[rustfmt::skip]
pub(crate) fn wake_rows(spec: &mut WakeSpec) -> Vec<Row<'_>> {
    vec![
        Row::new("idle", TIME, &mut spec.idle, "the device falls asleep after so long without a packet in either direction").required(),
        Row::new("delay", TIME, &mut spec.delay, "time from the first packet until the device is awake; 0 is no sleep").required(),
    ]
}

/// Keys of `slots`.
#[rustfmt::skip]
pub(crate) fn slots_rows(spec: &mut SlotsSpec) -> Vec<Row<'_>> {
    vec![
        Row::new("every", POSITIVE_TIME, &mut spec.every, "the length of a slot").required(),
        Row::new("step", TIME, &mut spec.step, "the delay of a slot differs from the path's by a time that is uniform within this; at most the delay"),
        Row::new("loss", PROBABILITY, &mut spec.loss, "probability that a packet is lost that arrives at the beginning of a slot"),
        Row::new("burst", TIME, &mut spec.burst, "the length of that beginning; at most the slot"),
    ]
}

fn arq(report: &mut Report, key: &'static Key, node: &Node) -> Option<ArqSpec> {
    let fields = table(report, key, Section::Arq, node)?;
    let mut draft = Draft::default();
    fields.fill(report, None, arq_rows(&mut draft)).then_some(())?;
    let spec = ArqSpec { free: draft.order == Order::Free, ..draft.spec };
    if spec.loss >= 1.0 && spec.attempts.is_none() {
        let at = fields.written("loss").map_or(node.at, |node| node.at);
        report
            .error(Code::ImpossibleValue, at, "an ARQ that never gives up delivers no packet if every attempt fails")
            .label("every attempt fails")
            .help("give `attempts`, or a loss below 100 %; for a time without delivery use `outage`");
        return None;
    }
    Some(spec)
}

fn wake(report: &mut Report, key: &'static Key, node: &Node) -> Option<WakeSpec> {
    let mut spec = WakeSpec::NONE;
    table(report, key, Section::Wake, node)?.fill(report, None, wake_rows(&mut spec)).then_some(spec)
}

fn slots(report: &mut Report, key: &'static Key, node: &Node) -> Option<SlotsSpec> {
    let fields = table(report, key, Section::Slots, node)?;
    let mut spec = SlotsSpec::NONE;
    fields.fill(report, None, slots_rows(&mut spec)).then_some(())?;
    if spec.burst > spec.every {
        let at = fields.written("burst").map_or(node.at, |node| node.at);
        report
            .error(Code::Conflict, at, format!("a beginning of {} in a slot of {}", spec.burst, spec.every))
            .label("longer than the slot")
            .help(format!("at most the slot, {}; for loss all the time use `loss`", spec.every));
        return None;
    }
    Some(spec)
}

/// The key that `change` sets, and its value in a file's notation.
pub(crate) fn written(change: RadioChange) -> (&'static str, String) {
    match change {
        RadioChange::Arq(arq) => ("arq", (ARQ.write)(&arq)),
        RadioChange::Aggregate(every) => ("aggregate", (TIME.write)(&every)),
        RadioChange::Wake(wake) => ("wake", (WAKE.write)(&wake)),
        RadioChange::Slots(slots) => ("slots", (SLOTS.write)(&slots)),
    }
}

fn table<'n>(report: &mut Report, key: &'static Key, section: Section, node: &'n Node) -> Option<Fields<'n>> {
    if node.as_table().is_none() {
        value::wrong_type(report, key, node);
        return None;
    }
    Some(Fields::open(report, section, Some(node)))
}

/// Reports a step beyond the delay of a direction of a path.
pub(crate) fn finish(report: &mut Report, fields: &Fields<'_>, ways: &Pair<Way>) -> bool {
    let before = report.calls();
    let (places, delays) = (fields.places("slots"), fields.places("delay"));
    let has_zero = fields.key("delay").has_default();
    for (direction, Way { spec, .. }) in [(Direction::Down, &ways.down), (Direction::Up, &ways.up)] {
        let has_delay = has_zero || delays.get(direction).is_some() || spec.recorded_delay.is_some();
        if let Some(node) = places.get(direction).filter(|_| has_delay)
            && fields.are_sound(report, &["delay", "slots", "trace"])
        {
            check_step(report, node, spec.radio.slots, spec.least_delay());
        }
    }
    report.calls() == before
}

/// Reports a step beyond the delay, at the `slots` or the delay in `node`.
pub(crate) fn check_step(report: &mut Report, node: &Node, slots: SlotsSpec, delay: Duration) {
    let step = slots.step;
    if step > delay {
        let at = node.as_table().and_then(|table| table.get("step")).unwrap_or(node).at;
        report
            .error(Code::Conflict, at, format!("a step of {step} around a delay of {delay}"))
            .label("a packet would arrive before it is sent")
            .help(format!("at most the delay, {delay}"));
    }
}
