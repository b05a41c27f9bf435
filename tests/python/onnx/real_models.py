"""Compares models of packages with ONNX Runtime, on inputs that suit each model.

    real_models.py FOLDER [--device D] [--filter TEXT] [--inputs N] [--time]

FOLDER has .onnx files at any depth. Prints the largest difference of each output relative to its largest element, and with --time
the milliseconds of a call of both from arrays to arrays, in turns, and their ratio. PLUGRAD_THREADS is for both.
"""
from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

import plugrad as pg

SIZES = {"wave": [(1, 576), (3, 576)], "text": [(1, 16), (2, 128)], "detect": [(1, 3, 96, 96), (1, 3, 160, 224)],
         "recognise": [(1, 3, 48, 160), (2, 3, 48, 320)]}


def inputs_of(session: onnxruntime.InferenceSession, path: Path, variant: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs with the declared sizes, and sizes of the model's kind for the others."""
    name = path.name
    made = {}
    for value in session.get_inputs():
        free = [size if isinstance(size, int) else None for size in value.shape]
        if value.name == "sr":
            made[value.name] = np.array(16000, np.int64)
            continue
        if "silero" in name:
            rows = 1 + variant % 2
            shape = {"input": (rows, 576), "state": (2, rows, 128)}.get(value.name, (1, 1, 128))
            if "16k_sequence" in name or "v6" in name:
                shape = {"input": (rows + 2, 576)}.get(value.name, (1, 1, 128))
            if "openvino" in name:
                shape = {"input": (1, 576), "state": (2, 1, 128)}[value.name]
        elif "det" in name:
            shape = SIZES["detect"][variant % 2]
        elif "rec" in name or "cls" in name:
            shape = SIZES["recognise"][variant % 2]
        elif "input_ids" in {v.name for v in session.get_inputs()}:
            shape = SIZES["text"][variant % 2]
        else:
            shape = tuple(1 + variant % 3 if size is None else size for size in free)
        if value.type == "tensor(float)":
            made[value.name] = rng.standard_normal(shape).astype(np.float32) * 0.5
        elif value.name == "bytes":
            made[value.name] = rng.integers(0, 257, shape).astype(np.int32)
        else:
            high = 2 if "mask" in value.name else 1 if "type" in value.name else 30000
            made[value.name] = np.maximum(rng.integers(0, high, shape), "mask" in value.name).astype(np.int64)
    return made


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


def compare(path: Path, given: argparse.Namespace) -> str:
    """Errors: what plugrad raises."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = int(os.environ.get("PLUGRAD_THREADS", "0"))
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    start = time.perf_counter()
    model = pg.onnx.load(path, given.device)
    rng = np.random.default_rng(7)
    worst, report = 0.0, ""
    for variant in range(given.inputs):
        inputs = inputs_of(session, path, variant, rng)
        wanted = session.run(None, inputs)
        got = [np.asarray(x) for x in model(**inputs)]
        if variant == 0:
            report = f", first result {time.perf_counter() - start:.1f} s"
        for g, w in zip(got, wanted):
            assert g.shape == w.shape and g.dtype == w.dtype, f"{g.shape} {g.dtype}, wanted {w.shape} {w.dtype}"
            if w.dtype.kind == "f":
                worst = max(worst, float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-30)))
            else:
                assert (g == w).all(), "integers differ"
    if given.time:
        inputs = inputs_of(session, path, 0, rng)
        ours, theirs = milliseconds(lambda: [np.asarray(x) for x in model(**inputs)], lambda: session.run(None, inputs))
        given.ratios.append(theirs / ours)
        report += f", {ours:.3f} ms against {theirs:.3f} ms: {theirs / ours:.2f}"
    return f"largest relative difference {worst:.1e}{report}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    parser.add_argument("--inputs", type=int, default=2)
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
