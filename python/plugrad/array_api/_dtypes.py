"""Dtypes of the array API standard: their kinds, limits and promotion."""
from __future__ import annotations

import builtins
import functools
from typing import NamedTuple, TypeAlias, Union

from .. import _plugrad
from .._plugrad import Tensor
from .._plugrad import bool_ as bool
from .._plugrad import (float16, float32, float64, int8, int16, int32, int64, uint8, uint16,
                        uint32, uint64)

DType: TypeAlias = _plugrad.dtype
Number: TypeAlias = Union[builtins.bool, int, float]

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATS = (float32, float64)

#: The dtypes of values that are given as Python's numbers, and of indices.
DEFAULT_FLOAT = float32
DEFAULT_INTEGER = int64
DEFAULT_INDEX = int64

KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS,
    "complex floating": (),
    "numeric": SIGNED + UNSIGNED + FLOATS,
}


class finfo_object(NamedTuple):
    """Limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


# Bits of the fraction, and the largest and smallest exponents of normal numbers.
FORMATS = {float16: (10, 15, -14), _plugrad.bfloat16: (7, 127, -126), float32: (23, 127, -126),
           float64: (52, 1023, -1022)}


def dtype_of(x: Tensor | DType) -> DType:
    return x.dtype if isinstance(x, Tensor) else _plugrad.dtype(x)


def is_signed(dtype: DType) -> builtins.bool:
    return dtype in SIGNED


def is_unsigned(dtype: DType) -> builtins.bool:
    return dtype in UNSIGNED


def is_integer(dtype: DType) -> builtins.bool:
    return is_signed(dtype) or is_unsigned(dtype)


def finfo(type: Tensor | DType, /) -> finfo_object:
    """Limits of a floating-point dtype. Errors: TypeError for others and for 8-bit floats."""
    dtype = dtype_of(type)
    if dtype not in FORMATS:
        raise TypeError(f"[finfo] {dtype} is none of {', '.join(map(str, FORMATS))}")
    fraction, highest, lowest = FORMATS[dtype]
    largest = (2.0 - 2.0 ** -fraction) * 2.0 ** highest
    return finfo_object(8 * dtype.itemsize, 2.0 ** -fraction, largest, -largest, 2.0 ** lowest,
                        dtype)


def iinfo(type: Tensor | DType, /) -> iinfo_object:
    """Limits of an integer dtype. Errors: TypeError for others."""
    dtype = dtype_of(type)
    if not is_integer(dtype):
        raise TypeError(f"[iinfo] {dtype} is no integer dtype")
    bits = 8 * dtype.itemsize
    sign = 1 if is_signed(dtype) else 0
    return iinfo_object(bits, 2 ** (bits - sign) - 1, -sign * 2 ** (bits - 1), dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether a dtype is another one, of a kind such as "integral", or one of several.

    Errors: ValueError for an unknown kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return dtype == kind
    if kind not in KINDS:
        raise ValueError(f"[isdtype] {kind!r} is none of {', '.join(map(repr, KINDS))}")
    is_other_float = kind in ("real floating", "numeric") and dtype.is_floating_point
    return is_other_float or dtype in KINDS[kind]


@functools.cache
def promoted(a: DType, b: DType) -> DType:
    """The dtype of an operation of both, as tensors promote them."""
    condition = Tensor.empty(0, dtype=bool)
    return _plugrad.where(condition, Tensor.empty(0, dtype=a), Tensor.empty(0, dtype=b)).dtype


def can_cast(from_: Tensor | DType, to: DType, /) -> builtins.bool:
    """Whether every value of a dtype is one of another dtype of the same kind."""
    dtype = dtype_of(from_)
    if dtype == to:
        return True
    both_are_floats = dtype.is_floating_point and to.is_floating_point
    both_are_integers = is_integer(dtype) and is_integer(to)
    return (both_are_floats or both_are_integers) and promoted(dtype, to) == to


def default_of(number: object) -> DType:
    """The dtype of a Python number without a dtype."""
    if isinstance(number, builtins.bool):
        return bool
    if isinstance(number, int):
        return DEFAULT_INTEGER
    if isinstance(number, float):
        return DEFAULT_FLOAT
    if isinstance(number, complex):
        raise TypeError("plugrad has no complex dtype: keep real and imaginary parts in two tensors")
    raise TypeError(f"{number!r} is neither a tensor nor a number")


def rank_of(dtype: DType) -> int:
    """bool, integers, floats: numbers of a lower kind take the dtype of a higher one."""
    return 2 if dtype.is_floating_point else 0 if dtype == bool else 1


def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """The dtype of an operation of these operands.

    Numbers do not change the dtype unless their kind is higher. Errors: ValueError without a tensor
    or dtype.
    """
    dtypes, numbers = [], []
    for each in arrays_and_dtypes:
        if isinstance(each, (builtins.bool, int, float, complex)):
            numbers.append(default_of(each))
        else:
            dtypes.append(dtype_of(each))
    if not dtypes:
        raise ValueError("[result_type] needs at least one tensor or dtype")
    result = functools.reduce(promoted, dtypes)
    for dtype in numbers:
        if rank_of(dtype) > rank_of(result):
            result = promoted(result, dtype)
    return result


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True,
           device: str | None = None) -> Tensor:
    """The tensor in another dtype; floats become integers by truncation.

    With copy=False a tensor that has the dtype and device is returned as it is.
    """
    moved = x if device is None or device == x.device else x.to(device)
    if moved.dtype != dtype:
        return moved.cast(dtype)
    return moved.clone() if copy and moved is x else moved
