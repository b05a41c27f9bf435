"""Products of tensors."""
from __future__ import annotations

from collections.abc import Sequence

from .. import _plugrad
from .._plugrad import Tensor
from ..errors import UserError
from ._dtypes import result_type
from ._manipulation import broadcast_arrays


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix products of the last two axes; a vector is a row on the left, a column on the right."""
    return _plugrad.matmul(x1, x2).cast(result_type(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes swapped. Errors: ValueError below two axes."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *,
              axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over the last axes of x1 and the first of x2, or over listed axes."""
    made = _plugrad.tensordot(x1, x2, axes) if isinstance(axes, int) else \
        _plugrad.tensordot(x1, x2, list(axes[0]), list(axes[1]))
    return made.cast(result_type(x1, x2))


def require_common_axis(function: str, x1: Tensor, x2: Tensor, axis: int) -> None:
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise UserError(f"[{function}] axis {axis} is not from -1 to {-min(x1.ndim, x2.ndim)}, the "
                        f"common axes of shapes {x1.shape} and {x2.shape} counted from the end")


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis that both have, counted from the end."""
    require_common_axis("vecdot", x1, x2, axis)
    if x1.shape[axis] != x2.shape[axis]:
        raise UserError(f"[vecdot] sizes along axis {axis} differ: {x1.shape} and {x2.shape}")
    a, b = broadcast_arrays(x1, x2)
    return (a * b).sum(axis, False, result_type(x1, x2))
