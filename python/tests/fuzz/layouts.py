"""Strategies for NumPy arrays of every dtype and memory layout."""
from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "float32", "float64"]
# What a tensor cannot hold.
REFUSED = [np.dtype(name) for name in ("complex64", "complex128", "O", "U3", "S2", "V4", "M8[s]",
                                       "m8[ms]", "longdouble")] + [np.dtype([("a", "i4")])]

dtypes = st.sampled_from(DTYPES).map(np.dtype)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def arrays(draw: st.DrawFn, dtype: st.SearchStrategy = dtypes,
           shape: st.SearchStrategy = shapes) -> np.ndarray:
    """An array, often one whose elements are not contiguous."""
    return draw(laid_out(draw(hnp.arrays(draw(dtype), draw(shape)))))


@st.composite
def laid_out(draw: st.DrawFn, array: np.ndarray) -> np.ndarray:
    """The array in another layout: permuted axes, steps, repeated elements, swapped bytes."""
    for change in draw(st.lists(st.sampled_from(
            ["permute", "step", "repeat", "swap", "fortran", "frozen", "offset"]), max_size=3)):
        if change == "permute":
            array = array.transpose(draw(st.permutations(range(array.ndim))))
        elif change == "step" and array.ndim:
            steps = st.sampled_from([-3, -2, -1, 1, 2])
            array = array[tuple(slice(None, None, draw(steps)) for _ in range(array.ndim))]
        elif change == "repeat":
            array = np.broadcast_to(array, (draw(st.integers(0, 3)), *array.shape))
        elif change == "swap":
            array = array.astype(array.dtype.newbyteorder())
        elif change == "fortran":
            array = np.asfortranarray(array)
        elif change == "frozen":
            array = array.view()
            array.flags.writeable = False
        elif change == "offset" and array.ndim:
            array = np.concatenate([array[:1], array])[1:]
    return array
