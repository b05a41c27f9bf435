"""Calls of plugrad.array_api and of another namespace of the standard, whose results must agree.

The other one is array_api_strict where a version that has 2024.12 is installed, else NumPy.
"""
from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrad as pg
import plugrad.array_api as xp

try:
    import array_api_strict as strict
except ImportError:
    strict = None


def has_strict() -> bool:
    return strict is not None and tuple(map(int, strict.__version__.split(".")[:2])) >= (2, 6)


reference: Any = strict if has_strict() else np


class Dtype(str):
    """The name of a dtype, which each namespace has as an object of its own."""


class Case(NamedTuple):
    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        values = [brief(each) for each in self.args]
        values += [f"{name}={brief(each)}" for name, each in self.kwargs.items()]
        return f"{self.function}({', '.join(values)})"


def case(function: str, *args: Any, **kwargs: Any) -> Case:
    return Case(function, args, kwargs)


def brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list):
        return f"[{', '.join(map(brief, value))}]"
    return str(value)


def passed(namespace: Any, value: Any) -> Any:
    """An argument as the namespace takes it."""
    if isinstance(value, np.ndarray):
        return namespace.asarray(value, copy=True)
    if isinstance(value, Dtype):
        return getattr(namespace, value)
    if isinstance(value, (tuple, list)):
        return type(value)(passed(namespace, each) for each in value)
    return value


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in flat(each)]
    return [result.numpy() if isinstance(result, pg.Tensor) else np.asarray(result)]


def call(namespace: Any, case: Case) -> list[Any]:
    function = namespace
    for part in case.function.split("."):
        function = getattr(function, part)
    kwargs = {name: passed(namespace, value) for name, value in case.kwargs.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing
        return flat(function(*passed(namespace, list(case.args)), **kwargs))


def check(case: Case, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    try:
        expected = call(reference, case)
    except TypeError as error:
        if has_strict():
            raise
        pytest.skip(f"NumPy does not take this: {error}")
    found = call(xp, case)
    assert len(found) == len(expected)
    for ours, other in zip(found, expected):
        assert ours.shape == other.shape
        assert ours.dtype == other.dtype
        np.testing.assert_allclose(ours, other, rtol, atol)


def check_bits(found: Any, expected: Any, rtol: float) -> None:
    """Equal values to a relative error, with the same signs of zeros, infinities and NaN."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    np.testing.assert_allclose(found, expected, rtol, np.finfo(expected.dtype).tiny)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


random = np.random.default_rng(0)
X = random.standard_normal((3, 4)).astype(np.float32)
Y = random.standard_normal((4, 3)).astype(np.float32)
INTS = random.integers(-5, 5, (3, 4))
BYTES = random.integers(0, 5, (2, 3, 4)).astype(np.uint8)
BOOLS = random.random((3, 4)) > 0.5
EMPTY = np.zeros((0, 3), np.float32)
NUMBER = np.array(3.5, np.float32)
VECTOR = random.integers(-3, 3, 5).astype(np.int32)
F32 = Dtype("float32")
F64 = Dtype("float64")
