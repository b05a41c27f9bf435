"""Tensors of numbers and nested lists: values, dtypes and shapes, or the exception of the docs."""
from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import plugrad as pg
from rounds import fuzz, outcome, same
from layouts import dtypes

small = st.integers(-10, 10)
integers = st.one_of(small, st.integers(-2**31 - 1, 2**31), st.integers(-2**63 - 1, 2**64),
                     st.integers(-2**80, 2**80))
floats = st.floats(width=32)
numbers = st.one_of(st.booleans(), integers, floats)
others = st.sampled_from([None, "1", b"1", 1j, object(), {}, {1}, Decimal(1), Fraction(1, 2), range(2),
                          slice(1), int, ...])
sequences = st.sampled_from([list, tuple])


def nested(elements: st.SearchStrategy) -> st.SearchStrategy:
    """Lists and tuples of lists, of equal lengths or not."""
    def deeper(inner: st.SearchStrategy) -> st.SearchStrategy:
        ragged = st.lists(inner, max_size=3)
        equal = st.tuples(inner, st.integers(0, 3)).map(lambda pair: [pair[0]] * pair[1])
        return st.builds(lambda make, parts: make(parts), sequences, st.one_of(ragged, equal))
    return st.recursive(elements, deeper, max_leaves=8).filter(
        lambda made: isinstance(made, (list, tuple)))


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def shape_of(value: Any) -> tuple[int, ...] | None:
    """None for a ragged list."""
    if not isinstance(value, (list, tuple)):
        return ()
    shapes = [shape_of(each) for each in value]
    if None in shapes or len(set(shapes)) > 1:
        return None
    return (len(value), *(shapes[0] if shapes else ()))


def holds(dtype: np.dtype, number: Any) -> type[Exception] | None:
    """The exception of a number that an integer dtype does not hold."""
    if dtype.kind not in "iu" or isinstance(number, bool):
        return None
    if isinstance(number, float) and math.isnan(number):
        return ValueError
    if isinstance(number, float) and math.isinf(number):
        return OverflowError
    info = np.iinfo(dtype)
    return None if info.min <= math.trunc(number) <= info.max else OverflowError


def errors_of(value: Any, dtype: np.dtype | None) -> set[type[Exception]]:
    """The exceptions that a list may raise: several, if several things are wrong."""
    found: set[type[Exception]] = set()
    if shape_of(value) is None:
        found.add(ValueError)
    given = list(leaves(value))
    for each in given:
        if not isinstance(each, (bool, int, float)):
            found.add(TypeError)
        elif isinstance(each, int) and not -2**63 <= each < 2**64:
            found.add(OverflowError)
        elif dtype is not None and (error := holds(dtype, each)):
            found.add(error)
    whole = [each for each in given if isinstance(each, int)]
    if dtype is None and whole and min(whole) < 0 and max(whole) >= 2**63 and \
            len(whole) == len(given):
        found.add(OverflowError)  # no integer dtype holds both
    return found


def dtype_of(value: Any) -> str:
    """The dtype of the docs: bool, int32, int64 or uint64 where one is needed, or float32."""
    given = list(leaves(value))
    if not given or any(isinstance(each, float) for each in given):
        return "float32"
    whole = [int(each) for each in given if not isinstance(each, bool)]
    if not whole:
        return "bool"
    if max(whole) >= 2**63:
        return "uint64"
    return "int32" if -2**31 <= min(whole) and max(whole) < 2**31 else "int64"


def check(value: Any, dtype: np.dtype | None) -> None:
    made = outcome(lambda: pg.Tensor(value) if dtype is None else pg.Tensor(value, dtype=dtype))
    errors = errors_of(value, dtype)
    if errors:
        assert isinstance(made, tuple(errors)), (made, errors)
        return
    assert isinstance(made, pg.Tensor), made
    wanted = np.dtype(dtype_of(value)) if dtype is None else dtype
    with np.errstate(over="ignore"):
        # Floats become integers by truncation, all else by NumPy's own conversion.
        exact = np.array(list(map(math.trunc, leaves(value))) if wanted.kind in "iu" else
                         list(leaves(value)), wanted if wanted.kind in "iub" else np.float64)
        same(made, exact.astype(wanted).reshape(shape_of(value)))


@fuzz(500, value=numbers, dtype=st.none() | dtypes)
def test_numbers(value: Any, dtype: np.dtype | None) -> None:
    check(value, dtype)


@fuzz(600, value=nested(numbers), dtype=st.none() | dtypes)
def test_lists_of_all_numbers(value: Any, dtype: np.dtype | None) -> None:
    check(value, dtype)


@fuzz(300, value=nested(st.one_of(small, st.booleans())), dtype=st.none() | dtypes)
def test_lists_of_small_numbers(value: Any, dtype: np.dtype | None) -> None:
    check(value, dtype)


@fuzz(300, value=nested(st.one_of(small, floats, others)), dtype=st.none() | dtypes)
def test_lists_with_what_is_no_number(value: Any, dtype: np.dtype | None) -> None:
    check(value, dtype)


@fuzz(100, value=others, dtype=st.none() | dtypes)
def test_what_is_no_number(value: Any, dtype: np.dtype | None) -> None:
    with pytest.raises(TypeError):
        pg.Tensor(value, dtype=dtype)


@fuzz(200, values=st.lists(small, min_size=1, max_size=3), kinds=st.data())
def test_lists_of_numpys_numbers_and_tensors(values: list[int], kinds: st.DataObject) -> None:
    makers = [int, float, np.int64, np.float32, np.float64, np.int8, np.array, pg.Tensor,
              lambda each: np.array(each, np.float32), lambda each: pg.Tensor(float(each))]
    parts = [kinds.draw(st.sampled_from(makers))(each) for each in values]
    assert pg.Tensor(parts).tolist() == values
    assert pg.Tensor([parts, parts]).shape == (2, len(values))
    assert pg.Tensor(parts, dtype="int16").numpy().tolist() == values


def test_a_list_in_itself_is_ragged_or_too_deep() -> None:
    ring: list[Any] = []
    ring.append(ring)
    for value in (ring, [ring, 1], [1, ring], [[1], ring]):
        with pytest.raises(ValueError):
            pg.Tensor(value)
