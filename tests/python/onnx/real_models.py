"""Compares models of packages with ONNX Runtime, on inputs that suit each model.

    real_models.py FOLDER [--device D] [--filter TEXT] [--inputs N] [--extremes] [--time]

FOLDER has .onnx files at any depth. Prints the largest difference of each output relative to its largest element and the
least cosine of the angle between both, with --time the milliseconds of a call of both from arrays to arrays, in turns, and their
ratio. PLUGRAD_THREADS is for both. With --extremes some inputs are silent, far too loud, or of odd sizes.
"""
from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import plugrad as pg

# Sizes of the axes that models of a kind leave open: three usual ones, then with --extremes small, large and odd ones.
SIZES = {"wave": [1, 3, 2, 7], "text": [(1, 16), (2, 128), (3, 40), (7, 9), (1, 1), (1, 511)],
         "detect": [(1, 96, 96), (1, 160, 224), (2, 128, 64), (7, 32, 32), (1, 97, 131), (1, 33, 500)],
         "recognise": [(1, 48, 160), (2, 48, 320), (3, 48, 96), (7, 48, 8), (1, 48, 33), (1, 48, 511)], "rows": [1, 2, 3, 7]}
USUAL = 3


def shape_of(name: str, value: onnxruntime.NodeArg, kind: str, variant: int) -> tuple[int, ...]:
    size = SIZES[kind][variant % len(SIZES[kind])]
    if kind == "wave":
        if "16k_sequence" in name or "v6" in name:
            return (size + 2, 576) if value.name == "input" else (1, 1, 128)
        size = 1 if "openvino" in name else size
        return {"input": (size, 576), "state": (2, size, 128)}[value.name]
    if kind == "text":
        return size
    if kind == "rows":
        return tuple(axis if isinstance(axis, int) else size for axis in value.shape)
    return (size[0], 3, *size[1:])


def inputs_of(session: onnxruntime.InferenceSession, name: str, variant: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Noise of a level that suits the model in the usual variants, then also silence and noise that is far too loud."""
    inputs = session.get_inputs()
    kind = ("wave" if "silero" in name else "text" if "input_ids" in {value.name for value in inputs} else
            "detect" if "det" in name else "recognise" if "rec" in name or "cls" in name else "rows")
    level = 0.5 if variant < USUAL else (0.5, 0, 1000)[variant % 3]
    made = {}
    for value in inputs:
        if value.name == "sr":
            made[value.name] = np.array(16000, np.int64)
            continue
        shape = shape_of(name, value, kind, variant)
        if value.type == "tensor(float)":
            made[value.name] = (rng.standard_normal(shape) * level).astype(np.float32)
        elif value.name == "bytes":
            made[value.name] = rng.integers(0, 257, shape).astype(np.int32)
        else:
            high = 2 if "mask" in value.name else 1 if "type" in value.name else 30000
            ids = rng.integers(0, high, shape).astype(np.int64)
            if "mask" in value.name:
                ids[:, 0] = 1  # a text has at least one word
            made[value.name] = ids
    return made


def before_sigmoid(file: bytes) -> bytes:
    """The model with the input of a sigmoid that gives its output in place of this output: ONNX Runtime's sigmoid has steps of
    6e-8, which are large beside the probabilities of a picture without text."""
    model = onnx.load_from_string(file)
    output = model.graph.output[0]
    for node in model.graph.node:
        if node.op_type == "Sigmoid" and output.name == node.output[0]:
            output.name = node.input[0]
            return model.SerializeToString()
    return file


def milliseconds(*calls: Callable[[], object]) -> list[float]:
    """Medians of calls, in turns of some calls for a second or more. ONNX Runtime's threads spin for a while after a call."""
    times = [[] for _ in calls]
    end = time.perf_counter() + 1.5
    while time.perf_counter() < end or len(times[0]) < 15:
        for call, of in zip(calls, times):
            time.sleep(0.05)
            call()
            for _ in range(5):
                start = time.perf_counter()
                call()
                of.append(time.perf_counter() - start)
    return [float(np.median(of)) * 1e3 for of in times]


def difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """Relative to the largest element. Errors: AssertionError for other shapes and dtypes, NaNs elsewhere, and other integers."""
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, f"{got.shape} {got.dtype}, wanted {wanted.shape} {wanted.dtype}"
    if wanted.dtype.kind != "f":
        assert (got == wanted).all(), "integers differ"
        return 0.0
    assert (np.isfinite(got) == np.isfinite(wanted)).all(), "other elements are infinite or NaN"
    there = np.isfinite(wanted)
    if not there.any():
        return 0.0
    return float(np.abs(got[there] - wanted[there]).max() / max(np.abs(wanted[there]).max(), 1e-30))


def compare(path: Path, given: argparse.Namespace) -> str:
    """Errors: what plugrad raises."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = int(os.environ.get("PLUGRAD_THREADS", "0"))
    file = before_sigmoid(path.read_bytes()) if "det" in path.name else path.read_bytes()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    start = time.perf_counter()
    model = pg.onnx.load(file, given.device)
    rng = np.random.default_rng(7)
    worst, least_cosine, report = 0.0, 1.0, ""
    for variant in range(given.inputs):
        inputs = inputs_of(session, path.name, variant if given.extremes else variant % USUAL, rng)
        try:
            wanted = session.run(None, inputs)
        except Exception as error:  # noqa: BLE001: sizes that ONNX Runtime refuses cannot be compared
            report += f", ONNX Runtime refuses {[value.shape for value in inputs.values()]}: {' '.join(str(error).split())[-80:]}"
            continue
        got = [np.asarray(x) for x in model(**inputs)]
        if variant == 0:
            report = f", first result {time.perf_counter() - start:.1f} s"
        for g, w in zip(got, wanted):
            worst = max(worst, difference(g, w))
            if w.dtype.kind == "f" and np.abs(w).max() > 0:
                a, b = g.astype("float64").ravel(), w.astype("float64").ravel()
                least_cosine = min(least_cosine, float(a @ b / np.sqrt((a @ a) * (b @ b))))
    if given.time:
        inputs = inputs_of(session, path.name, 0, rng)
        ours, theirs = milliseconds(lambda: [np.asarray(x) for x in model(**inputs)], lambda: session.run(None, inputs))
        given.ratios.append(theirs / ours)
        report += f", {ours:.3f} ms against {theirs:.3f} ms: {theirs / ours:.2f}"
    return f"largest relative difference {worst:.1e}, least cosine {least_cosine:.6f}{report}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    parser.add_argument("--inputs", type=int, default=10)
    parser.add_argument("--extremes", action="store_true")
    parser.add_argument("--time", action="store_true")
    given = parser.parse_args()
    failed, given.ratios = 0, []
    for path in sorted(given.folder.rglob("*.onnx")):
        if given.filter not in str(path):
            continue
        try:
            print(f"{path.name}: {compare(path, given)}", flush=True)
        except Exception as error:  # noqa: BLE001: each model is reported
            failed += 1
            print(f"{path.name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    if given.ratios:
        print(f"geometric mean {np.exp(np.log(given.ratios).mean()):.2f}, least {min(given.ratios):.2f}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
