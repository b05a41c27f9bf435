"""LU factors of matrices, and what functions of matrices check."""
from __future__ import annotations

from .. import _plugrad
from .._plugrad import Tensor, where
from ..errors import UserError, UserTypeError
from ._dtypes import DEFAULT_INDEX, finfo


def require_matrices(function: str, x: Tensor, is_square: bool = False) -> None:
    if x.ndim < 2 or is_square and x.shape[-1] != x.shape[-2]:
        raise UserError(f"[{function}] takes {'square ' if is_square else ''}matrices, not a "
                        f"tensor of shape {x.shape}")
    if not x.dtype.is_floating_point:
        raise UserTypeError(f"[{function}] takes floats, not {x.dtype}; cast it")


def indices(count: int, like: Tensor) -> Tensor:
    return Tensor.arange(count, DEFAULT_INDEX, like.device)


def tolerance(rtol: float | Tensor | None, x: Tensor) -> float | Tensor:
    """The part of the largest singular value up to which others count as 0."""
    if rtol is None:
        return max(x.shape[-2:]) * finfo(x.dtype).eps
    return rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol


class Factors:
    """P x = L U by partial pivoting; the steps are computed one by one."""

    def __init__(self, x: Tensor) -> None:
        count = x.shape[-1]
        batch = x.shape[:-2]
        self.lu = x.contiguous()
        rows = indices(count, x)
        self.order = rows.expand((*batch, count)).contiguous()
        self.sign = Tensor.ones(batch, x.dtype, x.device)
        for i in range(count):
            step = Tensor([i], DEFAULT_INDEX, x.device).realize()
            column = self.lu.index_select(-1, step).squeeze(-1)
            candidates = where(rows >= step, column.abs(), -1.0)
            pivot = candidates.argmax(-1, True).cast(DEFAULT_INDEX)
            swapped = where(rows == step, pivot, where(rows == pivot, step, rows))
            self.sign = where((pivot == step).squeeze(-1), self.sign, -self.sign)
            self.order = self.order.gather(-1, swapped)
            lu = self.lu.gather(-2, swapped.unsqueeze(-1).expand(x.shape)).contiguous()
            row = lu.index_select(-2, step)
            column = lu.index_select(-1, step)
            head = row.index_select(-1, step)
            is_below = rows.unsqueeze(1) > step
            # A column of zeros has nothing to eliminate.
            factor = where(is_below & (head != 0.0), column / head, 0.0)
            eliminated = lu - factor * where(rows > step, row, 0.0)
            self.lu = where(is_below & (rows == step), factor, eliminated)
            _plugrad.realize(self.lu, self.order, self.sign)

    def diagonal(self) -> Tensor:
        return self.lu.diagonal(0, -2, -1)


def substitute(lu: Tensor, b: Tensor) -> Tensor:
    """The x of L U x = b, whose rows are eliminated one by one, downwards and upwards."""
    rows = indices(lu.shape[-1], lu).unsqueeze(1)
    made = b.contiguous()
    count = lu.shape[-1]
    for i in range(count):
        step = Tensor([i], DEFAULT_INDEX, lu.device).realize()
        column = where(rows > step, lu.index_select(-1, step), 0.0)
        made = (made - column * made.index_select(-2, step)).realize()
    for i in reversed(range(count)):
        step = Tensor([i], DEFAULT_INDEX, lu.device).realize()
        column = lu.index_select(-1, step)
        row = made.index_select(-2, step) / column.index_select(-2, step)
        above = made - where(rows < step, column, 0.0) * row
        made = where(rows == step, row, above).realize()
    return made
