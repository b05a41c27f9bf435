"""Functions written as ONNX files: ONNX Runtime and plugrad itself compute from the file what the function computes.

    exports.py [MODEL.onnx]

With a model's file, a call of the loaded model is written and read again, too.
"""
from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime

import plugrad as pg
from plugrad import nn

rng = np.random.default_rng(3)
EXAMPLES = Path(__file__).parents[3] / "docs/examples/python"


def floats(*shape: int) -> pg.Tensor:
    return pg.Tensor(rng.standard_normal(shape).astype(np.float32))


class ConvNet:
    """A network of pictures, with a residual block."""

    def __init__(self) -> None:
        self.stem = nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = nn.Linear(8, 5)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        x = self.norm(self.stem(x)).relu()
        x = x + self.depthwise(x).gelu()
        return self.head(x.max_pool2d(2).mean((2, 3))).log_softmax()


class Transformer:
    """One block over embedded tokens."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(50, 16)
        self.norm = nn.LayerNorm(16)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.out = nn.Linear(16, 50)

    def __call__(self, tokens: pg.Tensor) -> pg.Tensor:
        x = self.norm(self.embedding(tokens))
        heads = [layer(x).reshape(2, 6, 4, 4).transpose(1, 2) for layer in (self.query, self.key, self.value)]
        mixed = pg.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(x + mixed.transpose(1, 2).reshape(2, 6, 16))


def is_close(got: np.ndarray, wanted: np.ndarray) -> bool:
    if wanted.dtype.kind != "f":
        return got.dtype == wanted.dtype and bool((got == wanted).all())
    return got.dtype == wanted.dtype and np.allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


def check(name: str, function: Callable[..., object], *inputs: pg.Tensor, uses: str = "") -> None:
    """The file computes the same; `uses` is an operator that it must have."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        names = [f"in{i}" for i in range(len(inputs))]
        pg.onnx.export(function, list(inputs), path, input_names=names)
        onnx.checker.check_model(str(path), full_check=True)
        operators = {node.op_type for node in onnx.load(path).graph.node}
        assert not uses or uses in operators, f"{name}: {uses} is not in {operators}"
        with nn.training(False):
            result = function(*inputs)
        wanted = [np.asarray(one) for one in (result if isinstance(result, (list, tuple)) else [result])]
        given = dict(zip(names, map(np.asarray, inputs)))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        for runtime, got in ("ONNX Runtime", session.run(None, given)), ("plugrad", pg.onnx.load(path)(**given)):
            for g, w in zip(got, wanted, strict=True):
                assert is_close(np.asarray(g), w), f"{name}: {runtime} gives {np.asarray(g).ravel()[:4]}, wanted {w.ravel()[:4]}"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_examples() -> None:
    """The networks of the examples in Python; those in C++ are in tests/exported."""
    gpt, custom = example("gpt"), example("custom_ops")
    images = floats(2, 1, 28, 28)
    check("gpt.py", gpt.Gpt(20), pg.Tensor(rng.integers(0, 20, (2, gpt.CONTEXT))), uses="Gather")
    check("mnist.py", example("mnist").Net(), images, uses="MaxPool")
    check("mnist_reload.py", example("mnist_reload").network(), images, uses="Relu")
    check("resnet.py", example("resnet").ResNet(8), floats(2, 3, 16, 16), uses="Conv")
    check("xor.py", nn.Sequential(nn.Linear(2, 16), pg.relu, nn.Linear(16, 1)), floats(10, 2))
    check("huber.py", example("huber").huber, floats(7))
    lstm, kept = nn.LSTM(3, 5), pg.Tensor(0.5)

    def run_lstm(x: pg.Tensor, lengths: pg.Tensor) -> list[pg.Tensor]:
        output, state = lstm(x, lengths=lengths)
        return [output, *state]

    check("recurrent.py", run_lstm, floats(4, 2, 3), pg.Tensor([4, 2]), uses="Scan")
    check("a scan", lambda x: pg.scan(lambda state, x: (state * kept + x, state), pg.Tensor(0.0), x), floats(5), uses="Scan")
    check("custom_ops.py", lambda x: [custom.my_gelu(x), custom.my_rms_norm(x, x[0]), custom.my_swiglu(x, x.T, x.T),
                                      custom.round_through(x)], floats(6, 8))
    check("sorts", lambda x: [*x.sort(), *x.topk(3), x.argsort(descending=True)], floats(3, 20))


def main() -> None:
    convnet, transformer = ConvNet(), Transformer()
    with pg.no_grad():
        check("convolutions", convnet, floats(2, 3, 16, 12), uses="Conv")
        check("attention", transformer, pg.Tensor(rng.integers(0, 50, (2, 6))), uses="MatMul")
        check("rows of a table", transformer.embedding, pg.Tensor(rng.integers(0, 50, (2, 6))), uses="Gather")
        check("a list of layers", nn.Sequential(nn.Linear(4, 8), pg.Tensor.tanh, nn.Linear(8, 2)), floats(3, 4), uses="MatMul")
        check("pools", lambda x: [x.max_pool2d(3, stride=2, padding=1), x.avg_pool2d(2)], floats(1, 2, 9, 8), uses="MaxPool")
        check("transposed", lambda x, w: pg.conv_transpose2d(x, w, stride=2), floats(1, 3, 5, 4), floats(3, 2, 3, 3), uses="Conv")
        check("reductions", lambda x: [x.sum(0), x.std(1), x.argmax(1), x.cumsum(1), x.logsumexp(-1)], floats(4, 7))
        check("comparisons", lambda x, y: [(x > y).where(x, y), x.minimum(y), x.clip(-1, 0.5), x == x], floats(5), floats(3, 5))
        check("integers", lambda i: [i // 3, i % 3, i << 2, i ^ 5, i.cast(pg.float32) / 2], pg.Tensor(np.arange(-6, 6)))
        large = pg.Tensor(rng.integers(-2**62, 2**62, (3, 5)))
        check("integers beyond 2^53", lambda i: [i.sum(1), i.sum(), i.prod(0), i.max(1)], large)
        check("indices from the end", lambda x, i: [x.index_select(0, i), x.gather(0, i.reshape(4, 1))], floats(3, 2), pg.Tensor([0, -3, 2, -1]))
        check("rows by equality", lambda x, i: pg.where(pg.Tensor.arange(3).reshape(1, 3, 1) == i.reshape(4, 1, 1), x, 0).sum(1), floats(3, 2), pg.Tensor([2, 3, 0, -1]), uses="Gather")
        check("clamps", lambda x: [x.clamp(-0.5, 0.5), x.clamp(0.5, -0.5), x.relu6()], floats(9), uses="Clip")
        check("bits", lambda x: [x.bitcast(pg.int32), x.bitcast(pg.int32).bitcast(pg.float32)], pg.Tensor([0.0, -0.0, -1.5, 1e-40, np.inf]))
        check("movements", lambda x: [x.flip(1), x.pad(((1, 2), (0, 3))), x[::2, 1:], pg.cat([x, x], 1)], floats(4, 5))
        check_examples()
        if len(sys.argv) > 1:
            model = pg.onnx.load(sys.argv[1])
            given = pg.Tensor(rng.integers(0, 257, (2, 2048)).astype(np.int32))
            check("a model from a file", lambda x: model(x)[0], given)
    try:
        pg.onnx.export(lambda x: x * pg.Tensor.rand(3), [floats(3)], "random.onnx")
    except NotImplementedError as error:
        assert "random numbers" in str(error) and not Path("random.onnx").exists(), error
    else:
        raise AssertionError("random numbers were written")


main()
