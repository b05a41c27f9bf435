#!/usr/bin/env python3
"""Writes some 70 ONNX networks as users bring them, with random weights that are the same each time, for
`plugrad bench cold --models FOLDER`.

    build.py FOLDER [--filter TEXT…] [--packages] [--check]

Each is FOLDER/NAME.onnx, with its inputs FOLDER/NAME/INPUT.npy. --packages adds networks of packages of PyPI, which
tools/fetch-models gets into FOLDER-packages. --check compares plugrad with ONNX Runtime, prints the largest difference of each
network relative to the largest element of an output, and exits with 1 if one is above its tolerance. Needs the packages numpy
and onnx; --check also onnxruntime and plugrad.
"""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import control  # noqa: F401
import detectors  # noqa: F401
import graphs  # noqa: F401
import images  # noqa: F401
import numpy as np
import packages
import pixels  # noqa: F401
import quantised  # noqa: F401
import sequences  # noqa: F401
import tables  # noqa: F401
import transformers  # noqa: F401
from registry import NETWORKS, built


def write(folder: Path, wanted: list[str]) -> list[Path]:
    """The networks of our own whose names contain one of the texts."""
    folder.mkdir(parents=True, exist_ok=True)
    return [built(name).write(folder) for name in sorted(NETWORKS) if any(text in name for text in wanted)]


def inputs_of(path: Path) -> dict[str, np.ndarray]:
    return {file.stem: np.load(file) for file in path.with_suffix("").glob("*.npy")}


def changed(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Other elements of the same sizes, so that data choose other nodes, rows and boxes."""

    def other(x: np.ndarray) -> np.ndarray:
        return np.asarray(~x if x.dtype == bool else np.flip(x) * x.dtype.type(0.8) if x.dtype.kind == "f" else np.flip(x))

    return {name: other(x) for name, x in inputs.items()}


def by_onnxruntime(path: Path, calls: list[dict[str, np.ndarray]]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")  # else sums of 8 bits saturate on processors without VNNI
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [output for inputs in calls for output in session.run(None, inputs)]


def by_plugrad(path: Path, calls: list[dict[str, np.ndarray]]) -> list[np.ndarray]:
    import plugrad

    model = plugrad.onnx.load(path)
    return [np.asarray(output) for inputs in calls for output in model(inputs)]


def difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """Relative to the largest element; infinite for another shape or another integer."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(got, wanted) else float("inf")
    far = np.abs(got.astype(np.float64) - wanted)
    return float(np.nan_to_num(far, nan=np.inf).max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30))


def is_right(path: Path) -> bool:
    """Of two calls with equal inputs and one with others. Prints a line."""
    allowed = NETWORKS[path.stem].tolerance if path.stem in NETWORKS else packages.TOLERANCE
    start = time.perf_counter()
    try:
        inputs = inputs_of(path)
        calls = [inputs, inputs, changed(inputs)]
        wanted = by_onnxruntime(path, calls)
        middle = time.perf_counter()
        found = by_plugrad(path, calls)
        spread = max(map(difference, found, wanted))
        good = len(found) == len(wanted) and spread <= allowed
        largest = max(float(np.abs(each).max(initial=0)) for each in wanted)
        times = f"{time.perf_counter() - middle:6.2f} s, ONNX Runtime {middle - start:5.2f} s, largest element {largest:.3g}"
        print(f"{path.stem:22} {spread:8.1e} of {allowed:.0e} {times}{'' if good else '  DIFFERS'}", flush=True)
        return good
    except Exception as error:  # noqa: BLE001: each outcome is shown
        print(f"{path.stem:22} {type(error).__name__}: {' '.join(str(error).split())[:400]}", flush=True)
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", nargs="+", default=[""], metavar="TEXT", help="only networks whose names contain one of them")
    parser.add_argument("--packages", action="store_true", help="networks of packages, too")
    parser.add_argument("--check", action="store_true", help="compare plugrad with ONNX Runtime")
    given = parser.parse_args()
    paths = write(given.folder, given.filter)
    if given.packages:
        paths += packages.write(given.folder, given.filter)
    print(f"{len(paths)} networks, {sum(path.stat().st_size for path in paths) / 1e6:.0f} MB in {given.folder}")
    wrong = [path.stem for path in paths if not is_right(path)] if given.check else []
    if wrong:
        print(f"{len(wrong)} of {len(paths)} are wrong: {', '.join(wrong)}")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
