"""tinygrad's TinyJit and Variable."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad as pg

from .wrapping import unwrap, wrap


class TinyJit:
    """Recorded at the second call, and replayed from the third on."""

    def __init__(self, function: Callable[..., Any]):
        def on_tensors(args: Any, keywords: dict[str, Any]) -> Any:
            wrapped = {key: wrap(each) for key, each in keywords.items()}
            return unwrap(function(*wrap(args), **wrapped))

        self.recorded = pg.jit(on_tensors)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        given = {key: unwrap(each) for key, each in keywords.items()}
        return wrap(self.recorded(unwrap(args), given))


class Bound(int):
    """The value, which is computed with as a number, and its variable."""
    variable: pg.Variable


class Variable:
    def __init__(self, name: str, low: int, high: int):
        self.variable = pg.Variable(name, low, high)

    def bind(self, value: int) -> Bound:
        bound = Bound(value)
        bound.variable = self.variable
        return bound
