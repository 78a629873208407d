//! `docs/lab/purposes.md`.

use super::{Measured, NETWORKS, Network, Verdict, Wants, scenario};
use anabranch_metrics::{MetricRef, Scale, half_width};
use std::fmt::Write;

const BEGINNING: &str = "\
# What each scheduler is for

Each scheduler in the smallest network in which its source says that it does better than `minrtt`, or differs from it. *Shown*:
the metric moves the way that the source says, by a paired t test over the seeds (p < 0.05) or, where nothing is random, exactly.
Where the metric is order (`rbd_mean_packets`), goodput may be a twentieth less at most, because a single path never reorders.

The networks were looked for, with other seeds than these: *shown* says that there is such a network, not that it is a common one.
*Around* says how narrow it is: in how many of the networks that differ from it by one value, half or twice as large, the same
is shown with ten seeds. How the schedulers do over many networks is in [frontier.md](../frontier.md). No scheduler was changed for a
verdict. At p < 0.05 chance alone may give one or two of these rows.

`cargo run -p anabranch-studies --bin purposes > docs/lab/purposes.md` makes this page; a test holds every figure.
`anabranch run scenarios/purposes/tight.toml --scheduler minrtt,blest` runs one row again, with all other metrics.

";

/// The page for everything measured.
///
/// # Errors
/// A network's scenario cannot be read.
pub fn page(measured: &[Measured]) -> Result<String, String> {
    let mut page = String::from(BEGINNING);
    let shown = measured.iter().filter(|of| of.verdict == Verdict::Shown).count();
    let _ = writeln!(page, "{shown} of {} purposes are shown. ± is half of the 95 % interval.\n", measured.len());
    let _ = writeln!(
        page,
        "| scheduler | what its source claims | network | metric | against | its figure | this one's | difference | n | verdict | around |"
    );
    let _ = writeln!(page, "|---|---|---|---|---|--:|--:|--:|--:|---|--:|");
    measured.iter().for_each(|of| row(of, &mut page));
    let _ = writeln!(page, "\n## Not shown\n");
    for of in measured.iter().filter(|of| of.verdict == Verdict::NotShown) {
        let _ = writeln!(page, "- `{}`: {}", of.purpose.scheduler, of.purpose.reason);
    }
    let _ = writeln!(page, "\n## Networks\n");
    for network in NETWORKS {
        let _ = writeln!(
            page,
            "- [{0}](../../scenarios/purposes/{0}.toml), \"{1}\": {2} Around it: `{3}`.",
            network.name,
            scenario(network, &[])?.name,
            about(network),
            network.around.join("`, `")
        );
    }
    Ok(page)
}

fn row(of: &Measured, page: &mut String) {
    let purpose = of.purpose;
    let arrow = match purpose.wants {
        Wants::More => "↑",
        Wants::Less => "↓",
    };
    let scale = scale(purpose.metric);
    let number = |value: f64| format!("{:.*}", scale.decimals, value / scale.per);
    let signed = |value: f64| format!("{:+.*}", scale.decimals, value / scale.per);
    let half = of.difference.ci95.map(|ends| half_width(of.difference.mean_diff, ends));
    let half = half.map_or(String::new(), |half| format!(" ± {}", number(half)));
    let percent = 100.0 * of.difference.mean_diff / of.theirs;
    let verdict = match of.verdict {
        Verdict::Shown => "shown",
        Verdict::NotShown => "**not shown**",
    };
    let _ = writeln!(
        page,
        "| `{}` | {} ({}) | {} | {} {arrow} | `{}` | {} | {} | {}{half} ({percent:+.1} %) | {} | {verdict} | {} of {} |",
        purpose.scheduler,
        purpose.claim,
        purpose.source,
        purpose.network,
        scale.after(purpose.metric),
        purpose.against,
        number(of.theirs),
        number(of.ours),
        signed(of.difference.mean_diff),
        of.difference.n,
        of.around,
        NETWORKS.iter().find(|network| network.name == purpose.network).map_or(0, |network| network.around.len()),
    );
}

/// The unit in which a metric is written; times are in milliseconds.
fn scale(metric: &str) -> Scale {
    MetricRef::parse(metric).info().map_or(Scale::PLAIN, |info| info.scale).fitted(0.0)
}

/// The scenario's leading comment.
fn about(network: &Network) -> String {
    let comment = network.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    comment.collect::<Vec<_>>().join(" ")
}
