"""x[index] and x[index] = value against NumPy: equal values, or the same kind of exception."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import plugrad as pg
from rounds import DEVICE, fuzz, outcome, same
from indices import indices, of_tensors, wrong_indices

EXAMPLES = 400 if DEVICE == "REFERENCE" else 40
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def cases(draw: st.DrawFn, kind: Any = indices) -> tuple[np.ndarray, Any]:
    """An array of different elements, and an index of it."""
    shape = draw(shapes)
    dtype = draw(st.sampled_from(["float32", "int32", "int64", "uint8", "float64"]))
    array = np.arange(1, int(np.prod(shape)) + 1).astype(dtype).reshape(shape)
    if draw(st.integers(0, 5)) == 0:
        array = np.asarray(array % 2 == 0)
    return array, draw(kind(shape))


def tensor(array: np.ndarray) -> pg.Tensor:
    return pg.Tensor(array, device=DEVICE)


def numpys(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return outcome(call)


def is_expected(ours: Any, theirs: Exception) -> bool:
    """NumPy's exception, or for indices that are no indices at all TypeError or IndexError."""
    if isinstance(theirs, (DeprecationWarning, IndexError)):
        return isinstance(ours, (IndexError, TypeError))
    return isinstance(ours, (type(theirs), IndexError, TypeError, ValueError)) and \
        isinstance(ours, Exception)


def has_empty_mask(index: Any) -> bool:
    """NumPy does not compare the sizes of such a mask with those of the array."""
    return any(isinstance(each, np.ndarray) and each.dtype == bool and each.size == 0
               for each in (index if isinstance(index, tuple) else (index,)))


@fuzz(EXAMPLES, case=cases())
def test_reads(case: tuple[np.ndarray, Any]) -> None:
    array, index = case
    expected = numpys(lambda: array[index])
    for given in (index, of_tensors(index, DEVICE)):
        made = outcome(lambda: tensor(array)[given])
        if isinstance(expected, Exception):
            assert isinstance(made, IndexError), (made, expected)
        elif not (has_empty_mask(index) and isinstance(made, IndexError)):
            assert isinstance(made, pg.Tensor), made
            same(made, np.asarray(expected))


@fuzz(EXAMPLES, case=cases(), data=st.data())
def test_assignments(case: tuple[np.ndarray, Any], data: st.DataObject) -> None:
    array, index = case
    chosen = numpys(lambda: array[index])
    shape = () if isinstance(chosen, Exception) else np.shape(chosen)
    # A shape that broadcasts, most of the time.
    given = tuple(data.draw(st.sampled_from([size, size, size, 1, 2])) for size in shape)
    given = given[data.draw(st.integers(0, len(given))):]
    value = np.arange(100, 100 + int(np.prod(given))).reshape(given).astype(array.dtype)
    changed = array.copy()

    def assign(target: Any, at: Any, what: Any) -> None:
        target[at] = what

    expected = numpys(lambda: assign(changed, index, value))
    for at in (index, of_tensors(index, DEVICE)):
        x = tensor(array)
        made = outcome(lambda: assign(x, at, value))
        if isinstance(expected, Exception):
            assert isinstance(made, Exception) and is_expected(made, expected), (made, expected)
            same(x, array)
        elif not (has_empty_mask(index) and isinstance(made, IndexError)):
            assert made is None, made
            same(x, changed)


@fuzz(EXAMPLES, case=cases(wrong_indices))
def test_wrong_indices(case: tuple[np.ndarray, Any]) -> None:
    array, index = case
    expected = numpys(lambda: array[index])
    made = outcome(lambda: tensor(array)[index])
    if isinstance(expected, Exception):
        assert isinstance(made, Exception) and is_expected(made, expected), (made, expected)
    elif not (has_empty_mask(index) and isinstance(made, IndexError)):
        assert isinstance(made, pg.Tensor), made
        same(made, np.asarray(expected))


@fuzz(EXAMPLES // 4, case=cases(), then=st.data())
def test_indices_of_indices(case: tuple[np.ndarray, Any], then: st.DataObject) -> None:
    array, index = case
    first = numpys(lambda: array[index])
    if isinstance(first, Exception):
        return
    second = then.draw(indices(np.shape(first)))
    expected = numpys(lambda: np.asarray(first)[second])
    made = outcome(lambda: tensor(array)[index][second])
    if isinstance(expected, Exception):
        assert isinstance(made, IndexError), (made, expected)
    elif not ((has_empty_mask(index) or has_empty_mask(second)) and isinstance(made, IndexError)):
        same(made, np.asarray(expected))
