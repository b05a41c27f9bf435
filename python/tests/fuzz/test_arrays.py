"""Tensors of arrays: NumPy's of every dtype and layout, buffers, and what holds no numbers."""
from __future__ import annotations

import array as arrays_of_python
import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import plugrad as pg
from rounds import fuzz, outcome, same
from layouts import REFUSED, arrays, dtypes, laid_out, shapes


def native(array: np.ndarray) -> np.ndarray:
    """The elements in a layout and byte order of NumPy's own choice."""
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def is_plain(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and array.dtype.isnative


@fuzz(400, array=arrays())
def test_every_constructor_keeps_the_values(array: np.ndarray) -> None:
    expected = native(array)
    for make in (pg.Tensor, pg.from_numpy, pg.asarray, lambda a: pg.asarray(a, copy=True),
                 lambda a: pg.Tensor(a, device="REFERENCE"), lambda a: pg.Tensor(pg.from_numpy(a))):
        same(make(array), expected)
    same(pg.Tensor([array]), expected[None])
    assert np.array_equal(pg.Tensor(array).tolist(), expected.tolist(), equal_nan=True)


@fuzz(200, array=arrays())
def test_memory_is_shared_or_refused(array: np.ndarray) -> None:
    made = outcome(lambda: pg.asarray(array, copy=False))
    if not is_plain(array):
        assert isinstance(made, ValueError) and "copy" in str(made)
        return
    same(made, native(array))
    if array.size:
        view = pg.from_numpy(array).numpy(copy=None)
        assert view.__array_interface__["data"] == (
            array.__array_interface__["data"][0], True)


@fuzz(200, array=arrays())
def test_dlpack_of_numpy(array: np.ndarray) -> None:
    made = outcome(lambda: pg.from_dlpack(array))
    capsule = outcome(lambda: array.__dlpack__(max_version=(1, 1)))
    if isinstance(capsule, Exception):  # swapped bytes: NumPy refuses
        assert isinstance(made, type(capsule))
        return
    same(made, native(array))
    same(pg.from_dlpack(array, copy=True), native(array))
    assert np.array_equal(np.from_dlpack(made), array, equal_nan=array.dtype.kind == "f")


@fuzz(200, array=arrays(), dtype=dtypes)
def test_another_dtype_is_a_cast(array: np.ndarray, dtype: np.dtype) -> None:
    expected = native(array)
    made = pg.Tensor(array, dtype=dtype)
    assert made.shape == array.shape and made.dtype == dtype
    if np.can_cast(array.dtype, dtype, "safe"):
        same(made, expected.astype(dtype))
    else:
        made.numpy()  # and no crash where the values do not fit


@fuzz(100, array=st.sampled_from(REFUSED).flatmap(lambda dtype: st.builds(
    np.zeros, shapes, st.just(dtype))).flatmap(laid_out))
def test_what_holds_no_numbers_is_a_type_error(array: np.ndarray) -> None:
    for make in (pg.Tensor, pg.from_numpy, pg.asarray, lambda a: pg.Tensor([1.0]) + a,
                 lambda a: pg.Tensor(a, dtype="float32")):
        with pytest.raises(TypeError):
            make(array)
    with pytest.raises((TypeError, BufferError)):
        pg.from_dlpack(array)


# The products of some of these have more than 63 or 64 bits.
HUGE = st.lists(st.sampled_from([0, 1, 3, 2**16, 2**31, 2**33, 2**46, 2**62]), min_size=1,
                max_size=5)


@fuzz(200, dtype=dtypes, sizes=HUGE)
def test_huge_shapes_are_refused(dtype: np.dtype, sizes: list[int]) -> None:
    array = outcome(lambda: np.broadcast_to(np.ones((), dtype), sizes))
    if isinstance(array, Exception) or 2**16 < array.size < 2**45:  # NumPy refuses, or this may run
        return
    for make in (pg.Tensor, pg.from_numpy):
        made = outcome(lambda: make(array))
        if array.size <= 2**16:
            same(made, array)
        else:
            assert isinstance(made, (MemoryError, ValueError)), made


BUFFERS = [bytearray(b"abc"), memoryview(b"abcd"), memoryview(b"abcdef")[::-2],
           memoryview(bytes(16)).cast("i", (2, 2)), arrays_of_python.array("d", [1.5, -2]),
           arrays_of_python.array("q"), (ctypes.c_int16 * 3)(1, -2, 3), (ctypes.c_float * 2 * 2)(),
           (ctypes.c_bool * 2)(True, False)]


@pytest.mark.parametrize("buffer", BUFFERS, ids=lambda each: type(each).__name__)
def test_buffers_are_arrays(buffer: Any) -> None:
    same(pg.Tensor(buffer), np.asarray(buffer))


class Hostile:
    """An object whose attributes raise, or return something else."""

    def __init__(self, attribute: str, value: Any):
        self._attribute, self._value = attribute, value

    def __getattr__(self, name: str) -> Any:
        if name != self.__dict__["_attribute"]:
            raise AttributeError(name)
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


ATTRIBUTES = ["__array_struct__", "__array_interface__", "__array__", "__dlpack__",
              "__dlpack_device__", "dtype", "shape", "__index__", "__float__", "__len__",
              "__getitem__", "__buffer__"]
VALUES = st.one_of(st.sampled_from([None, 3, "text", (), (1, 0), [], {}, object(),
                                    RuntimeError("refused"), KeyError("refused"),
                                    lambda *args, **keywords: None,
                                    lambda *args, **keywords: np.zeros(2),
                                    lambda *args, **keywords: (1, 0)]))


@fuzz(200, attribute=st.sampled_from(ATTRIBUTES), value=VALUES)
def test_hostile_objects_are_refused(attribute: str, value: Any) -> None:
    for make in (pg.Tensor, pg.asarray, pg.from_numpy, pg.from_dlpack,
                 lambda each: pg.Tensor([1.0, 2.0]) + each, lambda each: pg.Tensor([each, 1])):
        made = outcome(lambda: make(Hostile(attribute, value)))
        assert isinstance(made, (TypeError, BufferError, ValueError, RuntimeError, KeyError,
                                 AttributeError, pg.Tensor)), made


@fuzz(100, array=hnp.arrays(st.sampled_from(["float32", "int64", "bool"]), shapes))
def test_arrays_end_before_their_tensors(array: np.ndarray) -> None:
    expected = array.copy()
    made = [pg.from_numpy(array), pg.from_dlpack(array), pg.Tensor(array)]
    del array
    np.full(expected.shape or 1, 7, expected.dtype)  # takes memory that was given back
    for tensor in made:
        same(tensor, expected)
