"""Shapes, joins and parts of tensors."""
from __future__ import annotations

import functools
from collections.abc import Sequence

from .. import _plugrad
from .._plugrad import Tensor
from ..errors import UserError
from ._dtypes import DEFAULT_INDEX, result_type
from ._searching import searchsorted


def axes_of(function: str, axis: int | Sequence[int], ndim: int) -> list[int]:
    """Axes from 0 on. Errors: UserError for axes that are not there or occur twice."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for each in axes:
        if not -ndim <= each < ndim:
            raise UserError(f"[{function}] axis {each} is out of range for {ndim} axes")
    axes = [each % ndim for each in axes]
    if len(set(axes)) < len(axes):
        raise UserError(f"[{function}] the axes {axis} name one axis twice")
    return axes


def in_common_dtype(arrays: Sequence[Tensor]) -> list[Tensor]:
    dtype = result_type(*arrays)
    return [each.cast(dtype) for each in arrays]


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape. Errors: UserError for shapes that do not broadcast."""
    ndim = max(map(len, shapes), default=0)
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    common = []
    for sizes in zip(*aligned):
        found = set(sizes) - {1} or {1}
        if len(found) > 1:
            raise UserError(f"[broadcast] shapes {', '.join(map(str, shapes))} do not broadcast")
        common.append(found.pop())
    return tuple(common)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors in their common shape."""
    shape = broadcast_shape(*(each.shape for each in arrays))
    return [each.expand(shape) for each in arrays]


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The tensor repeated to a shape. Errors: ValueError unless it broadcasts to the shape."""
    if broadcast_shape(x.shape, tuple(shape)) != tuple(shape):
        raise UserError(f"[broadcast_to] shape {x.shape} does not broadcast to {shape}")
    return x.expand(shape)


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Joins along an axis that all have; axis=None joins the elements in row-major order."""
    if axis is None:
        return _plugrad.cat([each.reshape(-1) for each in in_common_dtype(arrays)])
    return _plugrad.cat(in_common_dtype(arrays), axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """Inserts an axis of size 1."""
    return x.unsqueeze(axis)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverses axes: one, several, or all."""
    return x.flip(tuple(range(x.ndim)) if axis is None else axis)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...],
             /) -> Tensor:
    """Moves axes to other places; the others keep their order."""
    from_axes, to_axes = (axes_of("moveaxis", each, x.ndim) for each in (source, destination))
    if len(from_axes) != len(to_axes):
        raise UserError(f"[moveaxis] {source} and {destination} have different lengths")
    order = [axis for axis in range(x.ndim) if axis not in from_axes]
    for place, axis in sorted(zip(to_axes, from_axes)):
        order.insert(place, axis)
    return x.permute(order)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order: axis i is axes[i] of x."""
    return x.permute(axes_of("permute_dims", axes, x.ndim))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times in a row; a tensor has the count of each, and is read."""
    if isinstance(repeats, Tensor) and repeats.ndim == 0:
        repeats = int(repeats.item())
    if axis is None:
        x, axis = x.reshape(-1), 0
    [axis] = axes_of("repeat", axis, x.ndim)
    if isinstance(repeats, int):
        if repeats < 0:
            raise UserError(f"[repeat] {repeats} repeats")
        if repeats == 0:
            return x.shrink([(0, 0) if i == axis else None for i in range(x.ndim)])
        return x.repeat_interleave(repeats, axis)
    if repeats.ndim != 1 or repeats.shape[0] not in (1, x.shape[axis]):
        raise UserError(f"[repeat] {repeats.shape} repeats for an axis of {x.shape[axis]}")
    ends = repeats.expand(x.shape[axis]).cumsum(0, DEFAULT_INDEX)
    total = int(ends[-1].item()) if x.shape[axis] else 0
    places = Tensor.arange(total, DEFAULT_INDEX, x.device)
    return x.index_select(axis, searchsorted(ends, places, side="right"))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements, row-major, in another shape, of which one size may be -1."""
    return x.reshape(shape).clone() if copy else x.reshape(shape)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *,
         axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Shifts elements cyclically; without an axis, in row-major order."""
    if axis is None:
        if not isinstance(shift, int):
            raise UserError("[roll] several shifts need an axis each")
        return x.reshape(-1).roll(shift, 0).reshape(x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(axes) != len(shifts):
        raise UserError(f"[roll] {len(shifts)} shifts for {len(axes)} axes")
    return functools.reduce(lambda y, each: y.roll(*each), zip(shifts, axes), x)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Removes axes of size 1. Errors: ValueError for an axis of another size."""
    axes = axes_of("squeeze", axis, x.ndim)
    for each in axes:
        if x.shape[each] != 1:
            raise UserError(f"[squeeze] axis {each} of shape {x.shape} does not have size 1")
    return x.reshape([size for i, size in enumerate(x.shape) if i not in axes])


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis."""
    return _plugrad.stack(in_common_dtype(arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Copies of the tensor along each axis; the lists of sizes and repetitions end alike."""
    counts = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
    shaped = x.reshape((1,) * (len(counts) - x.ndim) + x.shape)
    if 0 in counts:
        return Tensor.zeros([size * count for size, count in zip(shaped.shape, counts)], x.dtype,
                            x.device)
    return shaped.repeat(counts)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, without it."""
    [axis] = axes_of("unstack", axis, x.ndim)
    prefix = (slice(None),) * axis
    return tuple(x[(*prefix, i)] for i in range(x.shape[axis]))
