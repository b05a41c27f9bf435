"""The programs of docs/examples/python."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plugrad as pg

EXAMPLES = Path(__file__).parents[2] / "docs/examples/python"


def run(*command: str) -> dict:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def mnist() -> None:
    if not hasattr(pg, "jit"):
        pytest.skip("this build has no plugrad.jit")
    try:
        pg.data.mnist(download=False)
    except pg.Error:
        pytest.skip("the files of MNIST are not on this machine")


# Arguments of the programs that train or search: few steps.
SMALL = {"gpt.py": ["3"], "resnet.py": ["2"], "search.py": ["64", "1"], "progress.py": ["plot.html"]}
OTHERS = sorted(file.name for file in EXAMPLES.glob("*.py") if file.name != "mnist.py")


@pytest.mark.parametrize("name", OTHERS)
def test_program(name, tmp_path):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *SMALL.get(name, [])], text=True,
                          capture_output=True, timeout=300, cwd=tmp_path,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def text_of(cell) -> str:
    return "".join(part.get("text", "") or part.get("data", {}).get("text/plain", "")
                   for part in cell.outputs)


def test_the_notebook_runs(tmp_path, monkeypatch):
    """Every cell, with the outputs that the file has where they are no device's own."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    expected = [text_of(cell) for cell in cells]
    assert len(cells) > 8
    client.NotebookClient(notebook, timeout=300, kernel_name="python3",
                          resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, text in zip(cells, expected):
        if "any output" not in cell.source:
            assert text_of(cell) == text, cell.source


def test_mnist_trains_as_the_command_does(mnist, tmp_path):
    ours = run(sys.executable, str(EXAMPLES / "mnist.py"), "--steps", "4", "--save",
               str(tmp_path / "net.safetensors"), "--plot", str(tmp_path / "train.svg"))
    assert 0.1 < ours["test_accuracy"] < 1 and ours["steps"] == 4
    assert (tmp_path / "train.svg").exists()
    state = pg.nn.safe_load(tmp_path / "net.safetensors")
    assert state["c1.weight"].shape == (32, 1, 5, 5)
    if command := shutil.which("plugrad"):
        theirs = run(command, "train", "mnist", "--steps", "4", "--json")
        assert theirs["test_accuracy"] == ours["test_accuracy"]
