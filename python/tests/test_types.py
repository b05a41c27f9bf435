"""The stubs: mypy --strict and pyright accept the package, the examples and typed_surface.py."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plugrad as pg

ROOT = Path(__file__).parents[2]
WRONG = """
import plugrad as pg
x: str = pg.Tensor([1.0]).sum()
pg.Tensor.zeros(2, device=3)
pg.nn.Linear("a", 2)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package and the programs, where no checker takes them for somebody else's."""
    root = tmp_path_factory.mktemp("types")
    package = Path(pg.__file__).parent
    for name in ("plugrad", "plugrad_backend"):
        for file in (package.parent / name).rglob("*.py*"):
            if file.suffix in (".py", ".pyi") and not file.is_relative_to(
                    package.parent / "plugrad_backend/lib"):
                target = root / file.relative_to(package.parent)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
    (root / "plugrad/py.typed").touch()
    for file in [*ROOT.glob("docs/examples/python/**/*.py"), ROOT / "python/tests/typed_surface.py"]:
        shutil.copy(file, root)
    (root / "wrong.py").write_text(WRONG)
    return root


def programs(folder: Path) -> list[str]:
    found = sorted(file.name for file in folder.glob("*.py") if file.name != "wrong.py")
    assert len(found) > 15
    return found


def run(folder: Path, *command: str) -> tuple[int, str]:
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    return done.returncode, done.stdout


def test_there_are_stubs(folder):
    stub = (folder / "plugrad/_plugrad/__init__.pyi").read_text()
    assert "class Tensor:" in stub and "TensorLike" in stub


def test_mypy(folder):
    status, printed = run(folder, "mypy", "--strict", "--no-error-summary", "plugrad",
                          *programs(folder))
    assert status == 0, printed
    status, printed = run(folder, "mypy", "--strict", "wrong.py")
    assert status == 1 and "Found 3 errors" in printed, printed


@pytest.mark.skipif("PLUGRAD_TEST_ALL" not in os.environ, reason="mypy reads the same stubs")
def test_pyright(folder):
    if importlib.util.find_spec("pyright"):
        status, printed = run(folder, "pyright", "--version")
        if status != 0:
            pytest.skip(f"pyright has no Node.js: {printed}")
    arguments = ["pyright", "--outputjson", "--pythonpath", sys.executable]
    status, printed = run(folder, *arguments, "plugrad", *programs(folder))
    found = json.loads(printed[printed.index("{"):])["generalDiagnostics"]
    errors = [f"{each['file']}:{each['range']['start']['line'] + 1}: {each['message']}"
              for each in found if each["severity"] == "error"]
    assert status == 0 and not errors, "\n".join(errors)
    status, printed = run(folder, *arguments, "wrong.py")
    assert status == 1 and printed.count('"severity": "error"') >= 3, printed


def test_the_typed_program_runs():
    done = subprocess.run([sys.executable, str(ROOT / "python/tests/typed_surface.py")], text=True,
                          capture_output=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
