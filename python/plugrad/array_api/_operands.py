"""Operands of functions of two tensors, of which one may be a number."""
from __future__ import annotations

from .._plugrad import Tensor
from ._dtypes import Number, default_of, result_type


def tensor_of(x: Tensor | Number, like: Tensor) -> Tensor:
    """A number in the dtype that it has beside a tensor."""
    if isinstance(x, Tensor):
        return x
    default_of(x)  # which refuses what is no number
    return Tensor.full((), x, result_type(like, x), like.device)


def pair(function: str, x1: Tensor | Number, x2: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Both as tensors. Errors: TypeError unless one of them is a tensor."""
    if isinstance(x1, Tensor):
        return x1, tensor_of(x2, x1)
    if isinstance(x2, Tensor):
        return tensor_of(x1, x2), x2
    raise TypeError(f"[{function}] one of the operands must be a tensor; got {x1!r} and {x2!r}")


def promoted_pair(function: str, x1: Tensor | Number,
                  x2: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Both as tensors of their common dtype."""
    a, b = pair(function, x1, x2)
    dtype = result_type(a, b)
    return a.cast(dtype), b.cast(dtype)


def diagonal_of(shape: tuple[int, ...], k: int) -> int:
    """The number k of a diagonal, which may have any size; beside the matrix, one near it."""
    most = max(shape[-2:], default=0)
    return max(-most, min(k, most))


def floats(x: Tensor) -> Tensor:
    """Integers as the floats of functions of real analysis."""
    return x if x.dtype.is_floating_point else x.cast(result_type(x, 1.0))
