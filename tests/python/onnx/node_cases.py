"""Runs the node test cases of the package onnx on plugrad.

    node_cases.py [--device D] [--filter REGEX] [--limit N] [--known FILE] [--write FILE] [--verbose]

Prints how many pass and a line for each case that does not; --write records name and outcome of every case. --known is a file of
the cases that do not pass, one "name<tab>reason" a line: exits with 1 if another case fails, or if one of these passes.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

import plugrad as pg


def as_input(value: object) -> object:
    """What plugrad takes: arrays of its dtypes, lists of them, or None."""
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def require_equal(got: object, wanted: object, rtol: float, atol: float) -> None:
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), f"{len(got)} elements, {len(wanted)} are wanted"
        for g, w in zip(got, wanted):
            require_equal(g, w, rtol, atol)
        return
    if wanted is None or got is None:
        assert wanted is None and got is None, f"{got}, wanted {wanted}"
        return
    wanted = as_input(wanted)
    got = got.numpy() if hasattr(got, "numpy") else np.asarray(got)
    assert got.shape == wanted.shape, f"shape {got.shape}, wanted {wanted.shape}"
    if wanted.dtype.kind in "OUS":
        assert (got == wanted).all(), "strings differ"
        return
    assert got.dtype == wanted.dtype, f"dtype {got.dtype}, wanted {wanted.dtype}"
    if wanted.dtype.kind in "biu":
        assert (got == wanted).all(), f"{(got != wanted).sum()} of {wanted.size} differ"
        return
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)


def run(case: object, folder: Path, device: str) -> None:
    """Errors: what plugrad raises, and AssertionError for wrong values."""
    path = folder / f"{case.name}.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        model = pg.onnx.load(path, device)
        for inputs, outputs in case.data_sets:
            with pg.device(device):
                got = model(*[as_input(value) for value in inputs])
            if "random" in case.name or case.name.startswith("test_bernoulli"):
                continue  # only shapes can be compared, which the case's own checks do
            require_equal(list(got), list(outputs), case.rtol, case.atol)
    finally:
        path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--known", type=Path)
    parser.add_argument("--write")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    cases = [case for case in collect_testcases(None) if re.search(given.filter, case.name)]
    if given.limit:
        cases = cases[:: max(1, len(cases) // given.limit)]
    outcomes: dict[str, str] = {}
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if given.verbose:
                print(case.name, flush=True)
            try:
                run(case, Path(folder), given.device)
                outcomes[case.name] = "pass"
            except Exception as error:  # noqa: BLE001: each outcome is recorded
                text = " ".join(str(error).split())[:200]
                outcomes[case.name] = f"{type(error).__name__}: {text}"
    passed = sum(outcome == "pass" for outcome in outcomes.values())
    for name, outcome in outcomes.items():
        if outcome != "pass":
            print(f"{name}: {outcome}")
    print(f"{passed} of {len(outcomes)} cases pass on {given.device}, {time.time() - start:.0f} s")
    if given.write:
        Path(given.write).write_text("".join(f"{name}\t{outcome}\n" for name, outcome in outcomes.items()))
    return unexpected(outcomes, given.known) if given.known else 0


def unexpected(outcomes: dict[str, str], known: Path) -> int:
    """1 if the outcomes are not those that the file says."""
    failing = dict(line.split("\t") for line in known.read_text().splitlines())
    news = [f"{name}: {outcome}" for name, outcome in outcomes.items() if (outcome != "pass") != (name in failing)]
    print("".join(f"not as {known.name} says: {line}\n" for line in news), end="")
    return 1 if news else 0


if __name__ == "__main__":
    sys.exit(main())
