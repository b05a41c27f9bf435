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
