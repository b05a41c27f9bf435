"""The helpers that tinygrad's tests import. Settings of its engine have no effect here."""
from __future__ import annotations

import contextlib
import math
import os
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

OSX, WIN = sys.platform == "darwin", sys.platform == "win32"


def getenv(key: str, default: Any = 0) -> Any:
    return type(default)(os.environ.get(key, default))


class ContextVar:
    renderer: str  # of DEV

    def __init__(self, key: str, value: Any):
        self.key, self.value = key, getenv(key, value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)


VARIABLES = {key: ContextVar(key, 0) for key in (
    "DEBUG", "IMAGE", "BEAM", "IGNORE_BEAM_CACHE", "NOOPT", "JIT", "FLOAT16", "WINO",
    "TRANSCENDENTAL", "TRACEMETA", "SPEC", "TRAINING", "CHECK_OOB", "ALLOW_TF32", "CPU_LLVM",
    "AMD_LLVM")}
VARIABLES["DEV"] = ContextVar("DEV", "")
VARIABLES["DEV"].renderer = ""
globals().update(VARIABLES)
CI, EMULATE = bool(os.environ.get("CI")), ""


class Context(contextlib.ContextDecorator):
    """Sets variables of the same name for a while."""

    def __init__(self, **values: Any):
        self.values = values

    def __enter__(self) -> None:
        self.before = {key: VARIABLES[key].value for key in self.values if key in VARIABLES}
        for key in self.before:
            VARIABLES[key].value = self.values[key]

    def __exit__(self, *error: object) -> None:
        for key, value in self.before.items():
            VARIABLES[key].value = value


class GlobalCounters:
    """Counters of tinygrad's engine: always 0."""
    global_ops = global_mem = kernel_count = mem_used = 0
    time_sum_s = 0.0

    @staticmethod
    def reset() -> None:
        pass


def temp(name: str) -> str:
    return os.path.join(tempfile.gettempdir(), name)


def prod(values: Iterable[Any]) -> Any:
    return math.prod(values)


def argfix(*values: Any) -> tuple[Any, ...]:
    """Values given one by one, or as one list. Errors: ValueError for a list and others."""
    if not values or not isinstance(values[0], (tuple, list)):
        return values
    if len(values) != 1:
        raise ValueError(f"one list or values are expected, not {values}")
    return tuple(values[0])


def make_tuple(value: Any, count: int) -> tuple[Any, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return [item for each in lists for item in each]


def dedup(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def all_same(values: list[Any]) -> bool:
    return all(value == values[0] for value in values)


def ceildiv(a: int, b: int) -> int:
    return -(a // -b)


def round_up(a: int, b: int) -> int:
    return ceildiv(a, b) * b
