"""SciPy and scikit-learn compute with tensors."""
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest


NEEDED = {"scipy": (1, 17), "scikit-learn": (1, 9)}


def require(package: str) -> None:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if tuple(map(int, version.split(".")[:2])) < NEEDED[package]:
        pytest.skip(f"{package} {version} is older than {NEEDED[package]}")


@pytest.mark.parametrize("library, packages, count", [
    ("scipy", ("scipy",), 70), ("sklearn", ("scipy", "scikit-learn"), 40)])
def test_functions_agree_with_their_results_for_numpy(library, packages, count):
    for package in packages:
        require(package)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SCIPY_ARRAY_API": "1",
                                "DEV": "REFERENCE"}
    done = subprocess.run([sys.executable, "-W", "ignore", Path(__file__).parent / "libraries.py",
                           library], text=True, capture_output=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(": agrees")] == []
    assert len(lines) > count
