"""Methods of tinygrad that plugrad has in another form, or that are made of a few of its own."""
from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import plugrad as pg

from .dtype import dtypes, summed, to_dtype
from .helpers import argfix
from .wrapping import call, unwrap, wrap

REDUCTIONS = {"amax": "max", "amin": "min", "multiply": "prod", "add": "sum"}


def scan(name: str) -> Callable[..., Any]:
    """A scan along axis 0 unless another is given; that of a number is the number."""
    function = getattr(pg.Tensor, name)

    def method(self: Any, axis: int = 0) -> Any:
        x = self.t
        dtype = {"dtype": summed(x.dtype)} if name in ("cumsum", "cumprod") else {}
        if x.ndim > 0:
            return wrap(function(x, axis, **dtype))
        made = function(x.reshape(1), axis, **dtype)
        return wrap(tuple(each.reshape(()) for each in made) if isinstance(made, tuple)
                    else made.reshape(()))

    return method


def cast_to(dtype: Any) -> Callable[..., Any]:
    return lambda self: wrap(self.t.cast(dtype))


class Composed:
    __slots__ = ()
    t: pg.Tensor

    cumsum, cumprod, logcumsumexp = scan("cumsum"), scan("cumprod"), scan("logcumsumexp")
    cummax, cummin = scan("cummax"), scan("cummin")
    bool, short, half = cast_to(dtypes.bool), cast_to(dtypes.short), cast_to(dtypes.half)
    int, long = cast_to(dtypes.int), cast_to(dtypes.long)
    float, double = cast_to(dtypes.float), cast_to(dtypes.double)
    bfloat16 = cast_to(dtypes.bfloat16)

    def cat(self, *args: Any, dim: builtins.int = 0) -> Any:
        return call(pg.cat, [self, *args], dim)

    def stack(self, *args: Any, dim: builtins.int = 0) -> Any:
        return call(pg.stack, list(argfix(self, *args)), dim)

    def reshape(self, shape: Any, *args: Any) -> Any:
        """A size of None is that of the axis."""
        sizes = argfix(shape, *args)
        return wrap(self.t.reshape([self.t.shape[i] if size is None else size
                                    for i, size in enumerate(sizes)]))

    view = reshape

    def meshgrid(self, *args: Any, indexing: str = "ij") -> Any:
        if indexing not in ("ij", "xy"):
            raise RuntimeError(f"indexing is {indexing!r}: neither 'ij' nor 'xy'")
        axes = [unwrap(each).reshape(-1) for each in (self, *args)]
        return (self,) if len(axes) == 1 else tuple(wrap(pg.meshgrid(axes, indexing=indexing)))

    def neg(self) -> Any:
        return wrap(~self.t if self.t.dtype == pg.bool_ else -self.t)

    __neg__ = neg

    def bitwise_not(self) -> Any:
        return wrap(~self.t)

    __invert__ = bitwise_not

    def div(self, x: Any, reverse: builtins.bool = False, rounding_mode: str | None = None) -> Any:
        a, b = (unwrap(x), self.t) if reverse else (self.t, unwrap(x))
        left = a if isinstance(a, pg.Tensor) else pg.Tensor(a)
        return wrap(left.div(b, rounding_mode or "none"))

    def idiv(self, x: Any, reverse: builtins.bool = False) -> Any:
        return self.div(x, reverse, "trunc")

    def fmod(self, x: Any) -> Any:
        return wrap(self.t.fmod(unwrap(x)))

    def clamp(self, min_: Any = None, max_: Any = None) -> Any:
        if min_ is None and max_ is None:
            raise RuntimeError("clamp takes a minimum or a maximum")
        x = self.t if min_ is None else self.t.maximum(unwrap(min_))
        return wrap(x if max_ is None else x.minimum(unwrap(max_)))

    clip = clamp

    def gelu(self, approximate: str = "tanh") -> Any:
        if approximate not in ("tanh", "none"):
            raise ValueError(f"approximate is {approximate!r}: neither 'tanh' nor 'none'")
        return wrap(self.t.gelu(approximate == "tanh"))

    def leaky_relu(self, neg_slope: builtins.float = 0.01) -> Any:
        return wrap(self.t.leaky_relu(neg_slope))

    def hardsigmoid(self, alpha: builtins.float = 1 / 6, beta: builtins.float = 0.5) -> Any:
        return wrap(self.t.hardsigmoid(alpha, beta))

    def hardtanh(self, min_val: builtins.float = -1, max_val: builtins.float = 1) -> Any:
        return wrap(self.t.hardtanh(min_val, max_val))

    def selu(self, alpha: builtins.float = 1.67326, gamma: builtins.float = 1.0507) -> Any:
        return wrap(gamma * self.t.elu(alpha))

    def softmin(self, axis: builtins.int = -1, dtype: Any = None) -> Any:
        return wrap((-self.t).softmax(axis, to_dtype(dtype)))

    def isinf(self, detect_positive: builtins.bool = True,
              detect_negative: builtins.bool = True) -> Any:
        return wrap(self.t.isposinf() & detect_positive | self.t.isneginf() & detect_negative)

    def diag(self) -> Any:
        if self.t.ndim != 1:
            raise ValueError(f"diag takes one axis, not {self.t.ndim}")
        return wrap(self.t.diag())

    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0,
                 dim2: builtins.int = 1) -> Any:
        return wrap(self.t.diagonal(offset, dim1, dim2))

    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Any:
        return wrap(self.t.flatten(start_dim, end_dim))

    def flip(self, axis: Any, *args: builtins.int) -> Any:
        return wrap(self.t.flip(argfix(axis, *args)))

    def squeeze(self, dim: builtins.int | None = None) -> Any:
        return self if self.t.ndim == 0 and dim in (0, -1) else wrap(self.t.squeeze(dim))

    def split(self, sizes: Any, dim: builtins.int = 0) -> Any:
        return tuple(wrap(self.t.split(sizes, dim)))

    def pad(self, padding: Any, mode: str = "constant", value: builtins.float = 0.0) -> Any:
        if mode == "replicate" and not isinstance(padding[0], (tuple, list)):
            # Repeats edges before it cuts.
            x = self.t.pad(tuple(max(each, 0) for each in padding), mode)
            return wrap(x.pad(tuple(min(each, 0) for each in padding)))
        return wrap(self.t.pad(tuple(padding), mode, value))

    def pad_to(self, shape: Any, *args: Any, value: builtins.float = 0) -> Any:
        return wrap(self.t.pad_to(list(argfix(shape, *args)), value))

    def shrink_to(self, shape: Any, *args: Any) -> Any:
        return wrap(self.t.shrink_to(list(argfix(shape, *args))))

    def roll(self, shifts: Any, dims: Any = None) -> Any:
        return wrap(self.t.roll(shifts, dims))

    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False) -> Any:
        return wrap(self.t.sort(dim, descending))

    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False) -> Any:
        return wrap(self.t.argsort(dim, descending))

    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True,
             sorted_: builtins.bool = True) -> Any:
        if not sorted_:
            raise NotImplementedError("topk sorts")
        return wrap(self.t.topk(k, dim, largest))

    def gather(self, dim: builtins.int, index: Any) -> Any:
        return wrap(self.t.gather(dim, unwrap(index)))

    def require_dtype(self, src: Any) -> None:
        source = unwrap(src)
        if isinstance(source, pg.Tensor) and source.dtype != self.t.dtype:
            raise RuntimeError(f"{source.dtype} values into a tensor of {self.t.dtype}")

    def scatter(self, dim: builtins.int, index: Any, src: Any, reduce: str | None = None) -> Any:
        if reduce not in (None, "add", "multiply"):
            raise TypeError(f"reduce is {reduce!r}: neither None, 'add' nor 'multiply'")
        self.require_dtype(src)
        how = "replace" if reduce is None else REDUCTIONS[reduce]
        return wrap(self.t.scatter(dim, unwrap(index), unwrap(src), how))

    def scatter_reduce(self, dim: builtins.int, index: Any, src: Any, reduce: str,
                       include_self: builtins.bool = True) -> Any:
        if reduce not in ("sum", "prod", "mean", "amax", "amin"):
            raise RuntimeError(f"reduce is {reduce!r}")
        self.require_dtype(src)
        how = REDUCTIONS.get(reduce, reduce)
        return wrap(self.t.scatter_reduce(dim, unwrap(index), unwrap(src), how, include_self))

    def masked_select(self, mask: Any, size: builtins.int | None = None,
                      fill_value: Any = 0) -> Any:
        wide = unwrap(mask) & self.t.ones_like("bool")
        return wrap(self.t.expand(wide.shape).masked_select(wide, size, fill_value))

    def nonzero(self, size: builtins.int | None = None, fill_value: Any = 0) -> Any:
        return wrap(self.t.nonzero(size, fill_value))

    def allclose(self, other: Any, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8,
                 equal_nan: builtins.bool = False) -> Any:
        return wrap(self.t.isclose(unwrap(other), rtol, atol, equal_nan).all())

    def ufix(self, x: Any) -> Any:
        return x if isinstance(x, Composed) else wrap(pg.Tensor(x))

    def const_like(self, b: Any, dtype: Any = None) -> Any:
        return wrap(self.t.full_like(b, to_dtype(dtype)))

    @staticmethod
    def const(b: Any, dtype: Any = None) -> Any:
        return wrap(pg.Tensor(b, dtype=to_dtype(dtype)))

    def usum(self, *others: Any) -> Any:
        return functools.reduce(operator.add, others, self)

    def uprod(self, *others: Any) -> Any:
        return functools.reduce(operator.mul, others, self)

    def contiguous_backward(self) -> Any:
        return self

    def is_floating_point(self) -> builtins.bool:
        return self.t.dtype.is_floating_point

    def element_size(self) -> builtins.int:
        return self.t.dtype.itemsize

    def nbytes(self) -> builtins.int:
        return self.t.numel() * self.t.dtype.itemsize

    def max_numel(self) -> builtins.int:
        return self.t.numel()
