"""tinygrad's names of dtypes: the objects are plugrad's."""
from __future__ import annotations

import builtins

import numpy as np

import plugrad as pg

DType = type(pg.float32)


class dtypes:
    bool = pg.bool_
    int8 = char = pg.int8
    uint8 = uchar = pg.uint8
    int16 = short = pg.int16
    uint16 = ushort = pg.uint16
    int32 = int = pg.int32
    uint32 = uint = pg.uint32
    int64 = long = pg.int64
    uint64 = ulong = pg.uint64
    float16 = half = pg.float16
    bfloat16 = pg.bfloat16
    float32 = float = pg.float32
    float64 = double = pg.float64
    fp8e4m3 = pg.float8_e4m3fn
    fp8e5m2 = pg.float8_e5m2
    default_float = float32
    default_int = int32
    fp8s = (fp8e4m3, fp8e5m2)
    floats = fp8s + (float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = uints + sints
    all = floats + ints + (bool,)

    @staticmethod
    def is_float(dtype: DType) -> builtins.bool:
        return dtype.is_floating_point

    @staticmethod
    def is_int(dtype: DType) -> builtins.bool:
        return dtype in dtypes.ints

    @staticmethod
    def is_unsigned(dtype: DType) -> builtins.bool:
        return dtype in dtypes.uints

    @staticmethod
    def is_bool(dtype: DType) -> builtins.bool:
        return dtype == pg.bool_

    @staticmethod
    def min(dtype: DType) -> builtins.int | builtins.float:
        if dtype.is_floating_point:
            return -builtins.float("inf")
        return False if dtype == pg.bool_ else builtins.int(np.iinfo(dtype.name).min)

    @staticmethod
    def max(dtype: DType) -> builtins.int | builtins.float:
        if dtype.is_floating_point:
            return builtins.float("inf")
        return True if dtype == pg.bool_ else builtins.int(np.iinfo(dtype.name).max)


def to_dtype(dtype: DType | str | None) -> DType | None:
    """Strings are tinygrad's names. Errors: AttributeError for others."""
    return getattr(dtypes, dtype) if isinstance(dtype, str) else dtype


def _to_np_dtype(dtype: DType) -> type | None:
    """NumPy's type, None for the dtypes that NumPy lacks."""
    try:
        return np.dtype(dtype.name).type
    except TypeError:
        return None


def summed(dtype: DType) -> DType:
    """tinygrad adds up small integers in 32 bits, and keeps the others."""
    if dtype in (pg.uint8, pg.uint16):
        return pg.uint32
    return pg.int32 if dtype in (pg.bool_, pg.int8, pg.int16) else dtype
