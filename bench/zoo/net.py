"""A compact writer of ONNX networks with random weights that are the same on every machine."""
from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str]
IR_VERSION = 8


class Value(str):
    """The name of a value; `width` is its number of channels or features where that is known."""

    width: int = 0

    def __new__(cls, name: str, width: int = 0) -> Value:
        value = super().__new__(cls, name)
        value.width = width
        return value


class Net:
    """Any ONNX operator is a method: `net.Add(x, 0.5)`, `net.Split(x, outputs=2, axis=1)`. Arrays, lists of
    integers and numbers become constants. `opset` is that of ai.onnx."""

    def __init__(self, name: str, opset: int = 17, outer: Net | None = None) -> None:
        self.name, self.opset, self.outer = name, opset, outer
        self.root: Net = outer.root if outer else self
        self.nodes: list[onnx.NodeProto] = []
        self.places: list[onnx.ValueInfoProto] = []
        self.results: list[onnx.ValueInfoProto] = []
        if not outer:
            self.constants: dict[str, onnx.TensorProto] = {}
            self.arrays: dict[str, np.ndarray] = {}
            self.domains = {"": opset}
            self.count = 0
            self.random = np.random.PCG64(zlib.crc32(name.encode()))

    def fresh(self, kind: str) -> str:
        self.root.count += 1
        return f"{kind}_{self.root.count}"

    def uniform(self, *shape: int) -> np.ndarray:
        """From -1 to 1, of the bit generator's raw numbers, which no version of NumPy changes."""
        raw = self.root.random.random_raw(int(np.prod(shape, dtype=np.int64)))
        return ((raw >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)).reshape(shape)

    def integers(self, high: int, *shape: int) -> np.ndarray:
        return (self.root.random.random_raw(int(np.prod(shape, dtype=np.int64))) % np.uint64(high)).astype(np.int64).reshape(shape)

    # Values

    def input(self, name: str, *shape: int | str, value: np.ndarray | None = None, high: int = 0) -> Value:
        """A size may be a text: "batch=1" is open in the file. Random floats, or integers below `high`, or `value`."""
        sizes = [int(size.partition("=")[2]) if isinstance(size, str) else size for size in shape]
        if value is None:
            value = self.integers(high, *sizes) if high else 1.5 * self.uniform(*sizes)
        self.root.arrays[name] = value
        declared = [size.partition("=")[0] if isinstance(size, str) else size for size in shape]
        self.places.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), declared))
        return Value(name, sizes[1] if len(sizes) > 2 else sizes[-1] if sizes else 0)

    def const(self, value: object, width: int = 0) -> Value:
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = self.fresh("c")
        self.root.constants[name] = numpy_helper.from_array(array, name)
        return Value(name, width)

    def weight(self, *shape: int, fan: int = 0, gain: float = 1.0) -> Value:
        """With the variance gain² / fan; fan is by default all axes but the first."""
        fan = fan or int(np.prod(shape[1:])) or 1
        return self.const(self.uniform(*shape) * np.float32(gain * (3 / fan) ** 0.5))

    def around(self, middle: float, width: int, by: float = 0.2) -> Value:
        return self.const(np.float32(middle) + np.float32(by) * self.uniform(width))

    def __getattr__(self, kind: str):
        if not kind[0].isupper():
            raise AttributeError(kind)
        return lambda *inputs, **options: self.node(kind, *inputs, **options)

    def node(self, kind: str, *inputs: object, outputs: int = 1, domain: str = "", **attributes: object):
        if domain:
            self.root.domains.setdefault(domain, {"ai.onnx.ml": 3}.get(domain, 1))
        names = [x if isinstance(x, str) else self.const(x) for x in inputs]
        width = next((x.width for x in names if isinstance(x, Value) and x.width), 0)
        made = [Value(self.fresh(kind.lower()), width) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, made, domain=domain, **attributes))
        return made[0] if outputs == 1 else made

    def output(self, *values: str, dtype: int = TensorProto.FLOAT, rank: int | None = None) -> None:
        """The rank is needed where onnx infers none: behind operators of other domains than its own."""
        for value in values:
            self.results.append(helper.make_tensor_value_info(value, dtype, None if rank is None else [None] * rank))

    # Subgraphs of Loop, If and Scan, which may use values of this graph

    def body(self) -> Net:
        return Net(self.fresh("body"), self.opset, self)

    def place(self, dtype: int = TensorProto.FLOAT, shape: Shape | None = None, width: int = 0) -> Value:
        """An input of a subgraph."""
        name = Value(self.fresh("in"), width)
        self.places.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def graph(self) -> onnx.GraphProto:
        return helper.make_graph(self.nodes, self.name, self.places, self.results, list(getattr(self, "constants", {}).values()))

    # Layers

    def conv(self, x: Value, width: int, size: int = 3, stride: int = 1, groups: int = 1, act: str = "Relu", rank: int = 2,
             dilation: int = 1, norm: bool = False, gain: float = 1.4) -> Value:
        """A convolution with bias, or with BatchNormalization, and an activation ("" for none)."""
        kernel, pad = [size] * rank, dilation * (size - 1) // 2
        bias = [] if norm else [self.around(0, width)]
        y = self.Conv(x, self.weight(width, x.width // groups, *kernel, gain=gain), *bias, kernel_shape=kernel, strides=[stride] * rank,
                      pads=[pad] * 2 * rank, dilations=[dilation] * rank, group=groups)
        y.width = width
        return self.act(self.batch_norm(y) if norm else y, act)

    def batch_norm(self, x: Value) -> Value:
        return self.BatchNormalization(x, *(self.around(middle, x.width) for middle in (1, 0, 0, 1)))

    def act(self, x: Value, kind: str) -> Value:
        if kind == "Swish":
            return self.Mul(x, self.Sigmoid(x))
        if kind == "Gelu":
            return self.Mul(self.Mul(x, self.Add(self.Erf(self.Div(x, 2.0**0.5)), 1.0)), 0.5)
        if kind == "Relu6":
            return self.Clip(x, 0.0, 6.0)
        return self.node(kind, x) if kind else x

    def linear(self, x: Value, width: int, act: str = "", bias: bool = True, gain: float = 1.0) -> Value:
        """Of the last axis."""
        y = self.MatMul(x, self.weight(x.width, width, fan=x.width, gain=gain))
        y.width = width
        return self.act(self.Add(y, self.around(0, width)) if bias else y, act)

    def gemm(self, x: Value, width: int, act: str = "") -> Value:
        """Of a matrix."""
        y = self.Gemm(x, self.weight(width, x.width), self.around(0, width), transB=1)
        y.width = width
        return self.act(y, act)

    def concat(self, *values: Value, axis: int = 1) -> Value:
        y = self.Concat(*values, axis=axis)
        y.width = sum(value.width for value in values)
        return y

    def pool(self, x: Value, size: int = 2, stride: int = 2, pad: int = 0, kind: str = "MaxPool") -> Value:
        return self.node(kind, x, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def layer_norm(self, x: Value) -> Value:
        """As a node from opset 17 on, else as exporters wrote it before."""
        scale, shift = self.around(1, x.width), self.around(0, x.width)
        if self.opset >= 17:
            return self.LayerNormalization(x, scale, shift, axis=-1, epsilon=1e-5)
        centred = self.Sub(x, self.ReduceMean(x, axes=[-1]))
        deviation = self.Sqrt(self.Add(self.ReduceMean(self.Pow(centred, 2.0), axes=[-1]), 1e-5))
        return self.Add(self.Mul(self.Div(centred, deviation), scale), shift)

    def heads(self, x: Value, heads: int, tokens: int, key: bool = False) -> Value:
        """(batch, tokens, width) as (batch, heads, tokens, width / heads), with the last axes swapped for keys."""
        split = self.Reshape(x, [0, tokens, heads, x.width // heads])
        return self.Transpose(split, perm=[0, 2, 3, 1] if key else [0, 2, 1, 3])

    def attend(self, q: Value, k: Value, v: Value, size: int, mask: str | None = None) -> Value:
        """Of (batch, heads, tokens, size) with swapped keys."""
        scores = self.MatMul(self.Mul(q, size**-0.5), k)
        return self.MatMul(self.Softmax(self.Add(scores, mask) if mask else scores, axis=-1), v)

    def attention(self, x: Value, heads: int, tokens: int, mask: str | None = None, memory: Value | None = None,
                  memory_tokens: int = 0) -> Value:
        source, length, width = memory or x, memory_tokens or tokens, x.width
        q, k, v = self.linear(x, width), self.linear(source, width), self.linear(source, width)
        keys, values = self.heads(k, heads, length, key=True), self.heads(v, heads, length)
        y = self.attend(self.heads(q, heads, tokens), keys, values, width // heads, mask)
        y = self.Reshape(self.Transpose(y, perm=[0, 2, 1, 3]), [0, tokens, width])
        y.width = width
        return self.linear(y, width)

    def encoder(self, x: Value, heads: int, tokens: int, mask: str | None = None, act: str = "Gelu", grow: int = 4) -> Value:
        """A block with norms in front."""
        x = self.Add(x, self.attention(self.layer_norm(x), heads, tokens, mask))
        return self.Add(x, self.linear(self.linear(self.layer_norm(x), grow * x.width, act), x.width))

    def pooled_classes(self, x: Value, classes: int) -> Value:
        y = self.Flatten(self.GlobalAveragePool(x))
        y.width = x.width
        return self.gemm(y, classes)

    def embedding(self, ids: str, count: int, width: int) -> Value:
        y = self.Gather(self.weight(count, width, fan=1, gain=0.5), ids)
        y.width = width
        return y

    # Files

    def model(self) -> onnx.ModelProto:
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.domains.items()]
        made = helper.make_model(self.graph(), opset_imports=opsets, ir_version=IR_VERSION, producer_name="zoo")
        with_shapes = onnx.shape_inference.infer_shapes(made).graph.output
        del made.graph.output[:]
        made.graph.output.extend(with_shapes)
        return made

    def write(self, folder: Path) -> Path:
        """NAME.onnx and NAME/INPUT.npy."""
        path = folder / f"{self.name}.onnx"
        path.with_suffix("").mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.model().SerializeToString(deterministic=True))
        for name, value in self.arrays.items():
            np.save(path.with_suffix("") / f"{name}.npy", value)
        return path
