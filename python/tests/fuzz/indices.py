"""Strategies for what stands between the brackets of x[…]: right and wrong indices."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import plugrad as pg

bounds = st.one_of(st.none(), st.integers(-6, 6), st.sampled_from([-2**70, 2**70, 2**63, -2**63]))
slices = st.builds(slice, bounds, bounds, st.one_of(
    st.none(), st.sampled_from([-3, -2, -1, 1, 2, 3, 2**70, -2**70])))
integer_dtypes = st.sampled_from(["int8", "uint8", "int32", "int64", "uint64"])


def near(size: int) -> st.SearchStrategy[int]:
    """Mostly indices of an axis of this size."""
    return st.integers(-size - 1, size) if size == 0 else st.one_of(
        st.integers(-size, size - 1), st.integers(-size, size - 1), st.integers(-size - 1, size))


@st.composite
def integer_arrays(draw: st.DrawFn, size: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)) \
        if shape is None else shape
    dtype = draw(integer_dtypes)
    low = 0 if dtype.startswith("u") else -size
    return draw(hnp.arrays(dtype, shape, elements=st.integers(low, max(size - 1, low))))


@st.composite
def parts(draw: st.DrawFn, shape: tuple[int, ...]) -> list[Any]:
    """Indices for some axes of a shape: of the kinds that NumPy knows, mixed."""
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    made: list[Any] = []
    axis = 0
    while axis < len(shape):
        size = shape[axis]
        kind = draw(st.sampled_from(["integer", "slice", "slice", "none", "array", "list", "mask",
                                     "stop", "number"]))
        if kind == "stop":
            break
        if kind == "none":
            made.append(None)
            if draw(st.booleans()):
                continue
        elif kind == "integer":
            made.append(draw(near(size)))
        elif kind == "number":
            made.append(draw(st.sampled_from([np.int64, np.int32, np.array]))(draw(near(size))))
        elif kind == "slice":
            made.append(draw(slices))
        elif kind == "mask":
            rank = draw(st.integers(1, len(shape) - axis))
            made.append(draw(hnp.arrays(bool, shape[axis:axis + rank])))
            axis += rank - 1
        else:
            # One shape for most, so that they broadcast.
            array = draw(integer_arrays(size, draw(st.sampled_from([common, common, (), (1,), None]))))
            made.append(array.tolist() if kind == "list" and array.ndim else array)
        axis += 1
    if draw(st.booleans()):
        made.insert(draw(st.integers(0, len(made))), ...)
    return made


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    made = draw(parts(shape))
    return made[0] if len(made) == 1 and draw(st.booleans()) else tuple(made)


wrong_parts = st.one_of(
    st.sampled_from([1.5, "a", b"a", 1j, object(), {}, {1}, slice("a"), slice(None, None, 0), [1.5],
                     np.array(1.5), np.array(["a"]), np.array([None]), [[1], [2, 3]], [None], ["a"],
                     2**70, -2**70, [2**70], ..., None, np.zeros((2, 2, 2, 2, 2), bool)]),
    hnp.arrays(bool, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4)),
    st.integers(-9, 9), slices)


@st.composite
def wrong_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    made = draw(parts(shape))
    for _ in range(draw(st.integers(1, 2))):
        made.insert(draw(st.integers(0, len(made))), draw(wrong_parts))
    return tuple(made)


def of_tensors(index: Any, device: str) -> Any:
    """The same index with a tensor in the place of each array that one can hold."""
    if isinstance(index, tuple):
        return tuple(of_tensors(each, device) for each in index)
    is_array = isinstance(index, np.ndarray) and index.dtype.kind in "iub" and index.ndim > 0
    return pg.Tensor(index, device=device) if is_array else index
