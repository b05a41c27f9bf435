"""Runs files that an optimising session of ONNX Runtime saved, and compares them with that session.

    optimised_files.py [--device D]

Networks of convolutions are saved with ORT_ENABLE_EXTENDED (FusedConv, FusedGemm, FusedMatMul) and ORT_ENABLE_ALL, whose tensors have
blocks of channels (com.microsoft.nchwc). Prints how many agree and a line for each that does not. Needs the packages onnx and
onnxruntime.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnxruntime import GraphOptimizationLevel

import plugrad as pg

RNG = np.random.default_rng(5)
LEVELS = {"extended": GraphOptimizationLevel.ORT_ENABLE_EXTENDED, "all": GraphOptimizationLevel.ORT_ENABLE_ALL}
# What the files must have together, so that a newer ONNX Runtime that writes others does not test less.
WANTED = {"com.microsoft.FusedConv", "com.microsoft.FusedGemm",
          *(f"com.microsoft.nchwc.{op}" for op in ("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput",
                                                   "ReorderOutput", "Upsample"))}
ACTIVATIONS = {"Relu": {}, "Sigmoid": {}, "Tanh": {}, "LeakyRelu": {"alpha": 0.2}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4}, "Clip": {}}


class Network:
    """A graph that grows at its end."""

    def __init__(self, name: str, channels: int, size: tuple[int, ...]) -> None:
        self.name, self.channels, self.shape = name, channels, (2, channels, *size)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.last, self.outputs = "x", []

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def normal(self, *shape: int) -> str:
        scale = np.sqrt(np.prod(shape[1:]))
        return self.constant((RNG.standard_normal(shape) / scale).astype(np.float32))

    def add(self, op: str, *more: str, **attributes: object) -> Network:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *more], [out], **attributes))
        self.last = out
        return self

    def conv(self, channels: int, kernel: int = 3, *, groups: int = 1, bias: bool = True, **attributes: object) -> Network:
        weights = self.normal(channels, self.channels // groups, *[kernel] * (len(self.shape) - 2))
        self.channels = channels
        pads = [kernel // 2] * (2 * (len(self.shape) - 2))
        return self.add("Conv", weights, *([self.normal(channels)] if bias else []), group=groups, pads=pads, **attributes)

    def activation(self, op: str) -> Network:
        limits = [self.constant(np.array(limit, np.float32)) for limit in (-0.1, 0.4)] if op == "Clip" else []
        return self.add(op, *limits, **ACTIVATIONS[op])

    def end(self) -> Network:
        self.outputs.append(self.last)
        return self

    def model(self) -> bytes:
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, self.name, [value("x", TensorProto.FLOAT, self.shape)],
                                  [value(name, TensorProto.FLOAT, None) for name in self.outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def networks() -> Iterator[Network]:
    residual = Network("residual", 3, (33, 31)).conv(24, strides=[2, 2]).activation("Relu").add(
        "MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    before = residual.last
    residual.conv(24).add("Add", before).activation("Relu").conv(24, 1).activation("Relu").add("GlobalAveragePool").add("Flatten").end()
    weights, bias = residual.normal(24, 11), residual.normal(11)
    yield residual.add("Gemm", weights, bias).activation("LeakyRelu").end()
    for op in ACTIVATIONS:
        yield Network(f"activation {op}", 8, (9, 9)).conv(24).activation(op).conv(16, 1).activation(op).end()
    separable = Network("separable", 3, (24, 20))
    for channels, stride in ((24, 2), (40, 1)):
        separable.conv(channels, 1).activation("Clip").conv(channels, groups=channels, strides=[stride, stride], bias=False).activation("Relu")
    yield separable.add("AveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]).conv(16, 1).add("GlobalMaxPool").end()
    yield Network("groups", 16, (8, 8)).conv(32, groups=2).activation("Relu").conv(64, groups=4, dilations=[1, 1]).end()
    scales = np.array([1, 1, 2, 3], np.float32)
    for mode, coordinates in (("nearest", "asymmetric"), ("linear", "asymmetric"), ("linear", "align_corners"), ("linear", "half_pixel")):
        up = Network(f"larger {mode} {coordinates}", 8, (5, 4)).conv(16)
        yield up.add("Resize", "", up.constant(scales), mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor").conv(12).end()
    joined = Network("joined", 16, (7, 7)).conv(16).activation("Relu")
    first = joined.last
    joined.conv(32).activation("Sigmoid").add("Concat", first, axis=1)
    joined.channels = 48
    yield joined.conv(20, 1, strides=[2, 2]).add("AveragePool", kernel_shape=[2, 2], count_include_pad=1, pads=[1, 0, 1, 0]).end()
    yield Network("signal", 8, (40,)).conv(16, 5).activation("Tanh").conv(12).end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default=pg.default_device())
    given = parser.parse_args()
    found: Counter[str] = Counter()
    passed, count = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for network in networks():
            x = RNG.standard_normal(network.shape).astype(np.float32)
            for level, value in LEVELS.items():
                path = Path(folder) / "optimised.onnx"
                options = onnxruntime.SessionOptions()
                options.graph_optimization_level, options.optimized_model_filepath, options.log_severity_level = value, str(path), 4
                wanted = onnxruntime.InferenceSession(network.model(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
                found.update(f"{node.domain}.{node.op_type}" for node in onnx.load(path).graph.node)
                count += 1
                try:
                    for g, w in zip(pg.onnx.load(path, given.device)(x), wanted):
                        np.testing.assert_allclose(g.numpy(), w, rtol=1e-4, atol=1e-5 * np.abs(w).max())
                    passed += 1
                except Exception as error:  # noqa: BLE001: each outcome is shown
                    print(f"{network.name} {level}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    missing = WANTED - set(found)
    if missing:
        print(f"no file has {', '.join(sorted(missing))}")
    print(f"{passed} of {count} files agree on {given.device}")
    return 0 if passed == count and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
