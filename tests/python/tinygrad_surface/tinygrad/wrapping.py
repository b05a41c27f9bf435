"""From the adapter's tensors to plugrad's and back, for arguments in lists and tuples too."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plugrad as pg

from .dtype import to_dtype
from .helpers import argfix


class Wrapped:
    """Holds one tensor of plugrad."""

    __slots__ = ("t", "__weakref__")
    t: pg.Tensor


WRAPPER: list[Callable[[pg.Tensor], Wrapped]] = []  # Tensor of tensor.py


def unwrap(value: Any) -> Any:
    if isinstance(value, Wrapped):
        return value.t
    if isinstance(value, (list, tuple)):
        return type(value)(unwrap(each) for each in value)
    if isinstance(value, slice):
        return slice(unwrap(value.start), unwrap(value.stop), unwrap(value.step))
    return value


def wrap(value: Any) -> Any:
    if isinstance(value, pg.Tensor):
        return WRAPPER[0](value)
    if isinstance(value, (list, tuple)):
        return type(value)(wrap(each) for each in value)
    return value


def call(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    given = {key: to_dtype(value) if key == "dtype" else unwrap(value)
             for key, value in keywords.items()}
    return wrap(function(*map(unwrap, args), **given))


def leaf(made: pg.Tensor) -> Any:
    """Every tensor of floats that a program makes gets a gradient."""
    return wrap(made.requires_grad_() if made.dtype.is_floating_point else made)


def same(name: str) -> Callable[..., Any]:
    """A method that plugrad has under the same name with the same arguments."""
    function = getattr(pg.Tensor, name)

    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return call(function, self, *args, **keywords)

    method.__name__ = name
    return method


def sizes(name: str) -> Callable[..., Any]:
    """The same for a method of sizes or axes: one list, or one by one."""
    function = getattr(pg.Tensor, name)

    def method(self: Any, shape: Any, *args: Any) -> Any:
        return call(function, self, argfix(shape, *args))

    method.__name__ = name
    return method


def created(name: str) -> Callable[..., Any]:
    """A creation by shape."""
    function = getattr(pg.Tensor, name)

    def method(*shape: Any, dtype: Any = None, device: Any = None, a: float | None = None,
               **ignored: Any) -> Any:
        given = {"dtype": to_dtype(dtype), "device": device, "a": a}
        return leaf(function(argfix(*shape), **{key: value for key, value in given.items()
                                                if value is not None}))

    method.__name__ = name
    return method


def alike(name: str) -> Callable[..., Any]:
    """A creation like another tensor."""
    function = getattr(pg.Tensor, name)

    def method(self: Any, *value: Any, dtype: Any = None, **ignored: Any) -> Any:
        return leaf(function(self.t, *map(unwrap, value), dtype=to_dtype(dtype)))

    method.__name__ = name
    return method


def binary(name: str, operator: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """x op y, or y op x with `reverse`."""

    def method(self: Any, x: Any, reverse: bool = False) -> Any:
        a, b = unwrap(self), pg.Tensor(x) if isinstance(x, np.ndarray) else unwrap(x)
        return wrap(operator(b, a) if reverse else operator(a, b))

    method.__name__ = name
    return method


def pads(padding: Any, axes: int) -> Any:
    """Padding of windows: one number, one an axis, or (before, after), the last axis first."""
    if isinstance(padding, (tuple, list)) and len(padding) == 2 * axes and axes > 0:
        return tuple(tuple(padding[2 * i:2 * i + 2]) for i in reversed(range(axes)))
    return padding
