"""Milliseconds from loading a model to its first result, and peak memory, beside ONNX Runtime, each in fresh processes.

    start_times.py FOLDER [--turns N] [--filter TEXT]

FOLDER has .onnx files at any depth. "cold" compiles all kernels, in an empty cache; "warm" finds them there. Of N turns the medians
are shown. Importing the packages does not count. Memory is the process's largest, with the libraries, in MiB.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def session_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = int(os.environ.get("PLUGRAD_THREADS", "0"))
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def first_result(runtime: str, path: Path) -> dict[str, float]:
    """In a process that has imported nothing but NumPy and the runtime."""
    inputs = dict(np.load(os.environ["INPUTS"]))
    start = time.perf_counter()
    if runtime == "plugrad":
        for result in pg.onnx.load(path)(**inputs):
            np.asarray(result)
    else:
        session_of(path).run(None, inputs)
    took = (time.perf_counter() - start) * 1e3
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {"ms": took, "MiB": int(peak.split()[1]) / 1024}


def in_process(runtime: str, path: Path, environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, runtime, str(path)], capture_output=True, text=True, check=True,
                          env=os.environ | environment)
    return done.stdout


def compare(path: Path, turns: int) -> list[dict[str, float]]:
    """Medians of ONNX Runtime, cold and warm."""
    results: list[list[dict[str, float]]] = [[], [], []]
    with tempfile.TemporaryDirectory() as folder:
        environment = {"INPUTS": f"{folder}/inputs.npz"}
        in_process("inputs", path, environment)
        for turn in range(turns):
            cache = {"PLUGRAD_CACHE_DIR": f"{folder}/{turn}"}
            for result, runtime in zip(results, ("onnxruntime", "plugrad", "plugrad")):
                result.append(json.loads(in_process(runtime, path, environment | cache)))
    return [{key: statistics.median(each[key] for each in result) for key in result[0]} for result in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    ratios = []
    print(f"{'model':40} {'ONNX Runtime':>16} {'cold':>16} {'warm':>16}  warm, times as fast")
    for path in sorted(given.folder.rglob("*.onnx")):
        if given.filter in str(path):
            theirs, cold, warm = compare(path, given.turns)
            ratios.append(theirs["ms"] / warm["ms"])
            row = " ".join(f"{each['ms']:7.0f} ms {each['MiB']:4.0f} M" for each in (theirs, cold, warm))
            print(f"{path.name:40} {row}  {ratios[-1]:.2f}", flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    runtime = sys.argv[1] if len(sys.argv) > 1 else ""
    if runtime in ("inputs", "onnxruntime"):
        import onnxruntime
    if runtime == "plugrad":
        import plugrad as pg
    if runtime == "inputs":
        import real_models

        path = Path(sys.argv[2])
        made = real_models.inputs_of(session_of(path), path.name, 0, np.random.default_rng(7))
        np.savez(os.environ["INPUTS"], **made)
    elif runtime in ("onnxruntime", "plugrad"):
        print(json.dumps(first_result(runtime, Path(sys.argv[2]))))
    else:
        main()
