"""Distinct elements. The functions read the values to count them."""
from __future__ import annotations

from typing import NamedTuple

from .. import _plugrad
from .._plugrad import Tensor, bool_
from ._dtypes import DEFAULT_INDEX
from ._searching import ordered


class UniqueAllResult(NamedTuple):
    """Distinct elements, where each occurs first, where each element is among them, and how often
    each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """Distinct elements and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """Distinct elements and where each element is among them."""

    values: Tensor
    inverse_indices: Tensor


class Runs:
    """The elements in order, and where runs of equal ones begin; each NaN is a run."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.values, self.order = ordered(x.reshape(-1)).sort()
        self.count = self.values.shape[0]
        if self.count == 0:
            self.is_start = Tensor.zeros(0, bool_, x.device)
            self.starts = Tensor.zeros(0, DEFAULT_INDEX, x.device)
            return
        first = Tensor.ones(1, bool_, x.device)
        self.is_start = _plugrad.cat([first, self.values[1:] != self.values[:-1]])
        _plugrad.realize(self.values, self.order, self.is_start)
        self.starts = self.is_start.nonzero()[:, 0].cast(DEFAULT_INDEX)

    def distinct(self) -> Tensor:
        return self.values.index_select(0, self.starts).cast(self.x.dtype)

    def first_indices(self) -> Tensor:
        return self.order.index_select(0, self.starts).cast(DEFAULT_INDEX)

    def inverse(self) -> Tensor:
        if self.count == 0:
            return Tensor.zeros(self.x.shape, DEFAULT_INDEX, self.x.device)
        number = self.is_start.cumsum(0, DEFAULT_INDEX) - 1
        return number.zeros_like().scatter(0, self.order, number).reshape(self.x.shape)

    def counts(self) -> Tensor:
        end = Tensor.full(1, self.count, DEFAULT_INDEX, self.x.device)
        ends = _plugrad.cat([self.starts, end])
        return ends[1:] - ends[:-1]


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The distinct elements in order, their first indices, the inverse indices, and the counts."""
    runs = Runs(x)
    return UniqueAllResult(runs.distinct(), runs.first_indices(), runs.inverse(), runs.counts())


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The distinct elements in order and how often each occurs."""
    runs = Runs(x)
    return UniqueCountsResult(runs.distinct(), runs.counts())


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The distinct elements in order and where each element is among them."""
    runs = Runs(x)
    return UniqueInverseResult(runs.distinct(), runs.inverse())


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements in order."""
    return Runs(x).distinct()
