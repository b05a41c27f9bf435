"""Compares operators of integers, quantising ones among them, with onnx.reference on random attributes, shapes and values.

    integer_cases.py [--device D] [--count N] [--seed S] [--filter REGEX]

--count is the number of cases of each kind. Results must be equal bit for bit, either to onnx.reference or, where that
departs from the specification (see corrected_operators), to what the specification says. Prints how many are, and a line
for each case that is not. Needs the package onnx.
"""
from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from corrected_operators import CORRECTED
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import plugrad as pg

Array = np.ndarray
Random = np.random.Generator
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
WIDE = ("int32", "int64", "uint32", "uint64")
SMALL = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2}


@dataclass
class Case:
    """A node with its inputs (None: left out), of which those in `constants` are initialisers."""

    op: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, object] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 25
    constants: Sequence[int] = ()


def ends(dtype: str) -> tuple[int, int]:
    if dtype in SMALL:
        information = ml_dtypes.iinfo(SMALL[dtype])
        return int(information.min), int(information.max)
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def integers(random: Random, shape: Sequence[int], dtype: str, low: int | None = None, high: int | None = None) -> Array:
    """From low to high; a quarter of them near these and near 0."""
    first, last = ends(dtype)
    low, high = first if low is None else low, last if high is None else high
    x = random.integers(low, high, shape, dtype="uint64" if dtype == "uint64" else "int64", endpoint=True)
    near = np.clip(np.array([low, min(low + 1, high), high, max(high - 1, low), *range(-3, 4)], object), low, high)
    x = np.where(random.random(shape) < 0.25, near.astype(x.dtype)[random.integers(0, len(near), shape)], x)
    return x.astype(SMALL.get(dtype, dtype))


def shape_of(random: Random, rank: int | None = None, most: int = 7) -> tuple[int, ...]:
    rank = int(random.integers(0, 5)) if rank is None else rank
    return tuple(int(size) for size in random.integers(1, most + 1, rank))


def broadcast(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    kept = tuple(size if random.random() < 0.7 else 1 for size in shape)
    return kept[int(random.integers(0, len(kept) + 1)) if random.random() < 0.3 else 0:]


def scales(random: Random, shape: Sequence[int], dtype: str = "float32") -> Array:
    """Half of them powers of two, with which many results lie between two integers."""
    exact = np.exp2(random.integers(-6, 3, shape)) * (1 if random.random() < 0.5 else random.uniform(0.5, 1.5, shape))
    return exact.astype(dtype)


def layout(random: Random, shape: tuple[int, ...]) -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of scale and zero point, per tensor, axis or block, and the attributes that say so."""
    kind = random.choice(["tensor", "axis", "block"]) if shape else "tensor"
    axis = int(random.integers(0, max(1, len(shape))))
    named = {"axis": axis - len(shape) if random.random() < 0.3 else axis}
    if kind == "tensor":
        return (), {}
    if kind == "axis":
        return (shape[axis],), named
    block = int(random.integers(1, shape[axis] + 1))
    blocks = -(-shape[axis] // block)
    return (*shape[:axis], blocks, *shape[axis + 1:]), named | {"block_size": block}


def some_constants(random: Random, count: int) -> tuple[int, ...]:
    return tuple(range(1, count)) if random.random() < 0.5 else ()


def quantize(random: Random) -> Case:
    shape = shape_of(random)
    parameters, attributes = layout(random, shape)
    to = str(random.choice(["int8", "uint8", "int16", "uint16", *SMALL]))
    dtype = str(random.choice(["float32", "float32", "float16", "int32"]))
    scale = scales(random, parameters, "float16" if dtype == "float16" else "float32")
    low, high = ends(to)
    reach = 3 * (high - low) + 4
    x = random.uniform(-reach, reach, shape) * float(scale.max())
    halves = (random.integers(-reach, reach, shape) + 0.5) * float(scale.flat[0])
    x = np.where(random.random(shape) < 0.5, x, halves)
    if dtype == "float32" and random.random() < 0.3:
        x = np.where(random.random(shape) < 0.2, random.choice([np.inf, -np.inf, 3e38, -3e38, -0.0, 1e-45], shape), x)
    if dtype == "float16":
        x = np.clip(x, -65504, 65504)
    inputs = [x.astype(dtype), scale, integers(random, parameters, to)]
    if random.random() < 0.2:
        attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(inputs.pop().dtype)
    return Case("QuantizeLinear", inputs, attributes, constants=some_constants(random, len(inputs)))


def dequantize(random: Random) -> Case:
    shape = shape_of(random)
    parameters, attributes = layout(random, shape)
    dtype = str(random.choice(["int8", "uint8", "int16", "uint16", "int32", *SMALL]))
    inputs = [integers(random, shape, dtype), scales(random, parameters, str(random.choice(["float32", "float16"])))]
    if dtype != "int32" and random.random() < 0.8:
        inputs.append(integers(random, parameters, dtype))
    if random.random() < 0.2:
        attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(str(random.choice(["float32", "float16"]))))
    return Case("DequantizeLinear", inputs, attributes, constants=some_constants(random, len(inputs)))


def dynamic_quantize(random: Random) -> Case:
    shape = shape_of(random, int(random.integers(1, 5)))
    x = random.standard_normal(shape) * 10.0 ** random.integers(-20, 20) + random.choice([0, 0, 5, -5])
    if random.random() < 0.2:
        x = np.abs(x) * random.choice([1, -1, 0])
    return Case("DynamicQuantizeLinear", [x.astype("float32")], outputs=3)


def bytes_types(random: Random) -> tuple[str, str]:
    return str(random.choice(["int8", "uint8"])), str(random.choice(["int8", "uint8"]))


def matrices(random: Random) -> tuple[Array, Array, tuple[int, ...], tuple[int, ...]]:
    """Two factors, and shapes for parameters of the first's rows and the second's columns."""
    left, right = bytes_types(random)
    rows, columns = int(random.integers(1, 65)), int(random.integers(1, 65))
    inner = int(random.choice([1, 3, 16, 64, 300, 1000]))
    batch = shape_of(random, int(random.integers(0, 3)), 3)
    a = integers(random, (*batch, rows, inner), left)
    b = integers(random, (*(batch if random.random() < 0.5 else ()), inner, columns), right)
    of_rows, of_columns = (random.choice(["number", "each"]) for _ in range(2))
    rows_shape = () if of_rows == "number" else (*batch, rows, 1) if batch else (rows,)
    columns_shape = () if of_columns == "number" else (*b.shape[:-2], 1, columns) if b.ndim > 2 else (columns,)
    return a, b, rows_shape, columns_shape


def mat_mul_integer(random: Random) -> Case:
    a, b, rows, columns = matrices(random)
    zeros = [integers(random, rows, a.dtype.name), integers(random, columns, b.dtype.name)]
    inputs = [a, b, *zeros[:int(random.integers(0, 3))]]
    return Case("MatMulInteger", inputs, constants=some_constants(random, len(inputs)))


def scale_of_results(random: Random, products: float) -> Array:
    """So that results fill the range of a byte and pass its ends, often with a fraction of one half."""
    scale = max(products, 1) / random.choice([100, 300])
    return np.array(2.0 ** round(np.log2(scale)) if random.random() < 0.5 else scale, "float32")


def q_linear_mat_mul(random: Random) -> Case:
    a, b, rows, columns = matrices(random)
    a_scale, b_scale = scales(random, rows), scales(random, columns)
    a_zero, b_zero = integers(random, rows, a.dtype.name), integers(random, columns, b.dtype.name)
    spread = a.shape[-1] ** 0.5 * 75 * 75 * float(a_scale.mean()) * float(b_scale.mean())
    to = str(random.choice(["int8", "uint8"]))
    inputs = [a, a_scale, a_zero, b, b_scale, b_zero, scale_of_results(random, spread), integers(random, (), to)]
    return Case("QLinearMatMul", inputs, constants=some_constants(random, len(inputs)))


def convolution(random: Random) -> tuple[Array, Array, dict[str, object]]:
    axes = int(random.integers(1, 4))
    group = int(random.integers(1, 4))
    kernel = shape_of(random, axes, 3)
    dilations = shape_of(random, axes, 2)
    least = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    sizes = tuple(size + int(random.integers(0, 6)) for size in least)
    left, right = bytes_types(random)
    x = integers(random, (*shape_of(random, 1, 2), group * int(random.integers(1, 4)), *sizes), left)
    w = integers(random, (group * int(random.integers(1, 4)), x.shape[1] // group, *kernel), right)
    attributes: dict[str, object] = {"group": group, "dilations": dilations, "strides": shape_of(random, axes, 3)}
    padding = random.choice(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
    if padding == "NOTSET":
        attributes["pads"] = [int(pad) for pad in random.integers(0, 3, 2 * axes)]
    else:
        attributes["auto_pad"] = str(padding)
    if random.random() < 0.5:
        attributes["kernel_shape"] = kernel
    return x, w, attributes


def conv_integer(random: Random) -> Case:
    x, w, attributes = convolution(random)
    per = () if random.random() < 0.5 else (w.shape[0],)
    zeros = [integers(random, (), x.dtype.name), integers(random, per, w.dtype.name)]
    inputs = [x, w, *zeros[:int(random.integers(0, 3))]]
    return Case("ConvInteger", inputs, attributes, constants=some_constants(random, len(inputs)))


def q_linear_conv(random: Random) -> Case:
    x, w, attributes = convolution(random)
    per = () if random.random() < 0.5 else (w.shape[0],)
    x_scale, w_scale = scales(random, ()), scales(random, per)
    spread = w[0].size ** 0.5 * 75 * 75 * float(x_scale) * float(w_scale.mean())
    inputs = [x, x_scale, integers(random, (), x.dtype.name), w, w_scale, integers(random, per, w.dtype.name),
              scale_of_results(random, spread), integers(random, (), x.dtype.name)]
    if random.random() < 0.5:
        inputs.append(integers(random, (w.shape[0],), "int32", -20000, 20000))
    return Case("QLinearConv", inputs, attributes, constants=some_constants(random, len(inputs)))


def pair(random: Random, dtype: str) -> tuple[Array, Array]:
    shape = shape_of(random)
    return integers(random, shape, dtype), integers(random, broadcast(random, shape), dtype)


def arithmetic(random: Random) -> Case:
    op = str(random.choice(["Add", "Sub", "Mul", "Min", "Max", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater",
                            "GreaterOrEqual", "Less", "LessOrEqual"]))
    return Case(op, pair(random, str(random.choice(SIGNED + UNSIGNED))))


def division(random: Random) -> Case:
    a, b = pair(random, str(random.choice(SIGNED + UNSIGNED)))
    b = np.where(b == 0, np.ones_like(b), b)
    op = str(random.choice(["Div", "Mod"]))
    return Case(op, [a, b], {"fmod": int(random.integers(0, 2))} if op == "Mod" else {})


def shift(random: Random) -> Case:
    dtype = str(random.choice(UNSIGNED))
    a, b = pair(random, dtype)
    bits = 8 * a.dtype.itemsize
    b = np.where(random.random(b.shape) < 0.8, b % bits, b).astype(dtype)
    return Case("BitShift", [a, b], {"direction": str(random.choice(["LEFT", "RIGHT"]))}, opset=11)


def power(random: Random) -> Case:
    shape = shape_of(random)
    a = integers(random, shape, str(random.choice(["int32", "int64"])))
    exponents = [dtype for dtype in SIGNED + UNSIGNED if dtype != "uint64"]  # with which NumPy computes in f64
    b = integers(random, broadcast(random, shape), str(random.choice(exponents)), 0, 70)
    return Case("Pow", [a, b])


def unary(random: Random) -> Case:
    op = str(random.choice(["Abs", "Neg", "Sign", "BitwiseNot", "Relu", "Clip"]))
    dtype = str(random.choice(SIGNED if op in ("Neg", "Relu") else SIGNED + UNSIGNED))
    x = integers(random, shape_of(random), dtype)
    bounds = [*np.sort(integers(random, (2,), dtype))] if op == "Clip" else []
    return Case(op, [x, *(np.array(bound) for bound in bounds)])


def cast(random: Random) -> Case:
    dtype = str(random.choice([*SIGNED, *UNSIGNED, *SMALL]))
    x = integers(random, shape_of(random), dtype)
    to = str(random.choice([*SIGNED, *UNSIGNED, "bool", *(() if dtype in SMALL else SMALL)]))  # the reference has no others
    return Case("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(SMALL.get(to, to)))})


def reduction(random: Random) -> Case:
    op = str(random.choice(["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceMean"]))
    dtype = str(random.choice([*WIDE, "int8", "uint8"] if op in ("ReduceMax", "ReduceMin") else WIDE))
    low, high = ends(dtype)
    limits = (max(low, -1000), 1000) if op == "ReduceMean" else (low, high)  # means of sums that overflow are not specified
    x = integers(random, shape_of(random, int(random.integers(1, 5))), dtype, *limits)
    axes = np.flatnonzero(random.random(x.ndim) < 0.5) - (x.ndim if random.random() < 0.3 else 0)
    inputs = [x] if random.random() < 0.2 else [x, axes.astype("int64")]
    attributes = {"keepdims": int(random.integers(0, 2)), "noop_with_empty_axes": int(random.integers(0, 2))}
    return Case(op, inputs, attributes, opset=20, constants=(1,) if len(inputs) == 2 else ())


def order(random: Random) -> Case:
    x = integers(random, shape_of(random, int(random.integers(1, 5))), str(random.choice(["int32", "int64", "int8", "uint8"])))
    axis = int(random.integers(-x.ndim, x.ndim))
    op = str(random.choice(["ArgMax", "ArgMin", "TopK"]))
    if op == "TopK":
        count = np.array([random.integers(1, x.shape[axis] + 1)])
        return Case(op, [x, count], {"axis": axis, "largest": int(random.integers(0, 2))}, outputs=2, constants=(1,))
    last = int(random.integers(0, 2))
    return Case(op, [x], {"axis": axis, "keepdims": int(random.integers(0, 2)), "select_last_index": last})


def sums(random: Random) -> Case:
    dtype = str(random.choice(WIDE))
    if random.random() < 0.5:
        x = integers(random, shape_of(random, int(random.integers(1, 5))), dtype)
        attributes = {"exclusive": int(random.integers(0, 2)), "reverse": int(random.integers(0, 2))}
        return Case("CumSum", [x, np.array(random.integers(0, x.ndim))], attributes, constants=(1,))
    rows, inner, columns = shape_of(random, 3, 20)
    return Case("MatMul", [integers(random, (rows, inner), dtype), integers(random, (inner, columns), dtype)])


KINDS: tuple[Callable[[Random], Case], ...] = (
    quantize, dequantize, dynamic_quantize, mat_mul_integer, q_linear_mat_mul, conv_integer, q_linear_conv, arithmetic,
    division, shift, power, unary, cast, reduction, order, sums)


def model_of(case: Case, dtypes: Sequence[np.dtype | None]) -> ModelProto:
    """With results of these dtypes, if they are given."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(case.inputs)]
    results = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, results, **case.attributes)
    given = [(i, name, value) for i, (name, value) in enumerate(zip(names, case.inputs)) if value is not None]
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for i, name, value in given if i not in case.constants]
    constants = [numpy_helper.from_array(value, name) for i, name, value in given if i in case.constants]
    outputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None) if dtype is not None else
               helper.make_empty_tensor_value_info(name) for name, dtype in zip(results, dtypes)]
    graph = helper.make_graph([node], case.op, inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=13 if case.opset > 20 else 8)


def bits(arrays: Sequence[Array]) -> list[tuple[str, tuple[int, ...], bytes]]:
    return [(array.dtype.name, array.shape, array.tobytes()) for array in map(np.asarray, arrays)]


def shown(case: Case) -> str:
    inputs = ", ".join(f"{value.dtype.name}{list(value.shape)}" for value in case.inputs if value is not None)
    return f"{case.op}({inputs}) {dict(case.attributes)}"


def judged(case: Case, device: str) -> str:
    """"reference", "specification", or how the result differs. Errors: what plugrad raises."""
    given = {f"x{i}": value for i, value in enumerate(case.inputs) if value is not None and i not in case.constants}
    untyped = model_of(case, [None] * case.outputs)
    wanted = ReferenceEvaluator(untyped, new_ops=list(CORRECTED)).run(None, given)
    model = model_of(case, [np.asarray(each).dtype for each in wanted])
    with pg.device(device):
        run = pg.onnx.load(model.SerializeToString(), device)
        results = [result.numpy() if isinstance(result, pg.Tensor) else result for result in run(*given.values())]
    got = bits(results)
    try:
        if bits(ReferenceEvaluator(model).run(None, given)) == got:
            return "reference"
    except (ValueError, IndexError, TypeError):
        pass  # the reference does not take these parameters
    if bits(wanted) == got:
        return "specification"
    for result, want in zip(results, wanted):
        if (result.dtype, result.shape) != (want.dtype, want.shape):
            return f"{result.dtype} {result.shape}, wanted {want.dtype} {want.shape}"
        if bits([result]) != bits([want]):
            unequal = np.asarray(result != want)
            return f"{unequal.sum()} of {want.size} differ: {result[unequal][:4]}, wanted {want[unequal][:4]}"
    return "fewer results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of NumPy, about overflow
    start, failed = time.time(), 0
    for kind in (kind for kind in KINDS if re.search(given.filter, kind.__name__)):
        outcomes: Counter[str] = Counter()
        for number in range(given.count):
            case = kind(np.random.default_rng([given.seed, number]))
            try:
                outcome = judged(case, given.device)
            except Exception as error:  # noqa: BLE001: each outcome is shown
                outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            if outcome not in ("reference", "specification"):
                print(f"{kind.__name__} {number}: {shown(case)}: {outcome}")
                failed += 1
            outcomes[outcome] += 1
        print(f"{kind.__name__}: {outcomes['reference']} as onnx.reference, {outcomes['specification']} as the specification"
              f" alone, of {given.count}")
    print(f"{failed} differ on {given.device}, {time.time() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
