"""The examples of docs/python.md and, after them, of docs/python-plug-ins.md run."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for page in (DOCS / "python.md", DOCS / "python-plug-ins.md"):
        text = page.read_text()
        for block in re.finditer(r"```python\n(.*?)```", text, re.S):
            line = text[: block.start()].count("\n") + 1
            code = compile("\n" * line + block[1], str(page), "exec")
            exec(code, names)
    assert "did you mean" in capsys.readouterr().out
    assert (tmp_path / "completion.pdf").stat().st_size > 1000
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    assert names["Blest"].__module__ and len(re.search(r"class Blest.*?```", text, re.S)[0].splitlines()) <= 32
