"""The pages of the reference that are made with the site: from the command's registries, a run's results, the Python package."""

import ast
import csv
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

#: By file: title and remark in the order of the site.
PAGES = {
    "keys": ("Scenario keys", "form, default and meaning of each"),
    "metrics": ("Metrics", "name, unit and definition of each"),
    "scenarios": ("Built-in scenarios", "their files"),
    "commands": ("Commands", "the help of each"),
    "results": ("Result files", "files and columns of a results directory"),
    "python": ("Python package", "classes, functions and errors"),
}


def write(root: Path) -> None:
    """Into `docs/reference/`."""
    folder = root / "docs/reference"
    folder.mkdir(exist_ok=True)
    program = os.environ["ANABRANCH"]
    texts = {name: ask(program, "explain", "--all", name) for name in ("keys", "metrics", "scenarios", "commands")}
    texts["results"] = results(root, program)
    texts["python"] = python(root)
    assert texts.keys() == PAGES.keys()
    for name, text in texts.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def ask(program: str, *words: str) -> str:
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


#: The files of a results directory; one that is not named here is an error.
ABOUT = {
    "manifest.json": "The command, its scenario, versions and the machine.",
    "inputs.json": "What the runs were made from: the scenario, the files that it names, the options. `anabranch rerun` makes them again.",
    "files.json": "The names of the files that the command wrote: the next one with this directory removes these, and no other.",
    "results.json": "The results as one document.",
    "runs.csv": "One line per run. The values of a path are named after it.",
    "runs.parquet": "The columns of `runs.csv`, for pandas, polars, DuckDB and the like.",
    "summary.csv": "One line per row and metric.",
    "comparisons.csv": "One line per pair of schedulers and metric: *a* less *b*, run by run with the same seed.",
    "report.html": "The report: one self-contained page.",
    "series": "One file per row, of its first run: a line per step of time. Windows and RTTs are the last value of a step, lengths of "
    "queues the greatest, bytes those within the step; a column that a scheduler publishes, such as `lambda`, has its name.",
    "timeline": "One file per row, of its first run: the packets of payload, in the order of sending. Times are in seconds since the run began.",
    "tables": "The report's tables as CSV and LaTeX.",
}
#: Where the source documents a file's fields: a prefix of names, the file, the struct.
RUN = ("crates/run/src/record.rs", "RunRecord")
SUMMARY, COMPARISON = (("crates/run/src/results.rs", name) for name in ("Summary", "Comparison"))
MANIFEST, SCENARIO, MACHINE = (("crates/workbench/src/artifacts.rs", name) for name in ("Manifest", "ScenarioText", "Machine"))
FIELDS = {
    "files.json": {"": ("crates/workbench/src/listed.rs", "Document")},
    "inputs.json": {"": ("crates/workbench/src/inputs.rs", "Inputs"), "whole.": ("crates/workbench/src/inputs.rs", "Whole"), "plug_ins[].": ("crates/workbench/src/inputs.rs", "Object")},
    "manifest.json": {"": MANIFEST, "scenario.": SCENARIO, "machine.": MACHINE, "network.": ("crates/report/src/of_run/network.rs", "Network")},
    "results.json": {
        "": ("crates/run/src/results.rs", "Results"),
        "runs[].": RUN,
        "summary[].": SUMMARY,
        "comparisons[].": COMPARISON,
        "diagnosis[].": ("crates/run/src/diagnosis/mod.rs", "Diagnosis"),
    },
    "runs.csv": {"": RUN},
    "summary.csv": {"": SUMMARY},
    "comparisons.csv": {"": COMPARISON},
    "timeline": {"": ("crates/recorders/src/timeline.rs", "Timeline"), "packets[].": ("crates/recorders/src/timeline.rs", "TimelinePacket"), "decisions.": ("crates/trace/src/decision.rs", "Decisions")},
}
FIELD = re.compile(r"((?: +///.*\n)*)(?: +#\[.*\n)* +(?:pub )?(\w+): ([\w<>]+)")
#: Types of a few words, and where they are.
WORDS = {"SendKind": "crates/units/src/term.rs", "Fate": "crates/recorders/src/timeline.rs", "DiagnosisKind": "crates/run/src/diagnosis/mod.rs"}
WORD = re.compile(r"((?: +///.*\n)+) +(\w+),\n")
#: Columns of `series/`; those of a path follow its name.
SERIES = {
    "time_s": "Begin of the step, in seconds since the run began.",
    "ofo_bytes": "Length of the connection's out-of-order queue.",
    "ofo_packets": "The same in packets.",
    "delivered_bytes": "Bytes delivered to the application in order.",
    "cwnd_packets": "Congestion window.",
    "srtt_s": "Smoothed RTT, in seconds.",
    "in_flight_packets": "Packets sent and not acknowledged.",
    "queue_packets": "Packets that wait at the path's bottleneck, from server to client.",
    "sent_bytes": "Payload bytes sent.",
}
PUBLISHED = "A value that the scheduler publishes; [its page](../schedulers.md) has it."


def documented(root: Path, name: str) -> dict[str, str]:
    """The meaning of a file's fields, as the source has it."""
    found = {}
    for prefix, (file, struct) in FIELDS.get(name, {}).items():
        text = (root / file).read_text()
        body = text.split(f"pub struct {struct} {{\n")[1].split("\n}\n")[0]
        for comment, field, kind in FIELD.findall(body + "\n"):
            found[prefix + field] = " ".join([plain(comment), *words(root, kind)])
    return found


def words(root: Path, kind: str) -> list[str]:
    """The words that a type has, with their meanings."""
    if kind not in WORDS:
        return []
    body = (root / WORDS[kind]).read_text().split(f"pub enum {kind} {{\n")[1].split("\n}\n")[0]
    return [f"`{re.sub('(?<=[a-z])(?=[A-Z])', '_', word).lower()}`: {plain(comment)}" for comment, word in WORD.findall(body + "\n")]


def plain(comment: str) -> str:
    """A comment's text without the links of Rust's documentation, in the words of JSON."""
    text = " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines()).replace("`None`", "`null`")
    text = re.sub(r"\[(`[^`]*`)\]", r"\1", text).replace("crate::RunRecord", "runs[]").replace("`SCHEMA`.", "Number of the format.")
    return re.sub(r"`[A-Z]\w*::", "`", text)


def results(root: Path, program: str) -> str:
    """The files of a run of two schedulers, with the columns of each table and the fields of each document."""
    metrics = {one["name"]: one["about"] for one in json.loads(ask(program, "list", "metrics", "--format", "json"))}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results"
        ask(program, "run", "wifi-lte", "--scheduler", "minrtt,blest", "--repeat", "2", "--out", str(out))
        parts = [described(root, one, metrics) for one in sorted(out.iterdir())]
    head = (
        "# Result files\n\nThe files that `anabranch run wifi-lte --scheduler minrtt,blest --repeat 2 --out DIR` writes; other commands and traffic "
        "have other metrics. A column that no run of the results has is absent. [Metrics](metrics.md) defines the values, "
        "[from a question to a command](../guide.md#results-in-files) says how the directory is used.\n"
    )
    return head + "".join(parts)


def described(root: Path, path: Path, metrics: dict[str, str]) -> str:
    name, about, known = path.name, ABOUT[path.name], documented(root, path.name)
    if path.is_dir():
        files = sorted(path.iterdir())
        listed = ", ".join(f"`{file.name}`" for file in files)
        name, about, path = f"{name}/", f"{about} Here: {listed}.", files[0]
    # The tables of the report have their own heads, and differ by what they show.
    found = [] if name == "tables/" else columns(path) if path.suffix == ".csv" else shape_of(path)
    if name == "runs.csv":
        # A path's metric is `path.NAME.METRIC`.
        known |= {field: metrics[field.rsplit(".", 1)[-1]] for field, _ in found if field.rsplit(".", 1)[-1] in metrics}
    if name == "series/":
        known = {field: SERIES[field.rsplit(".", 1)[-1]] if "." in field else SERIES.get(field, PUBLISHED) for field, _ in found}
    unknown = [field for field, _ in found if not known.get(field)]
    assert not unknown, f"{name}: no meaning of {', '.join(unknown)}"
    rows = [(f"`{field}`", kind, known[field]) for field, kind in found]
    return f"\n## {name}\n\n{about}\n{table(rows)}"


def columns(path: Path) -> list[tuple[str, str]]:
    """Of a CSV file: names and types, by its first lines."""
    with path.open(newline="") as lines:
        head, *rows = [line for _, line in zip(range(9), csv.reader(lines))]
    return [(name, kind_of([row[at] for row in rows])) for at, name in enumerate(head)]


def kind_of(cells: list[str]) -> str:
    given = [cell for cell in cells if cell]
    if given and all(cell in ("true", "false") for cell in given):
        return "true or false"
    return "number" if all(re.fullmatch(r"-?[\d.]+(e-?\d+)?|NaN", cell) for cell in given) else "text"


#: Levels of a document that are listed; tables of values by name end there.
DEPTH = 2


def shape_of(path: Path) -> list[tuple[str, str]]:
    """Of a JSON document: fields and types."""
    fields: dict[str, str] = {}
    if path.suffix == ".json":
        shape(json.loads(path.read_text()), "", fields)
    return list(fields.items())


def shape(value: object, name: str, fields: dict[str, str]) -> None:
    """The types of a document's fields, each once: of a list of objects those of all of them."""
    if isinstance(value, dict) and value and name.count(".") < DEPTH - 1:
        for key, inner in value.items():
            shape(inner, f"{name}.{key}".lstrip("."), fields)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and name.count(".") < DEPTH - 1:
        for inner in value:
            shape(inner, f"{name}[]", fields)
    else:
        kinds = {dict: "object", list: "list", str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}
        kind, before = kinds[type(value)], fields.get(name)
        fields[name] = kind if before in (None, "null", kind) else before


def table(rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n| name | type | meaning |\n|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def python(root: Path) -> str:
    """Every public name of the package; autodoc fills in signatures and docstrings."""
    tree = ast.parse((root / "python/anabranch/__init__.py").read_text())
    [names] = [ast.literal_eval(one.value) for one in tree.body if isinstance(one, ast.Assign) and one.targets[0].id == "__all__"]
    errors = {one.name for one in ast.parse((root / "python/anabranch/errors.py").read_text()).body if isinstance(one, ast.ClassDef)}
    functions = [name for name in names if name.islower() and not name.startswith("_") and name != "errors"]
    classes = [name for name in names if not name.islower() and name not in errors and not name.startswith("_")]
    sections = {
        "Functions": "".join(directive("autofunction", name) for name in functions),
        "Classes": "".join(directive("autoclass", name, "   :members:\n") for name in classes),
        "Errors": "".join(directive("autoexception", name, "   :members:\n   :show-inheritance:\n") for name in sorted(errors & set(names))),
    }
    body = "".join(f"\n## {title}\n\n```{{eval-rst}}\n{text}```\n" for title, text in sections.items())
    return "# Python package\n\n[Python](../python.md) introduces it; here is every public name of `anabranch`.\n" + body


def directive(kind: str, name: str, options: str = "") -> str:
    return f".. {kind}:: anabranch.{name}\n{options}\n"
