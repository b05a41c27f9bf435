"""Searching, sorting, indexing and set functions."""
import numpy as np
import pytest
from standard import BOOLS, BYTES, EMPTY, INTS, NUMBER, VECTOR, X, case, check

import plugrad.array_api as xp

GRID = np.array([1, 2, 2, 3, 5], np.float32)
WANTED = np.array([[0, 2, 5], [6, 2.5, 3]], np.float32)
NANS = np.array([np.nan, 1, np.nan], np.float32)
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64")
CASES = [
    *(case(name, array, axis=axis, keepdims=keepdims) for name in ("argmax", "argmin")
      for array in (X, INTS, BYTES) for axis in (None, 0, 1, -1) for keepdims in (False, True)),
    case("argmax", NUMBER), case("argmin", NUMBER), case("argmax", EMPTY, axis=1),
    *(case("count_nonzero", array, axis=axis, keepdims=keepdims) for array in (INTS, BOOLS)
      for axis in (None, 0, (0, 1), -1) for keepdims in (False, True)),
    case("count_nonzero", EMPTY),
    *(case("nonzero", array) for array in (INTS, BOOLS, EMPTY, VECTOR)),
    *(case("searchsorted", *arrays, side=side) for side in ("left", "right") for arrays in (
        (GRID, WANTED), (np.array([1, 2, 3]), np.array([2])), (EMPTY[:, 0], WANTED),
        (GRID, EMPTY), (GRID, np.array([np.inf, -np.inf, np.nan], np.float32)))),
    case("searchsorted", GRID[::-1].copy(), WANTED, sorter=np.arange(5)[::-1].copy()),
    case("where", BOOLS, X, X * 2), case("where", BOOLS, X, 0.0), case("where", BOOLS, 1, INTS),
    case("where", BOOLS, INTS.astype(np.int8), INTS), case("where", BOOLS[0], X, X[:1]),
    *(case(name, array, axis=axis, descending=descending) for name in ("sort", "argsort")
      for array in (X, INTS, BYTES) for axis in (-1, 0, 1) for descending in (False, True)),
    *(case(name, VECTOR.astype(dtype), descending=descending) for name in ("sort", "argsort")
      for dtype in NUMBERS for descending in (False, True)),
    case("sort", EMPTY), case("argsort", EMPTY, descending=True),
    case("take", X, np.array([2, 0, 2]), axis=0), case("take", X, np.array([-1, 0]), axis=1),
    case("take", VECTOR, np.array([1, 1])), case("take", EMPTY, np.array([], np.int64), axis=0),
    case("take", BYTES, np.array([1, 0], np.int32), axis=-1),
    case("take_along_axis", X, np.array([[0, 1], [1, 1], [3, -1]])),
    case("take_along_axis", X, np.array([[0, 1, 2, 1]]), axis=0),
    case("take_along_axis", X[:1], np.array([[0, 1], [1, 1], [3, 2]]), axis=1),
    *(case(name, array)
      for name in ("unique_all", "unique_counts", "unique_inverse")
      for array in (INTS, X, BYTES, VECTOR, BOOLS, EMPTY, NUMBER, NANS,
                    np.array([0, -0.0, 1, 1], np.float32))),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case):
    check(case, 0, 0)


@pytest.mark.parametrize("values", (INTS, X, BYTES, BOOLS, EMPTY, NANS), ids=lambda x: x.dtype)
def test_distinct_values_are_in_order(values):
    found = xp.unique_values(xp.asarray(values, copy=True)).numpy()
    np.testing.assert_array_equal(found, np.unique(values, equal_nan=False))
    assert found.dtype == values.dtype


def test_where_takes_two_numbers():
    mask = xp.asarray([True, False])
    assert xp.where(mask, 1.5, 2).tolist() == [1.5, 2]
    assert xp.where(mask, 1, 2).dtype == xp.int64


def test_take_along_more_axes_of_indices():
    found = xp.take(xp.asarray(X, copy=True), xp.asarray([[0, 1], [2, 0]]), axis=0)
    np.testing.assert_array_equal(found.numpy(), np.take(X, [[0, 1], [2, 0]], axis=0))


def test_sorting_is_stable():
    values = np.array([1, 0, 1, 0, 1], np.int32)
    x = xp.asarray(values, copy=True)
    assert xp.argsort(x).tolist() == [1, 3, 0, 2, 4]
    assert xp.argsort(x, descending=True).tolist() == [0, 2, 4, 1, 3]
    assert xp.sort(xp.asarray([True, False])).dtype == xp.bool


@pytest.mark.parametrize("call", [
    lambda x: xp.nonzero(xp.asarray(1)), lambda x: xp.take(x, xp.asarray([0])),
    lambda x: xp.searchsorted(x, x), lambda x: xp.searchsorted(x[0], x, side="middle"),
    lambda x: xp.take_along_axis(x, xp.asarray([0])), lambda x: xp.argmax(x, axis=2),
    lambda x: xp.take_along_axis(x, xp.asarray([[0]]), axis=5), lambda x: xp.sort(x, axis=2)])
def test_refused(call):
    with pytest.raises(ValueError):
        call(xp.asarray(X, copy=True))
