"""Helpers of tinygrad's tests. Counts of its engine's kernels and plans are not compared."""
from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any


def assert_kernel_count(expected: int) -> None:
    pass


def assert_jit_cache_len(function: Any, expected: int) -> None:
    pass


def check_schedule(result: Any, allowed: int, *_: Any, **ignored: Any) -> None:
    for each in result if isinstance(result, (list, tuple)) else [result]:
        each.realize()


def slow(test: Callable[..., Any]) -> Callable[..., Any]:
    return test


def is_hcq2_device() -> bool:
    return False


def not_support_multi_device() -> bool:
    return True


needs_second_gpu = unittest.skip("needs two devices of tinygrad")
