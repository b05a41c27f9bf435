"""Compares the operators of com.microsoft with ONNX Runtime on small models.

    microsoft_cases.py [--device D] [--filter TEXT]

Prints how many agree and a line for each case that does not. Needs the packages onnx and onnxruntime.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import plugrad as pg

Array = np.ndarray
DOMAIN = "com.microsoft"


@dataclass
class Case:
    """A node with its inputs (None: left out). `outputs` are the numbers of those that the model has."""

    name: str
    op: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, object] = field(default_factory=dict)
    outputs: tuple[int, ...] = (0,)
    domain: str = DOMAIN
    tolerance: float = 1e-4
    parts: tuple[Callable[[Array], Array], ...] = ()  # the part of each output that is specified
    opset: int = 17
    like: Case | None = None  # gives the same on ONNX Runtime, which does not have this form on the CPU


RNG = np.random.default_rng(7)


def normal(*shape: int, dtype: str = "float32") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype: str = "int32") -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def model_of(case: Case) -> bytes:
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(case.inputs)]
    results = [f"y{i}" if i in case.outputs else "" for i in range(max(case.outputs) + 1)]
    node = helper.make_node(case.op, names, results, domain=case.domain, **case.attributes)
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for name, value in zip(names, case.inputs) if value is not None]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) if "HeadAttention" in case.op or
               "QueryAttention" in case.op else helper.make_empty_tensor_value_info(name)
               for name in results if name]
    graph = helper.make_graph([node], case.name, inputs, outputs)
    opsets = [helper.make_opsetid("", case.opset), helper.make_opsetid(DOMAIN, 1), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def named_inputs(case: Case) -> dict[str, Array]:
    return {f"x{i}": value for i, value in enumerate(case.inputs) if value is not None}


def run(case: Case, folder: Path, device: str) -> None:
    """Errors: what plugrad or ONNX Runtime raises, and AssertionError for wrong values."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    oracle = case.like or case
    session = onnxruntime.InferenceSession(model_of(oracle), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, named_inputs(oracle))
    path = folder / "model.onnx"
    path.write_bytes(model_of(case))
    with pg.device(device):
        got = pg.onnx.load(path, device)(*named_inputs(case).values())
    for i, (g, w) in enumerate(zip(got if isinstance(got, (list, tuple)) else [got], wanted)):
        g = g.numpy() if isinstance(g, pg.Tensor) else g
        assert g.shape == w.shape, f"output {i}: shape {g.shape}, wanted {w.shape}"
        assert g.dtype == w.dtype, f"output {i}: dtype {g.dtype}, wanted {w.dtype}"
        if w.dtype == object:
            np.testing.assert_array_equal(g, w)
            continue
        if i < len(case.parts):
            g, w = case.parts[i](g), case.parts[i](w)
        np.testing.assert_allclose(g.astype("float64"), w.astype("float64"), rtol=case.tolerance,
                                   atol=case.tolerance, err_msg=f"output {i}")


def norm_cases() -> list[Case]:
    x, skip, gamma, beta, bias = normal(2, 5, 8), normal(2, 5, 8), normal(8), normal(8), normal(8)
    ids, segments = integers(0, 11, 2, 5), integers(0, 2, 2, 5)
    words, places, parts = normal(11, 8), normal(9, 8), normal(2, 8)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], "int32")
    embed = "EmbedLayerNormalization"
    return [
        Case("simplified", "SimplifiedLayerNormalization", [x, gamma], {"epsilon": 1e-5, "axis": -1}, (0, 1), ""),
        Case("simplified axis 1", "SimplifiedLayerNormalization", [x, normal(5, 8)], {"axis": 1}, domain=""),
        Case("skip", "SkipLayerNormalization", [x, skip, gamma], {"epsilon": 1e-3}),
        Case("skip all", "SkipLayerNormalization", [x, skip, gamma, beta, bias], {}, (0, 3)),
        Case("skip of one sample", "SkipLayerNormalization", [x, skip[:1], gamma, beta], {}),
        Case("skip without batch", "SkipLayerNormalization", [x, skip[0], gamma, beta], {}),
        Case("skip simplified", "SkipSimplifiedLayerNormalization", [x, skip, gamma], {}, (0, 3)),
        Case("skip simplified bias", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], {}, (0, 3)),
        Case("embed", embed, [ids, segments, words, places, parts, gamma, beta, mask], {"epsilon": 1e-6}, (0, 1)),
        Case("embed without segments", embed, [ids, None, words, places, None, gamma, beta], {}, (0, 1)),
        Case("embed positions", embed,
             [ids, segments, words, places, parts, gamma, beta, mask, integers(0, 9, 2, 5)], {}, (0, 1, 2)),
    ]


def activation_cases() -> list[Case]:
    x, bias = normal(3, 4, 8), normal(8)
    return [
        Case("gelu", "Gelu", [x], tolerance=1e-5),
        Case("bias gelu", "BiasGelu", [x, bias]),
        Case("fast gelu", "FastGelu", [x]),
        Case("fast gelu bias", "FastGelu", [x, bias]),
        Case("quick gelu", "QuickGelu", [x]),
        Case("quick gelu alpha", "QuickGelu", [x], {"alpha": 0.8}),
    ]


def bits_case(name: str, bits: int, n: int, k: int, block: int, *, zeros: str = "", bias: bool = False,
              rows: tuple[int, ...] = (2, 3), groups: Array | None = None) -> Case:
    blocks = -(-k // block)
    packed = integers(0, 256, n, blocks, block * bits // 8, dtype="uint8")
    scale = (normal(n, blocks) / 10).astype("float32")
    zero = {"": None, "packed": integers(0, 256, n, -(-blocks * bits // 8), dtype="uint8"),
            "float": (normal(n, blocks) + 7).astype("float32")}[zeros]
    return Case(name, "MatMulNBits", [normal(*rows, k), packed, scale, zero, groups,
                                       normal(n) if bias else None],
                {"K": k, "N": n, "bits": bits, "block_size": block})


def sum_cases() -> list[Case]:
    """Sums and products of quantised numbers, with many halves between two numbers of the result."""
    a, b = integers(-128, 128, 4, 999, dtype="int8"), integers(-128, 128, 4, 999, dtype="int8")
    fine, coarse, third = (np.array(scale, "float32") for scale in (0.5, 2, 1 / 127))
    odd, other = np.array(7, "int8"), np.array(-12, "int8")
    return [
        *(Case(f"quantised {op} {name}", f"QLinear{op}", [a, scale, odd, b, fine, other, coarse, zero], tolerance=0)
          for op in ("Add", "Mul") for name, scale, zero in (("halves", fine, odd), ("thirds", third, other))),
        Case("quantised Add of a number", "QLinearAdd", [a, third, odd, b[:1, :1], third, odd, np.array(2 / 255, "float32"), np.array(-128, "int8")],
             tolerance=0),
        *(Case(f"quantised LSTM of {steps} steps", "DynamicQuantizeLSTM",
               [normal(steps, 1, 6), *(integers(-128, 128, 2, rows, 20, dtype="int8") for rows in (6, 5)), normal(2, 40), None,
                normal(2, 1, 5), normal(2, 1, 5), None, np.array([0.01, 0.02], "float32"), np.array([0, 3], "int8"),
                np.array([0.02, 0.01], "float32"), np.array([0, 0], "int8")],
               {"hidden_size": 5, "direction": "bidirectional"}, (0, 1, 2), tolerance=1e-3) for steps in (3, 30)),
        Case("quantised Add of bytes", "QLinearAdd", [a.view("uint8"), fine, odd.view("uint8"), b.view("uint8"), fine, odd.view("uint8"), coarse,
                                                      odd.view("uint8")], tolerance=0)]


def product_cases() -> list[Case]:
    a, b = normal(2, 3, 4), normal(2, 4, 5)
    x = normal(2, 3, 8)
    quantised, scales = integers(0, 256, 8, 6, dtype="uint8"), np.abs(normal(6)) / 100
    signed, zeros = integers(-128, 128, 8, 6, dtype="int8"), integers(0, 256, 6, dtype="uint8")
    left, one = integers(0, 256, 2, 3, 8, dtype="uint8"), np.array(0.02, "float32")
    bias, middle = normal(6), np.array(128, "uint8")
    image = integers(0, 256, 2, 3, 7, 6, dtype="uint8")
    groups = np.repeat(np.array([1, 0, 2], "int32"), 16)  # the block of each input
    dynamic, mixed = "DynamicQuantizeMatMul", "MatMulIntegerToFloat"
    return [
        Case("fused", "FusedMatMul", [a, b], {"alpha": 0.5}),
        Case("fused transposed", "FusedMatMul", [a.transpose(0, 2, 1).copy(), b.transpose(0, 2, 1).copy()],
             {"transA": 1, "transB": 1}),
        Case("fused batches", "FusedMatMul", [a.transpose(1, 0, 2).copy(), b.transpose(1, 0, 2).copy()],
             {"transBatchA": 1, "transBatchB": 1}),
        Case("fused batches and transposed", "FusedMatMul",
             [a.transpose(2, 0, 1).copy(), b.transpose(2, 0, 1).copy()],
             {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1}),
        Case("fused vector", "FusedMatMul", [normal(4), b], {"alpha": 2.0}),
        Case("quantised pool", "QLinearAveragePool", [image, one, middle, np.array(0.0317, "float32"), middle],
             {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}, tolerance=0),
        Case("quantised pool with padding", "QLinearAveragePool", [image, one, middle, np.array(0.0317, "float32"), np.array(3, "uint8")],
             {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}, tolerance=0),
        Case("quantised softmax", "QLinearSoftmax", [image, one, middle, np.array(1 / 256, "float32"), np.array(0, "uint8")],
             {"axis": 1, "opset": 13}, tolerance=0),
        Case("quantised softmax of rows", "QLinearSoftmax", [image, one, middle, np.array(1 / 256, "float32"), np.array(0, "uint8")],
             {"axis": 2, "opset": 11}, tolerance=0),
        Case("quantised gemm", "QGemm", [left[0], one, middle, signed, scales, np.zeros(6, "int8"), integers(-999, 999, 6)]),
        Case("quantised gemm of bytes", "QGemm",
             [left[0], one, middle, signed.T.copy(), scales, np.zeros(6, "int8"), None, np.array(0.05, "float32"), middle],
             {"transB": 1, "alpha": 0.7}, tolerance=0),
        bits_case("4 bits", 4, 5, 32, 16),
        bits_case("4 bits zero points", 4, 5, 48, 16, zeros="packed", bias=True),
        bits_case("4 bits float zero points", 4, 8, 64, 32, zeros="float"),
        bits_case("4 bits rest", 4, 5, 40, 16, zeros="packed"),
        bits_case("4 bits groups", 4, 5, 48, 16, groups=groups),
        bits_case("8 bits", 8, 6, 64, 32, zeros="packed"),
        bits_case("2 bits", 2, 6, 64, 16),
        bits_case("4 bits two axes", 4, 6, 64, 32, rows=(3,)),
        Case("dynamic", dynamic, [x, quantised, one], tolerance=1e-3),
        Case("dynamic columns", dynamic, [x, quantised, scales, zeros, bias], tolerance=1e-3),
        Case("dynamic signed", dynamic, [x, signed, scales], tolerance=1e-3),
        Case("integer to float", mixed, [left, quantised, one, one]),
        Case("integer to float columns", mixed, [left, quantised, one, scales, middle, zeros, bias]),
        Case("integer to float signed", mixed, [left, signed, one, scales, middle]),
    ]


def fused_cases() -> list[Case]:
    """Operators that optimising sessions write. The quantised weights have 7 bits: with 8, ONNX Runtime's sums saturate on AVX2."""
    x, weight, bias, summed = normal(2, 4, 9, 8), normal(6, 4, 3, 3) / 3, normal(6), normal(2, 6, 9, 8)
    same = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    parameters = {"Relu": [], "Sigmoid": [], "Tanh": [], "LeakyRelu": [0.3], "Clip": [-0.2, 0.5], "HardSigmoid": [0.3, 0.4]}
    conv = [Case(f"fused conv {name}", "FusedConv", [x, weight, bias, summed],
                 same | {"activation": name} | ({"activation_params": given} if given else {})) for name, given in parameters.items()]
    options = {"LeakyRelu": {"activation_alpha": 0.3}, "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4}, "Relu": {}, "Softsign": {},
               "Elu": {"activation_alpha": 0.7}, "Selu": {"activation_alpha": 1.5, "activation_gamma": 1.1}, "ThresholdedRelu": {"activation_alpha": 0.3}}
    image, kernel = integers(0, 256, 2, 7, 6, 4, dtype="uint8"), integers(-60, 60, 6, 4, 3, 3, dtype="int8")
    step, zero, scales = np.array(0.02, "float32"), np.array(120, "uint8"), np.abs(normal(6)) / 100
    quantised = [image, step, zero, kernel, scales, np.zeros(6, "int8"), np.array(0.05, "float32"), np.array(7, "uint8"), integers(-999, 999, 6)]
    last = {"channels_last": 1, "kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    return conv + [
        Case("fused quantised conv of last channels", "QLinearConv", quantised, last, tolerance=0),
        Case("fused pool of last channels", "NhwcMaxPool", [image], {name: last[name] for name in ("kernel_shape", "strides", "pads")}, tolerance=0),
        Case("fused quantised pool of last channels", "QLinearAveragePool", [image, step, zero, np.array(0.0317, "float32"), zero], last, tolerance=0),
        Case("fused conv without activation", "FusedConv", [x, weight[:, :2], None, summed[:, :, ::2, ::2].copy()],
             same | {"group": 2, "strides": [2, 2]}),
        *(Case(f"fused gemm {name}", "FusedGemm", [normal(4, 3), normal(5, 3), normal(5)], {"activation": name, "transB": 1, "alpha": 0.5} | given)
          for name, given in options.items())]


def token_cases() -> list[Case]:
    texts = np.array([["one, two;three", "ab  \u00e4\u00f6 c"], ["", ",;, a1b22"]], object)
    shared, words = {"pad_value": "#", "mark": 0, "mincharnum": 1}, {"separators": [" ", "[,;]"]}
    return [
        Case("tokens", "Tokenizer", [texts], shared | words),
        Case("tokens with marks", "Tokenizer", [texts[0]], shared | words | {"mark": 1}),
        Case("tokens of two characters", "Tokenizer", [texts], shared | words | {"mincharnum": 2}),
        Case("tokens of characters", "Tokenizer", [texts], shared | {"separators": [""], "mark": 1}),
        Case("tokens of an expression", "Tokenizer", [texts], shared | {"tokenexp": "[a-z]+|[0-9]|\u00e4"}),
        Case("tokens of a long expression", "Tokenizer", [texts], shared | {"tokenexp": "[a-z0-9]+", "mincharnum": 3, "mark": 1}),
        Case("no tokens", "Tokenizer", [np.array(["", ",,"], object)], shared | words | {"mark": 1}),
    ]


def rotary_cases() -> list[Case]:
    angles = normal(10, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    flat, heads = normal(2, 3, 16), normal(2, 2, 3, 8)
    ids, first = integers(0, 10, 2, 3, dtype="int64"), np.array([2], "int64")
    op = "RotaryEmbedding"
    return [
        Case("rotary", op, [flat, ids, cos, sin]),
        Case("rotary interleaved", op, [flat, ids, cos, sin], {"interleaved": 1}),
        Case("rotary heads", op, [heads, ids, cos, sin]),
        Case("rotary first position", op, [heads, first, cos, sin]),
        Case("rotary part", op, [normal(2, 3, 24), ids, cos, sin], {"num_heads": 2, "rotary_embedding_dim": 8}),
    ]


def attention_cases() -> list[Case]:
    x, weights, bias = normal(2, 4, 12), normal(12, 36), normal(36)
    past = normal(2, 2, 3, 2, 4)
    lengths, bounds = np.array([3, 4], "int32"), np.array([4, 3, 1, 0], "int32")
    keys = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "int32")
    queries = integers(0, 2, 2, 4, 4) | np.eye(4, dtype="int32")
    three = {"num_heads": 3}
    both = (0, 1)
    return [
        Case("attention", "Attention", [x, weights, bias], three),
        Case("attention causal", "Attention", [x, weights, bias], three | {"unidirectional": 1}),
        Case("attention lengths", "Attention", [x, weights, bias, lengths], three),
        Case("attention bounds", "Attention", [x, weights, bias, bounds], three),
        Case("attention keys", "Attention", [x, weights, bias, keys], three | {"mask_filter_value": -50.0}),
        Case("attention queries", "Attention", [x, weights, bias, queries], three),
        Case("attention past", "Attention", [x, weights, bias, None, past], three | {"unidirectional": 1}, both),
        Case("attention past keys", "Attention",
             [x, weights, bias, np.concatenate([np.ones((2, 2), "int32"), keys], 1), past], three, both),
        Case("attention bias", "Attention", [x, weights, bias, None, None, normal(1, 3, 4, 4)], three),
        Case("attention scale", "Attention", [x, weights, bias], three | {"scale": 0.3}),
        Case("attention sizes", "Attention", [x, normal(12, 30), normal(30)],
             three | {"qkv_hidden_sizes": [12, 12, 6]}),
    ]


def multi_head_cases() -> list[Case]:
    q, k, v, bias = normal(2, 4, 12), normal(2, 5, 12), normal(2, 5, 6), normal(30)
    past_k, past_v = normal(2, 3, 2, 4), normal(2, 3, 2, 4)
    packed, pairs = normal(2, 4, 3, 3, 4), normal(2, 5, 3, 2, 4)
    op, three = "MultiHeadAttention", {"num_heads": 3}
    keys = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 1]], "int32")
    return [
        Case("heads", op, [q, k, v], three),
        Case("heads bias", op, [q, k, v, bias], three),
        Case("heads keys", op, [q, k, v, None, keys], three),
        Case("heads lengths", op, [q, k, v, None, np.array([3, 5], "int32")], three),
        Case("heads scores", op, [q, k, v, None, None, normal(1, 3, 4, 5)], three),
        Case("heads scores of samples", op, [q, k, v, None, None, normal(2, 1, 4, 5)], three | {"scale": 0.2}),
        Case("heads past", op, [q, k, k, normal(36), None, None, past_k, past_v], three, (0, 1, 2)),
        Case("heads causal", op, [q, q, normal(2, 4, 6)], three | {"unidirectional": 1}),
        Case("heads packed", op, [packed], three,
             like=Case("parts", op, [packed[:, :, :, i].reshape(2, 4, 12) for i in range(3)], three)),
        Case("heads packed keys", op, [q, pairs], three,
             like=Case("parts", op, [q, *(pairs[:, :, :, i].reshape(2, 5, 12) for i in range(2))], three)),
        Case("heads of a cache", op, [q, normal(2, 3, 5, 4), normal(2, 3, 5, 4)], three),
        Case("heads scores shown", op, [q, k, v], three, (0, 3)),
        Case("heads biased scores shown", op, [q, k, v, None, keys, normal(1, 3, 4, 5)], three, (0, 3)),
    ]


def group_case(name: str, *, length: int, before: int = 0, capacity: int = 0, packed: bool = False,
               totals: list[int] | None = None, rotary: bool = False, outputs: tuple[int, ...] = (0, 1, 2),
               extra: dict[int, Array] | None = None, **attributes: object) -> Case:
    """Two heads of 16 elements for each of two shared heads."""
    batch = len(totals) if totals else 2
    total = before + length
    q = normal(batch, length, 128 if packed else 64)
    keys = [None, None] if packed else [normal(batch, length, 32), normal(batch, length, 32)]
    cache = [normal(batch, 2, capacity or before, 16) for _ in range(2)] if before or capacity else [None, None]
    angles = normal(16, 8)
    inputs = [q, *keys, *cache, np.array(totals or [total] * batch, "int32") - 1, np.array(total, "int32"),
              *([np.cos(angles), np.sin(angles)] if rotary else [None, None])]
    for at, value in (extra or {}).items():
        inputs += [None] * (at + 1 - len(inputs))
        inputs[at] = value
    while inputs[-1] is None:
        inputs.pop()
    ends = totals or [total] * batch

    def valid_rows(y: Array) -> Array:
        return np.concatenate([y[i, : end - before].ravel() for i, end in enumerate(ends)])

    def valid_keys(y: Array) -> Array:
        return np.concatenate([y[i, :, :end].ravel() for i, end in enumerate(ends)])

    return Case(name, "GroupQueryAttention", inputs,
                {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary)} | attributes, outputs,
                parts=(valid_rows, valid_keys, valid_keys))


def group_cases() -> list[Case]:
    return [
        group_case("groups", length=5),
        group_case("groups packed", length=5, packed=True),
        group_case("groups rotary", length=5, rotary=True),
        group_case("groups rotary interleaved", length=5, rotary=True, rotary_interleaved=1),
        group_case("groups packed rotary", length=5, packed=True, rotary=True),
        group_case("groups step", length=1, before=4),
        group_case("groups step rotary", length=1, before=4, rotary=True),
        group_case("groups step in a buffer", length=1, before=4, capacity=8, rotary=True),
        group_case("groups chunk", length=3, before=4, totals=[7], rotary=True),
        group_case("groups padded chunk", length=4, before=4, capacity=10, totals=[7, 6], rotary=True,
                   extra={16: np.array([3, 2], "int32")}),
        group_case("groups padded", length=5, totals=[5, 3]),
        group_case("groups window", length=6, local_window_size=3),
        group_case("groups step window", length=1, before=6, local_window_size=3),
        group_case("groups cap", length=5, softcap=2.0, scale=0.9),
        group_case("groups smooth", length=5, smooth_softmax=1),
        group_case("groups sink", length=5, extra={11: normal(4)}),
        group_case("groups scores", length=5, extra={10: normal(1, 4, 5, 5)}),
        group_case("groups both ways", length=5, causal=0),
        group_case("groups positions", length=1, before=4, rotary=True,
                   extra={9: np.array([[4], [4]], "int64")}),
        group_case("groups probabilities", length=4, outputs=(0, 1, 2, 3), qk_output=2),
        group_case("groups scores shown", length=4, outputs=(0, 1, 2, 3), qk_output=1, softcap=1.5,
                   extra={10: normal(1, 4, 4, 4)}),
        group_case("groups raw scores", length=4, outputs=(0, 1, 2, 3), qk_output=1),
    ]


def compare(all_cases: list[Case], description: str | None) -> int:
    """The program: runs the cases that --filter names. Returns 1 if one differs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    cases = [case for case in all_cases if re.search(given.filter, case.name)]
    start, passed = time.time(), 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            try:
                run(case, Path(folder), given.device)
                passed += 1
            except Exception as error:  # noqa: BLE001: each outcome is shown
                print(f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    print(f"{passed} of {len(cases)} cases agree on {given.device}, {time.time() - start:.0f} s")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(compare(norm_cases() + activation_cases() + sum_cases() + product_cases() + fused_cases() + token_cases() + rotary_cases() + attention_cases()
                     + multi_head_cases() + group_cases(), __doc__))
