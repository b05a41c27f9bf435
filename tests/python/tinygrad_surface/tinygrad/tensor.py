"""tinygrad's Tensor by plugrad's: names, orders of arguments and dtypes are tinygrad's."""
from __future__ import annotations

import operator
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

import plugrad as pg

from .composed import Composed
from .dtype import _to_np_dtype, dtypes, summed, to_dtype
from .helpers import argfix
from .uop.ops import skip
from .windows import Windows
from .wrapping import (WRAPPER, Wrapped, alike, binary, call, created, leaf, same, sizes, unwrap,
                       wrap)

SAME = """
    abs acos acosh all any argmax argmin asin asinh atan atanh ceil celu chunk clone contiguous
    copysign cos cosh detach elu erf exp exp2 floor hardswish isclose
    isfinite isnan item layernorm lerp log log10 log2 log_softmax logaddexp logical_not logsigmoid
    logsumexp masked_fill max maximum mean min minimum mish multinomial normalize numel numpy
    one_hot quick_gelu rearrange reciprocal relu relu6 repeat_interleave round rsqrt shrink sigmoid
    sign silu sin sinh softmax softplus softsign sqrt square std std_mean swish tan tanh tolist tril
    triu trunc unfold unflatten unsqueeze var var_mean where""".split()
SIZES = ("permute", "expand", "repeat")
CREATED = ("zeros", "ones", "empty", "rand", "randn", "kaiming_uniform", "kaiming_normal",
           "glorot_uniform", "scaled_uniform")
ALIKE = ("full_like", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "mod": operator.mod,
    "pow": operator.pow, "floordiv": operator.floordiv, "truediv": operator.truediv,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "lshift": operator.lshift,
    "rshift": operator.rshift, "matmul": operator.matmul}
NAMED = {"add": "add", "sub": "sub", "mul": "mul", "mod": "mod", "pow": "pow", "and": "bitwise_and",
         "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "lshift", "rshift": "rshift"}


def require_numbers(index: Any) -> None:
    """Errors: TypeError for a tensor as an end of a slice."""
    for each in index if isinstance(index, tuple) else (index,):
        if isinstance(each, slice) and \
                any(isinstance(end, Wrapped) for end in (each.start, each.stop, each.step)):
            raise TypeError("a tensor is no end of a slice: use item()")


class Tensor(Wrapped, Windows, Composed):
    def __init__(self, data: Any = None, device: Any = None, dtype: Any = None, **ignored: Any):
        if isinstance(data, pg.Tensor):
            self.t = data
            return
        if isinstance(data, pathlib.Path):
            data = data.read_bytes()
        if isinstance(data, bytes):
            data = np.frombuffer(data, _to_np_dtype(to_dtype(dtype) or dtypes.uint8))
        if data is None or (isinstance(data, (list, tuple)) and len(data) == 0):
            data = np.zeros(0, np.float32)
        self.t = leaf(pg.Tensor(unwrap(data), dtype=to_dtype(dtype), device=device)).t

    shape = max_shape = property(lambda self: self.t.shape)
    dtype = property(lambda self: self.t.dtype)
    device = property(lambda self: self.t.device)
    ndim = property(lambda self: self.t.ndim)
    T = property(lambda self: wrap(self.t.T))
    is_param = property(lambda self: self.t.requires_grad)
    uop = property(lambda self: skip("the nodes of tinygrad's graph"))

    @property
    def grad(self) -> Tensor | None:
        return wrap(self.t.grad)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self.t.grad = unwrap(value)

    def __repr__(self) -> str:
        return repr(self.t)

    def __len__(self) -> int:
        return len(self.t)

    def __bool__(self) -> bool:
        raise TypeError("a Tensor of tinygrad is neither true nor false")

    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, index: Any) -> Tensor:
        require_numbers(index)
        stop = getattr(index, "stop", None)
        if hasattr(stop, "variable") and index.start is None:  # x[:n] of a bound Variable n
            return call(stop.variable.limit, self, 0, int(stop))
        if isinstance(stop, int) and index.start is None and index.step is None and \
                self.ndim and stop >= self.t.bound_shape()[0]:  # also of a variable size
            return self
        return call(pg.Tensor.__getitem__, self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        require_numbers(index)
        call(pg.Tensor.__setitem__, self, index, value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        pg.Tensor.manual_seed(seed)

    def realize(self, *others: Tensor, **ignored: Any) -> Tensor:
        pg.realize(self.t, *map(unwrap, others))
        return self

    def assign(self, x: Any) -> Tensor:
        self.t.assign(unwrap(Tensor(x) if isinstance(x, (list, tuple, np.ndarray)) else x))
        return self

    replace = assign

    def to(self, device: str | None) -> Tensor:
        return self if device is None else call(pg.Tensor.to, self, device)

    def to_(self, device: str | None) -> Tensor:
        self.t = self.to(device).t
        return self

    def is_param_(self, is_param: bool = True) -> Tensor:
        self.t.requires_grad_(is_param)
        return self

    def backward(self, gradient: Tensor | None = None) -> Tensor:
        self.t.backward(unwrap(gradient), retain_graph=True)
        return self

    def gradient(self, *targets: Tensor, gradient: Tensor | None = None) -> list[Tensor]:
        """Zeros for a target that is not in the graph, where plugrad raises an error."""
        used = self.t
        for each in targets:
            used = used + (each.t * 0).sum().cast(self.dtype)
        return call(pg.gradient, used, list(targets), gradient)

    def cast(self, dtype: Any) -> Tensor:
        return wrap(self.t.cast(to_dtype(dtype)))

    def bitcast(self, dtype: Any) -> Tensor:
        return wrap(self.t.bitcast(to_dtype(dtype)))

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.t.size(dim)

    def data(self) -> memoryview:
        return memoryview(self.numpy())

    def sum(self, axis: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
        return wrap(self.t.sum(axis, keepdim, to_dtype(dtype) or summed(self.dtype)))

    def prod(self, axis: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
        return wrap(self.t.prod(axis, keepdim, to_dtype(dtype) or summed(self.dtype)))

    def matmul(self, x: Any, reverse: bool = False, dtype: Any = None) -> Tensor:
        a, b = (x, self) if reverse else (self, x)
        return call(pg.Tensor.matmul, a, b, dtype=dtype)

    def dot(self, w: Any, dtype: Any = None) -> Tensor:
        return self.matmul(w, dtype=dtype)

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Tensor:
        return wrap(self.t.transpose(dim0, dim1))

    def dropout(self, p: float = 0.5) -> Tensor:
        from .helpers import VARIABLES
        return wrap(self.t.dropout(p, bool(VARIABLES["TRAINING"])))

    @staticmethod
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None,
             **_: Any) -> Tensor:
        return leaf(pg.Tensor.full(argfix(shape), unwrap(fill_value), to_dtype(dtype),
                                   device))

    @staticmethod
    def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **_: Any) -> Tensor:
        first, last = (0, start) if stop is None else (start, stop)
        return wrap(pg.Tensor.arange(first, last, step, to_dtype(dtype)))

    @staticmethod
    def linspace(start: float, stop: float, steps: int, dtype: Any = None, **_: Any) -> Tensor:
        return wrap(pg.Tensor.linspace(start, stop, steps, to_dtype(dtype) or "float32"))

    @staticmethod
    def eye(n: int, m: int | None = None, dtype: Any = None, **_: Any) -> Tensor:
        return wrap(pg.Tensor.eye(n, n if m is None else m, to_dtype(dtype) or "float32"))

    @staticmethod
    def uniform(*shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None,
                **_: Any) -> Tensor:
        return leaf(pg.Tensor.uniform(argfix(*shape), low, high, to_dtype(dtype) or "float32"))

    @staticmethod
    def normal(*shape: Any, mean: float = 0.0, std: float = 1.0, dtype: Any = None,
               **_: Any) -> Tensor:
        return leaf(pg.Tensor.normal(argfix(*shape), mean, std, to_dtype(dtype) or "float32"))

    @staticmethod
    def randint(*shape: Any, low: int = 0, high: int = 10, dtype: Any = None, **_: Any) -> Tensor:
        return wrap(pg.Tensor.randint(argfix(*shape), low, high, to_dtype(dtype) or "int32"))

    @staticmethod
    def randperm(n: int, dtype: Any = None, **_: Any) -> Tensor:
        return wrap(pg.Tensor.randperm(n, to_dtype(dtype) or "int32"))

    def sequential(self, layers: list[Callable[[Tensor], Tensor]]) -> Tensor:
        x = self
        for layer in layers:
            x = layer(x)
        return x

    @staticmethod
    def einsum(formula: str, *operands: Any, dtype: Any = None) -> Tensor:
        return call(pg.einsum, formula, list(argfix(*operands)), dtype=dtype)


def _fill() -> None:
    for names, make in ((SAME, same), (SIZES, sizes), (ALIKE, alike)):
        for name in names:
            setattr(Tensor, name, make(name))
    for name in CREATED:
        setattr(Tensor, name, staticmethod(created(name)))
    for name, function in OPERATORS.items():
        forward = binary(name, function)
        setattr(Tensor, f"__{name}__", lambda self, x, f=forward: f(self, x))
        setattr(Tensor, f"__r{name}__", lambda self, x, f=forward: f(self, x, True))
        setattr(Tensor, f"__i{name}__", lambda self, x, f=forward: self.assign(f(self, x)))
        if name in NAMED:
            setattr(Tensor, NAMED[name], forward)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", binary(name, getattr(operator, name)))
        if name in ("eq", "ne"):
            setattr(Tensor, name, binary(name, getattr(operator, name)))
    WRAPPER.append(Tensor)


_fill()
