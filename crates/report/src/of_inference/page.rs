//! Inferences of papers as Markdown: a line per paper for the README, a screen per paper for its page, with a picture.

use super::tables::{by_fixed, claim_row, kept, name, prior, spread, with_unit};
use crate::svg::{CLOSE, escape, open};
use anabranch_reproduce::infer::{Answer, Inference, Tally};
use anabranch_reproduce::{Claim, Paper};
use std::fmt::Write as _;

/// One line per paper.
pub fn summary(papers: &[(Paper, Inference)]) -> String {
    let mut text = String::from(
        "\n| paper | sizes that agree | pairs that agree | its headline | holds | why the rest differs |\n|---|--:|--:|---|---|---|\n",
    );
    for (paper, inference) in papers {
        let (sizes, pairs) = (inference.sizes(), inference.pairs());
        let sizes = if sizes.of == 0 { "none published".to_owned() } else { sizes.to_string() };
        let cells =
            [&format!("`{}`", paper.key), &sizes, &pairs.to_string(), &paper.headline, &verdict(paper, inference)];
        let _ = writeln!(text, "| {} | {} |", cells.map(|cell| escaped(cell)).join(" | "), escaped(&paper.in_short));
    }
    text
}

/// How many of the headline's claims agree: `partly: 4 of 6 claims, 1 by a toss-up`.
fn verdict(paper: &Paper, inference: &Inference) -> String {
    let own = headlines(paper, inference);
    let agree = own.iter().filter(|claim| claim.answer == Answer::Agrees).count();
    let word = match agree {
        0 => "no",
        _ if agree == own.len() => "yes",
        _ => "partly",
    };
    let toss_ups = own.iter().filter(|claim| claim.answer == Answer::Agrees && claim.is_toss_up()).count();
    let mut text = format!("{word}: {agree} of {} claims", own.len());
    if toss_ups > 0 {
        let _ = write!(text, ", {toss_ups} by a toss-up");
    }
    text
}

/// The claims of the abstract and the conclusion that count.
fn headlines<'a>(paper: &Paper, inference: &'a Inference) -> Vec<&'a Tally> {
    let is_headline = |tally: &Tally| {
        let named = |claim: &&Claim| claim.text == tally.claim && claim.headline;
        paper.items.iter().any(|item| item.id == tally.item && item.claims.iter().any(|claim| named(&claim)))
    };
    inference.counted().filter(|tally| is_headline(tally)).collect()
}

/// The file with the picture of a paper.
pub fn picture_name(paper: &Paper) -> String {
    format!("reproduction-{}.svg", paper.key)
}

/// The screen of a paper: the result, what was drawn and kept, headline claims, the picture, unknowns that the baselines fix.
pub fn screen(paper: &Paper, inference: &Inference) -> String {
    let Paper { key, title, authors, venue, .. } = paper;
    let mut text = format!("\n## {key}\n\n{authors}: *{title}*, {venue}.\n\n{}\n", paper.in_short.trim());
    let _ = write!(text, "\n{}\n", paper.conclusion.trim());
    let _ = write!(text, "\n{}\n", drawn(inference));
    text += "\n| headline claim | published | ours | holds in | answer |\n|---|--:|--:|--:|---|\n";
    for claim in headlines(paper, inference) {
        let [item, text_of, published, mut ours, holds, answer] = claim_row(claim).map(|cell| escaped(&cell));
        if claim.pairs.len() > 1 {
            let agree = claim.pairs.iter().filter(|pair| pair.agrees()).count();
            ours = format!("{agree} of {} pairs", claim.pairs.len());
        }
        let _ = writeln!(text, "| `{item}` {text_of} | {published} | {ours} | {holds} | {answer} |");
    }
    let _ = write!(text, "\n![Published and ours, in the kept testbeds of {key}]({})\n", picture_name(paper));
    text += &causes(paper);
    text += &fixed(inference);
    text += &outside(inference);
    text
}

/// The findings on the headline claims, each once.
fn causes(paper: &Paper) -> String {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for item in &paper.items {
        let reasons = item.claims.iter().filter(|claim| claim.headline).filter_map(|claim| claim.reason.as_deref());
        for reason in reasons {
            let own = item.findings.iter().find(|finding| finding.id == reason).map(|finding| finding.text.trim());
            found.extend(
                own.filter(|own| !found.iter().any(|(_, text)| text == own)).map(|own| (item.id.as_str(), own)),
            );
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let lines = found.iter().map(|(item, text)| format!("- `{item}`: {}\n", escaped(text)));
    format!(
        "\nCauses, each shown by runs in [named readings](lab/readings.md#{}):\n\n{}",
        paper.key,
        lines.collect::<String>()
    )
}

/// How many testbeds were drawn and kept, how near they are, and what agrees.
fn drawn(inference: &Inference) -> String {
    let Inference { extent, tolerances, .. } = inference;
    let (sizes, pairs) = (inference.sizes(), inference.pairs());
    let mut agree = format!("Of the pairs of schedulers {pairs} agree.");
    if sizes.of > 0 {
        agree = format!("{agree} Of the published sizes {sizes} agree.");
    }
    let undrawn = inference.count(Answer::CannotBeDrawn);
    if undrawn > 0 {
        agree = format!("{agree} {undrawn} claims cannot be drawn; their sizes and pairs do not agree.");
    }
    let Some(tolerance) = tolerances.last().filter(|_| !inference.anchors.is_empty()) else {
        return format!("No baseline is published, so nothing chooses among {} drawn testbeds. {agree}", extent.keep);
    };
    let all = extent.draws as usize * tolerances.len();
    let written = inference.as_written.map_or_else(|| "without a value".to_owned(), |far| format!("{far:.2} away"));
    let mut text = format!(
        "{} of {all} testbeds are kept, up to a distance of {tolerance:.2}. The scenario as written is {written}. {agree}",
        extent.keep
    );
    if let Some(calibration) = &inference.calibration {
        let _ = write!(
            text,
            " In the calibration {:.1} % of the intervals hold the value that was drawn.",
            calibration.coverage * 100.0
        );
    }
    if inference.without_value > 0 {
        let _ = write!(text, " Draws without a value, in which a run does not end: {}.", inference.without_value);
    }
    text
}

/// The unknowns that the baselines narrow by a quarter or more.
fn fixed(inference: &Inference) -> String {
    let near: Vec<_> = by_fixed(inference).into_iter().filter(|unknown| unknown.fixed >= super::FIXED).collect();
    if near.is_empty() {
        return "\nThe baselines narrow no unknown.\n".to_owned();
    }
    let mut text = String::from("\n| the baselines narrow | before | in the kept testbeds |\n|---|---|---|\n");
    for unknown in near {
        let cells = [name(unknown), prior(unknown), kept(unknown)].map(|cell| escaped(&cell));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// Baselines that no draw reaches.
fn outside(inference: &Inference) -> String {
    let out: Vec<_> = inference.anchors.iter().filter(|anchor| anchor.outside).collect();
    if out.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n| baseline that cannot be drawn | published | 95 % of all draws |\n|---|--:|--:|\n");
    for anchor in out {
        let name = escaped(&format!("`{}` {}", anchor.item, anchor.text));
        let _ = writeln!(
            text,
            "| {name} | {} | {} |",
            with_unit(anchor.published.to_string(), &anchor.unit),
            spread(anchor.all, "")
        );
    }
    text
}

fn escaped(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}

const LABELS: usize = 460;
const PLOT: usize = 240;
/// Behind the plot: the answer, then the numbers.
const ANSWER: usize = 100;
const NUMBERS: usize = 300;
const ROW: usize = 18;
const HEAD: usize = 40;

/// The headline claims: the published value, and ours with its interval, each row to its own scale with its numbers behind it. An order or
/// a sign shows in how many testbeds it holds, of all.
pub fn picture(paper: &Paper, inference: &Inference) -> String {
    let claims = headlines(paper, inference);
    let (width, height) = (LABELS + PLOT + ANSWER + NUMBERS, HEAD + claims.len() * ROW + 10);
    let mut text = open(width, height, Some(&format!("{}: published and ours", paper.key)));
    let _ = writeln!(
        text,
        "<text x=\"8\" y=\"16\">bar: central 95 % of ours; dot: median; line: published. Where no size is published: the share of the kept \
         testbeds in which it holds; line: half of them</text>"
    );
    for (n, claim) in claims.into_iter().enumerate() {
        row(&mut text, claim, HEAD + n * ROW);
    }
    text + CLOSE
}

fn row(text: &mut String, claim: &Tally, top: usize) {
    let middle = top + ROW / 2;
    let color = match claim.answer {
        Answer::Agrees => "#2a7f4f",
        Answer::CannotBeDrawn => "#8a8f98",
        _ => "#b5432f",
    };
    let whole = format!("{}: {}", claim.item, claim.claim);
    let label: String = whole.chars().take(LABELS / 6).collect();
    let _ =
        writeln!(text, "<text x=\"8\" y=\"{}\"><title>{}</title>{}</text>", middle + 3, escape(&whole), escape(&label));
    let share = 100.0 * claim.holds as f64 / claim.of.max(1) as f64;
    let [_, _, stated, ours, holds, _] = claim_row(claim);
    let (low, mid, high, published, most, numbers) = match (claim.figure, claim.ours) {
        (Some(figure), Some(own)) => {
            (own.low, own.median, own.high, figure, 0.0, format!("published {stated}, ours {ours}"))
        }
        _ => (0.0, share, share, 50.0, 100.0, holds),
    };
    let least = low.min(published).min(0.0);
    let span = (high.max(published).max(most) - least).max(f64::MIN_POSITIVE);
    let at = |value: f64| LABELS as f64 + (value - least) / span * PLOT as f64;
    let _ = writeln!(
        text,
        "<line x1=\"{0:.1}\" x2=\"{1:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"{color}\" stroke-width=\"6\" stroke-opacity=\"0.45\"/>\n\
         <circle cx=\"{2:.1}\" cy=\"{middle}\" r=\"3.5\" fill=\"{color}\"/>\n\
         <line x1=\"{3:.1}\" x2=\"{3:.1}\" y1=\"{4}\" y2=\"{5}\" stroke=\"#23272d\" stroke-width=\"1.5\"/>\n\
         <text x=\"{6}\" y=\"{7}\" fill=\"{color}\">{8}</text>\n\
         <text x=\"{9}\" y=\"{7}\">{10}</text>",
        at(low),
        at(high),
        at(mid),
        at(published),
        top + 2,
        top + ROW - 2,
        LABELS + PLOT + 12,
        middle + 3,
        escape(claim.answer.text()),
        LABELS + PLOT + ANSWER,
        escape(&numbers),
    );
}
