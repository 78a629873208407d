"""The notebooks run from their first cell to their last."""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PAPERS = Path(__file__).parents[2] / "papers"


def kernel(folder, monkeypatch):
    """The kernel `python3` is this Python, whatever else is installed."""
    spec = folder / "kernels/python3"
    spec.mkdir(parents=True)
    words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    listed = ", ".join(f'"{word}"' for word in words)
    (spec / "kernel.json").write_text(f'{{"argv": [{listed}], "display_name": "Python 3", "language": "python"}}')
    monkeypatch.setenv("JUPYTER_PATH", str(folder))
    # Jupyter looks here first.
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(folder))


@pytest.mark.parametrize("file", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda file: file.stem)
def test_a_notebook_runs(file, tmp_path, monkeypatch):
    kernel(tmp_path / "jupyter", monkeypatch)
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    # Where a notebook of a clone has them, but with room for its files.
    work = tmp_path / "python/notebooks"
    work.mkdir(parents=True)
    (tmp_path / "papers").symlink_to(PAPERS)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(work)}}).execute()
    for cell in notebook.cells:
        # A cell that ends so draws.
        if cell.cell_type == "code" and cell.source.endswith(";"):
            assert any("image/svg+xml" in output.get("data", {}) for output in cell.outputs), cell.source
    shutil.rmtree(work)


def test_there_are_five():
    assert len(list(NOTEBOOKS.glob("*.ipynb"))) == 5
