"""ONNX Runtime's time of networks that plugrad wrote beside the same networks written by PyTorch.

    beside_torch.py FOLDER [--threads N] [--turns N] [NETWORK...]

FOLDER is one that `PLUGRAD_TEST_NETWORK=all PLUGRAD_TEST_ONNX=FOLDER pgr_test_bench --gtest_filter=*OnnxFiles` made. Prints for
each network the sizes of both files, the median and least milliseconds of both in turns, and the ratio of the medians.
"""
from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import exported_files

sys.path.append(str(Path(__file__).parents[3] / "bench/peers"))
import networks  # noqa: E402


def session_of(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(name: str, ours: Path, theirs: Path, threads: int, turns: int) -> None:
    values = exported_files.read(ours.with_suffix(".safetensors"))
    given = [values[f"input.{i}"] for i in range(sum(key.startswith("input.") for key in values))]
    data = tuple(torch.from_numpy(np.array(x)) for x in given)
    data = tuple(x.long() if i == 0 and name in networks.TOKENS else x for i, x in enumerate(data))
    torch.onnx.export(networks.NETWORKS[name]().eval(), data, str(theirs), dynamo=False, opset_version=20)
    sessions = [session_of(path, threads) for path in (ours, theirs)]
    times: list[list[float]] = [[], []]
    for turn in range(turns + 1):
        for session, own, given_here in zip(sessions, times, (given, [x.numpy() for x in data])):
            inputs = dict(zip([one.name for one in session.get_inputs()], given_here))
            begin = time.perf_counter()
            session.run(None, inputs)
            if turn > 0:
                own.append((time.perf_counter() - begin) * 1e3)
    sizes = [path.stat().st_size / 1e6 for path in (ours, theirs)]
    ratio = statistics.median(times[0]) / statistics.median(times[1])
    print(f"{name}: {sizes[0]:.1f} MB beside {sizes[1]:.1f}, {statistics.median(times[0]):.1f} ms (least {min(times[0]):.1f}) "
          f"beside {statistics.median(times[1]):.1f} ({min(times[1]):.1f}), ratio {ratio:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Times networks that plugrad wrote beside those of PyTorch.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", default=list(networks.NETWORKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=41)
    given = parser.parse_args()
    for name in given.networks:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, given.folder / f"{name}.onnx", Path(folder) / "torch.onnx", given.threads, given.turns)


main()
