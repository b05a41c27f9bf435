"""Runs a check on examples of hypothesis, a fixed number of them or for a time, and compares what
it does with NumPy.

    PLUGRAD_FUZZ_SECONDS=3600 python -m pytest python/tests/fuzz

runs each test in rounds of other examples until its share of the time is over. Without the variable
each test runs the same round every time, of a third of its examples unless PLUGRAD_TEST_ALL is set.
PLUGRAD_FUZZ_DEVICE names the device of the indexing
tests; REFERENCE, which compiles nothing, runs ten times as many examples as others.
"""
from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import plugrad as pg

SECONDS = float(os.environ.get("PLUGRAD_FUZZ_SECONDS", "0"))
IS_WHOLE = SECONDS > 0 or "PLUGRAD_TEST_ALL" in os.environ
DEVICE = os.environ.get("PLUGRAD_FUZZ_DEVICE", "REFERENCE")
_COUNT: list[str] = []  # names of the tests that share the time


def fuzz(examples: int, **strategies: st.SearchStrategy) -> Callable[[Callable[..., None]], Any]:
    """Makes a test of a check whose arguments are drawn from the strategies."""
    def decorate(check: Callable[..., None]) -> Any:
        _COUNT.append(check.__name__)

        def test() -> None:
            end = time.monotonic() + SECONDS / len(_COUNT)
            start = random.SystemRandom().getrandbits(32) if SECONDS else 0
            number = 0
            while number == 0 or time.monotonic() < end:
                run = given(**strategies)(check)
                run = settings(max_examples=examples if IS_WHOLE else examples // 3, deadline=None, database=None,
                               print_blob=True, suppress_health_check=list(HealthCheck))(run)
                seed(start + number)(run)()
                number += 1

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def same(actual: pg.Tensor, expected: np.ndarray) -> None:
    """Equal shape, dtype and values; every NaN equals every other."""
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
    values = actual.numpy()
    assert values.shape == expected.shape and values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or its exception."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001: which one it is, is what the tests compare
        return error
