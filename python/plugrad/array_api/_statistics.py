"""Statistics, and the functions all, any and diff."""
from __future__ import annotations

import math

from .. import _plugrad
from .._plugrad import Tensor, bool_
from ..errors import UserError
from ._dtypes import DType, result_type
from ._manipulation import axes_of
from ._operands import floats


def all(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False) -> Tensor:
    """Whether no element is 0."""
    return x.all(axis, keepdims)


def any(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False) -> Tensor:
    """Whether an element is not 0."""
    return x.any(axis, keepdims)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along an axis, n times."""
    if n < 0:
        raise UserError(f"[diff] n is 0 or more, not {n}")
    parts = [each for each in (prepend, x, append) if each is not None]
    dtype = result_type(*parts)
    made = _plugrad.cat([each.cast(dtype) for each in parts], axis)
    prefix = (slice(None),) * axes_of("diff", axis, x.ndim)[0]
    for _ in range(n):
        later, earlier = made[(*prefix, slice(1, None))], made[(*prefix, slice(None, -1))]
        made = later ^ earlier if dtype == bool_ else later - earlier
    return made


def max(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False) -> Tensor:
    """The largest element; NaN if any is. Errors: ValueError for no elements."""
    return require_elements("max", x, axis).max(axis, keepdims)


def min(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if any is. Errors: ValueError for no elements."""
    return require_elements("min", x, axis).min(axis, keepdims)


def require_elements(function: str, x: Tensor, axis: int | tuple[int, ...] | None) -> Tensor:
    if count_along(function, x, axis) == 0:
        raise UserError(f"[{function}] shape {x.shape} has no elements along axis {axis}")
    return x


def count_along(function: str, x: Tensor, axis: int | tuple[int, ...] | None) -> int:
    axes = range(x.ndim) if axis is None else axes_of(function, axis, x.ndim)
    return math.prod(x.shape[each] for each in axes)


def mean(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None,
         keepdims: bool = False) -> Tensor:
    """The mean, a float; NaN of no elements."""
    return x.mean(axis, keepdims)


def prod(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: DType | None = None,
         keepdims: bool = False) -> Tensor:
    """The product. Dtype: int64 for bool and signed integers, uint64 for unsigned ones."""
    return x.prod(axis, keepdims, dtype)


def sum(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: DType | None = None,
        keepdims: bool = False) -> Tensor:
    """The sum. Dtype: int64 for bool and signed integers, uint64 for unsigned ones."""
    return x.sum(axis, keepdims, dtype)


def std(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, correction: float = 0.0,
        keepdims: bool = False) -> Tensor:
    """The standard deviation, the root of var."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def var(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, correction: float = 0.0,
        keepdims: bool = False) -> Tensor:
    """The sum of the squared distances from the mean over (number of elements - correction)."""
    numbers = floats(x)
    if correction == int(correction):
        return numbers.var(axis, keepdims, int(correction))
    count = count_along("var", x, axis)
    distances = (numbers - numbers.mean(axis, True)).square()
    return distances.sum(axis, keepdims) / (count - correction)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                    include_initial: bool = False) -> Tensor:
    """The products of the elements up to each one; with `include_initial`, 1 comes first."""
    axis = scanned_axis("cumulative_prod", x, axis)
    made = x.cumprod(axis, dtype)
    return with_initial(made, axis, 1) if include_initial else made


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: bool = False) -> Tensor:
    """The sums of the elements up to each one; with `include_initial`, 0 comes first."""
    axis = scanned_axis("cumulative_sum", x, axis)
    made = x.cumsum(axis, dtype)
    return with_initial(made, axis, 0) if include_initial else made


def scanned_axis(function: str, x: Tensor, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise UserError(f"[{function}] shape {x.shape} needs an axis")
    return axes_of(function, axis or 0, x.ndim)[0]


def with_initial(scanned: Tensor, axis: int, value: int) -> Tensor:
    shape = [1 if i == axis else size for i, size in enumerate(scanned.shape)]
    first = Tensor.full(shape, value, scanned.dtype, scanned.device)
    return _plugrad.cat([first, scanned], axis)
