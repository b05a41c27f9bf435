"""SciPy and scikit-learn compute with tensors."""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("library, count", [("scipy", 70), ("sklearn", 40)])
def test_functions_agree_with_their_results_for_numpy(library, count):
    for name in {"scipy", library}:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", Path(__file__).parent / "libraries.py",
                           library], text=True, capture_output=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(": agrees")] == []
    assert len(lines) > count
