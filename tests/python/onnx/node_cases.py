"""Runs the node test cases of the package onnx on plugrad.

    node_cases.py [--device D] [--filter REGEX] [--limit N] [--known FILE] [--write FILE] [--verbose] [--open]

Prints how many pass and a line for each case that does not; --write records name and outcome of every case. --known is a file of
the cases that do not pass, one "name<tab>reason" a line: exits with 1 if another case fails, or if one of these passes.

--open leaves sizes of the inputs open, those of one value at a time, and gives them bounds: the one recording for all sizes must give the
case's outputs, or be refused.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

import plugrad as pg


HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


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


def open_models(model: onnx.ModelProto) -> Iterator[tuple[onnx.ModelProto, dict[str, tuple[int, int]]]]:
    """The model with open sizes of inputs, and their bounds: for each value that a size of an axis has."""
    shapes = [value.type.tensor_type.shape.dim for value in model.graph.input]
    for size in sorted({dim.dim_value for shape in shapes for dim in shape} - {0}):
        opened = onnx.ModelProto()
        opened.CopyFrom(model)
        for value in opened.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value == size:
                    dim.dim_param = "open"
        for output in opened.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
        yield opened, {"open": (1, size + 2)}


def run_open(case: object, device: str) -> str:
    """How many of the open models ran, and how many need a recording for each size. Errors: as run()."""
    ran, refused = 0, 0
    for opened, bounds in open_models(case.model):
        model = pg.onnx.load(opened.SerializeToString(), device, bounds=bounds)
        for inputs, outputs in case.data_sets:
            try:
                with pg.device(device):
                    got = model(*[as_input(value) for value in inputs])
            except RuntimeError as error:
                if "one recording cannot serve" not in str(error):
                    raise
                refused += 1
                continue
            # Other kernels round halves elsewhere.
            is_half = any(value.type.tensor_type.elem_type in HALF for value in case.model.graph.output)
            require_equal(list(got), list(outputs), max(case.rtol, 2**-6) if is_half else case.rtol, case.atol)
            ran += 1
    return f"pass\t{ran}\t{refused}"


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
    parser.add_argument("--open", action="store_true")
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
                if given.open:
                    outcomes[case.name] = run_open(case, given.device)
                else:
                    run(case, Path(folder), given.device)
                    outcomes[case.name] = "pass"
            except Exception as error:  # noqa: BLE001: each outcome is recorded
                text = " ".join(str(error).split())[:200]
                outcomes[case.name] = f"{type(error).__name__}: {text}"
    passed = sum(outcome.startswith("pass") for outcome in outcomes.values())
    for name, outcome in outcomes.items():
        if not outcome.startswith("pass"):
            print(f"{name}: {outcome}")
    print(f"{passed} of {len(outcomes)} cases pass on {given.device}, {time.time() - start:.0f} s")
    if given.open:
        ran, refused = (sum(int(o.split("\t")[i]) for o in outcomes.values() if o.startswith("pass")) for i in (1, 2))
        print(f"{ran} runs with open sizes, {refused} refused")
    if given.write:
        Path(given.write).write_text("".join(f"{name}\t{outcome}\n" for name, outcome in outcomes.items()))
    return unexpected(outcomes, given.known, given.open) if given.known else 0


def unexpected(outcomes: dict[str, str], known: Path, is_open: bool) -> int:
    """1 if the outcomes are not those that the file says; open models of a case that fails may all be refused."""
    failing = dict(line.split("\t") for line in known.read_text().splitlines())
    news = [
        f"{name}: {outcome}"
        for name, outcome in outcomes.items()
        if (name not in failing if not outcome.startswith("pass") else name in failing and not is_open)
    ]
    print("".join(f"not as {known.name} says: {line}\n" for line in news), end="")
    return 1 if news else 0


if __name__ == "__main__":
    sys.exit(main())
