"""Creation of tensors."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, int32
from ._dtypes import DEFAULT_FLOAT, DEFAULT_INTEGER, DType, Number, default_of
from ._operands import diagonal_of


def asarray(obj: Any, /, *, dtype: DType | None = None, device: str | None = None,
            copy: bool | None = None) -> Tensor:
    """The tensor of a number, of nested sequences, of an array of another library, or a tensor.

    Integers without a dtype are int64, other numbers float32; arrays keep their dtype. copy=None
    uses the memory of a row-major array; do not write to it while the tensor lives. Errors:
    ValueError for copy=False where a copy is needed.
    """
    if isinstance(obj, (list, tuple)) and has_tensor(obj):
        made = stacked(obj)
        return asarray(made, dtype=dtype, device=device)
    is_of_numbers = isinstance(obj, (bool, int, float, complex, list, tuple))
    if isinstance(obj, complex):
        default_of(obj)  # which refuses it
    made = _plugrad.asarray(obj, dtype, device, copy=copy)
    return made.cast(DEFAULT_INTEGER) if is_of_numbers and dtype is None and \
        made.dtype == int32 else made


def has_tensor(obj: Sequence[Any]) -> bool:
    return any(isinstance(each, Tensor) or isinstance(each, (list, tuple)) and has_tensor(each)
               for each in obj)


def stacked(obj: Any) -> Tensor:
    if isinstance(obj, (list, tuple)):
        return _plugrad.stack([stacked(each) for each in obj])
    return asarray(obj)


def from_dlpack(x: object, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """The tensor of an object with __dlpack__, without a copy where the host can read its memory."""
    return _plugrad.from_dlpack(x, device=device, copy=copy)


def empty(shape: int | tuple[int, ...], *, dtype: DType | None = None,
          device: str | None = None) -> Tensor:
    """A tensor whose values may be anything: zeros."""
    return Tensor.empty(shape, dtype or DEFAULT_FLOAT, device)


def zeros(shape: int | tuple[int, ...], *, dtype: DType | None = None,
          device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    return Tensor.zeros(shape, dtype or DEFAULT_FLOAT, device)


def ones(shape: int | tuple[int, ...], *, dtype: DType | None = None,
         device: str | None = None) -> Tensor:
    """A tensor of ones."""
    return Tensor.ones(shape, dtype or DEFAULT_FLOAT, device)


def full(shape: int | tuple[int, ...], fill_value: Number, *, dtype: DType | None = None,
         device: str | None = None) -> Tensor:
    """A tensor of one number, whose kind gives the dtype unless it is given."""
    if dtype is None and not isinstance(fill_value, Tensor):
        dtype = default_of(fill_value)
    return Tensor.full(shape, fill_value, dtype, device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """A tensor with the shape of `x`, and its dtype and device unless they are given."""
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Zeros with the shape of `x`, and its dtype and device unless they are given."""
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """Ones with the shape of `x`, and its dtype and device unless they are given."""
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def full_like(x: Tensor, /, fill_value: Number, *, dtype: DType | None = None,
              device: str | None = None) -> Tensor:
    """A tensor of one number with the shape, dtype and device of `x`."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def arange(start: float, /, stop: float | None = None, step: float = 1, *,
           dtype: DType | None = None, device: str | None = None) -> Tensor:
    """start, start + step, … before stop; with one argument, 0, 1, … before it.

    Dtype: int64, or float32 if an argument is a float. Errors: ValueError for a step of 0.
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("[arange] the step is 0")
    if all(isinstance(each, int) for each in (start, stop, step)):
        return Tensor.arange(start, stop, step, dtype or DEFAULT_INTEGER, device)
    dtype = dtype or DEFAULT_FLOAT
    numbers = Tensor.arange(max(math.ceil((stop - start) / step), 0), DEFAULT_INTEGER, device)
    numbers = numbers.cast(dtype if dtype.is_floating_point else DEFAULT_FLOAT)
    return (numbers * step + start).cast(dtype)


def linspace(start: float, stop: float, /, num: int, *, dtype: DType | None = None,
             device: str | None = None, endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers from start to stop, which is left out without `endpoint`."""
    made = Tensor.linspace(start, stop, num if endpoint else num + 1, dtype or DEFAULT_FLOAT, device)
    return made if endpoint else made[:num]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None,
        device: str | None = None) -> Tensor:
    """Ones on the k-th diagonal of a matrix; positive ones are above the main diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    rows = Tensor.arange(n_rows, DEFAULT_INTEGER, device).unsqueeze(1)
    columns = Tensor.arange(n_cols, DEFAULT_INTEGER, device)
    return (rows + diagonal_of((n_rows, n_cols), k) == columns).cast(dtype or DEFAULT_FLOAT)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid: tensor i has the values of array i along its axis."""
    return list(_plugrad.meshgrid(list(arrays), indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices: 0 above the k-th diagonal."""
    return x.tril(diagonal_of(x.shape, k))


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices: 0 below the k-th diagonal."""
    return x.triu(diagonal_of(x.shape, k))


__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
           "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]
