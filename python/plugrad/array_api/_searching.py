"""Indices, conditions and orders: searching, sorting and indexing functions."""
from __future__ import annotations

from typing import Literal

from .. import _plugrad
from .._plugrad import Tensor, bool_, uint8
from ..errors import UserError
from ._dtypes import DEFAULT_INDEX, Number, result_type
from ._operands import tensor_of


def ordered(x: Tensor) -> Tensor:
    """A tensor that has an order: bool as integers."""
    return x.cast(uint8) if x.dtype == bool_ else x


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the first maximum; without an axis, into the row-major elements."""
    return index_of(ordered(x).argmax(axis), x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the first minimum; without an axis, into the row-major elements."""
    return index_of(ordered(x).argmin(axis), x, axis, keepdims)


def index_of(found: Tensor, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if keepdims:
        found = found.reshape([1] * x.ndim) if axis is None else found.unsqueeze(axis)
    return found.cast(DEFAULT_INDEX)


def count_nonzero(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
                  keepdims: bool = False) -> Tensor:
    """The number of elements that are not 0."""
    return (x != 0).sum(axis, keepdims, DEFAULT_INDEX)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, one tensor for each axis; reads the values."""
    if x.ndim == 0:
        raise UserError("[nonzero] a tensor of shape () has no indices")
    rows = x.nonzero().cast(DEFAULT_INDEX)
    return tuple(rows[:, axis] for axis in range(x.ndim))


def searchsorted(x1: Tensor, x2: Tensor | Number, /, *, side: Literal["left", "right"] = "left",
                 sorter: Tensor | None = None) -> Tensor:
    """Where elements of x2 can be inserted so that the vector x1 stays sorted, in front of equal
    elements ("left") or behind them ("right")."""
    if side not in ("left", "right"):
        raise UserError(f'[searchsorted] side is "left" or "right", not {side!r}')
    if x1.ndim != 1:
        raise UserError(f"[searchsorted] x1 is a vector, not a tensor of shape {x1.shape}")
    values = ordered(x1 if sorter is None else x1.index_select(0, sorter))
    wanted = ordered(tensor_of(x2, x1))
    dtype = result_type(values, wanted)
    values, places = values.cast(dtype), wanted.cast(dtype).reshape(-1)
    if 0 in (values.shape[0], places.shape[0]):
        return Tensor.zeros(wanted.shape, DEFAULT_INDEX, x1.device)
    # Sorted together, an element's place is the number of elements of x1 in front of it.
    is_first = side == "left"
    joined = _plugrad.cat([places, values] if is_first else [values, places])
    order = joined.argsort()
    count = places.shape[0]
    is_value = order >= count if is_first else order < values.shape[0]
    before = is_value.cumsum(0, DEFAULT_INDEX)
    ranks = before.zeros_like().scatter(0, order, before)
    return (ranks[:count] if is_first else ranks[-count:]).reshape(wanted.shape)


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 where the bool tensor is True, else x2."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        dtype = result_type(Tensor.empty(0, dtype=bool_), x1, x2)
        return _plugrad.where(condition, Tensor.full((), x1, dtype, condition.device),
                              Tensor.full((), x2, dtype, condition.device))
    return _plugrad.where(condition, tensor_of(x1, x2) if isinstance(x2, Tensor) else x1,
                          tensor_of(x2, x1) if isinstance(x1, Tensor) else x2)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> Tensor:
    """The indices of the sorted values along an axis. The order is always stable; NaN is the
    largest."""
    return ordered(x).argsort(axis, descending).cast(DEFAULT_INDEX)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False,
         stable: bool = True) -> Tensor:
    """The values along an axis in order. NaN is the largest."""
    return ordered(x).sort(axis, descending)[0].cast(x.dtype)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements with these indices along an axis, which a vector need not name."""
    if axis is None:
        if x.ndim != 1:
            raise UserError(f"[take] shape {x.shape} needs an axis")
        axis = 0
    return x.index_select(axis, indices)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """For each row along an axis, the elements with the indices of its own."""
    if x.ndim != indices.ndim:
        raise UserError(f"[take_along_axis] shapes {x.shape} and {indices.shape} have different "
                        "numbers of axes")
    if not -x.ndim <= axis < x.ndim:
        raise UserError(f"[take_along_axis] axis {axis} is out of range for shape {x.shape}")
    axis %= x.ndim

    def common(own: int) -> list[int]:
        return [own if i == axis else max(pair) if 0 not in pair else 0
                for i, pair in enumerate(zip(x.shape, indices.shape))]

    return x.expand(common(x.shape[axis])).gather(axis, indices.expand(
        common(indices.shape[axis])))
