"""Names of tinygrad's graph. A test that uses one skips itself: it tests tinygrad's engine."""
from __future__ import annotations

import unittest
from typing import Any


def skip(what: str) -> Any:
    raise unittest.SkipTest(f"the adapter does not have {what}")


class Missing(type):
    """Classes whose attributes and instances skip the test."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # which Python itself asks for
            raise AttributeError(name)
        return skip(f"{cls.__name__}.{name}")

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        return skip(cls.__name__)


class Ops(metaclass=Missing):
    pass


class UOp(metaclass=Missing):
    pass


class KernelInfo(metaclass=Missing):
    pass
