"""Operators of onnx.reference as the specification has them, where the package onnx 1.23.2 departs from it. Each says how."""
from __future__ import annotations

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype
from onnx.reference.op_run import OpRun
from onnx.reference.ops._quant_utils import reshape_input
from onnx.reference.ops.op_conv import _conv_implementation
from onnx.reference.ops.op_quantize_linear import _QUANT_INTEGER_RANGES

Array = np.ndarray


def quantised(steps: Array, zero: Array | None, dtype: np.dtype) -> Array:
    """"For (x / y_scale), it rounds to the nearest even", and y = saturate((x / y_scale) + y_zero_point)."""
    low, high = _QUANT_INTEGER_RANGES[np_dtype_to_tensor_dtype(dtype)]
    rounded = np.rint(steps.astype(np.float64)) + (0 if zero is None else zero.astype(np.float64))
    return np.clip(rounded, low, high).astype(dtype)


def per_row(parameter: Array) -> Array:
    """"If the input is 2D of shape [M, K] then zero point and scale tensor may be an M element vector"."""
    return parameter[:, None] if parameter.ndim == 1 and parameter.size > 1 else parameter


def per_channel(parameter: Array, rank: int, axis: int) -> Array:
    """"It could be a scalar or a 1-D tensor, which means a per-tensor/layer or per output channel quantization"."""
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter.reshape([-1 if i == axis else 1 for i in range(rank)])


class QuantizeLinear(OpRun):
    """The reference converts to int32 before it saturates: infinite and large values get the wrong end. It divides an x of
    int32 in f64: "the type of `y_scale` determines the precision of the division operation", unless `precision` is given."""

    def _run(self, x, y_scale, zero=None, axis=1, saturate=1, block_size=0, output_dtype=None, precision=None):
        dtype = zero.dtype if zero is not None else np.dtype(tensor_dtype_to_np_dtype(output_dtype)) if output_dtype else np.dtype("uint8")
        zero = None if zero is None else reshape_input(zero, x.shape, axis, block_size)
        wide = np.dtype(tensor_dtype_to_np_dtype(precision)) if precision else y_scale.dtype
        steps = x.astype(wide) / reshape_input(y_scale, x.shape, axis, block_size).astype(wide)
        return (quantised(steps, zero, dtype),)


class MatMulInteger(OpRun):
    """The reference subtracts a vector of A's zero points from its columns, not its rows."""

    def _run(self, a, b, a_zero=None, b_zero=None):
        left, right = a.astype(np.int32), b.astype(np.int32)
        left = left if a_zero is None else left - per_row(a_zero)
        return (left @ (right if b_zero is None else right - b_zero),)


class QLinearMatMul(OpRun):
    """The same, and the reference rounds after it has added the zero point: halves go to another neighbour if that is odd."""

    def _run(self, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
        products = (a.astype(np.int32) - per_row(a_zero)) @ (b.astype(np.int32) - b_zero)
        return (quantised(products * (per_row(a_scale) * b_scale / y_scale).astype(np.float64), y_zero, y_zero.dtype),)


class ConvInteger(OpRun):
    """The reference takes zero points of channels in two dimensions only."""

    def _run(self, x, w, x_zero=None, w_zero=None, **attributes):
        left, right = x.astype(np.int32), w.astype(np.int32)
        left = left if x_zero is None else left - x_zero
        right = right if w_zero is None else right - per_channel(w_zero, w.ndim, 0)
        return (convolution(self, left, right, None, attributes),)


class QLinearConv(OpRun):
    """The same for scales, and the reference rounds after it has added the zero point, as in QLinearMatMul."""

    def _run(self, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, **attributes):
        left, right = x.astype(np.int32) - x_zero, w.astype(np.int32) - per_channel(w_zero, w.ndim, 0)
        sums = convolution(self, left, right, bias, attributes)
        scale = x_scale.reshape(()) * per_channel(w_scale, w.ndim, 1) / y_scale.reshape(())
        return (quantised(sums * scale.astype(np.float64), y_zero, y_zero.dtype),)


class ReduceSumSquare(OpRun):
    """The reference sums int32 in int64 and uint32 in uint64, and keeps that type; the operator's result has the type of x."""

    def _run(self, x, axes=None, keepdims=1, noop_with_empty_axes=0):
        if axes is None or axes.size == 0:
            axes = () if noop_with_empty_axes else range(x.ndim)
        return (np.asarray(np.sum(np.square(x), axis=tuple(int(axis) for axis in axes), keepdims=bool(keepdims), dtype=x.dtype)),)


def convolution(node: OpRun, x: Array, w: Array, bias: Array | None, attributes: dict[str, object]) -> Array:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return _conv_implementation(x, w, bias, *(attributes.get(name) or getattr(node, name) for name in names)).astype(np.int32)


CORRECTED = (QuantizeLinear, MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv, ReduceSumSquare)
