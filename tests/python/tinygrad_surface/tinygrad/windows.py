"""Convolutions, pools and the other functions of nn with tinygrad's orders of arguments."""
from __future__ import annotations

from typing import Any

import plugrad as pg

from .dtype import to_dtype
from .helpers import argfix, make_tuple
from .wrapping import call, pads, unwrap, wrap


class Windows:
    __slots__ = ()
    t: pg.Tensor

    def conv2d(self, weight: Any, bias: Any = None, groups: int = 1, stride: Any = 1,
               dilation: Any = 1, padding: Any = 0, dtype: Any = None) -> Any:
        return call(pg.conv, self, weight, bias, stride, pads(padding, weight.ndim - 2), dilation,
                    groups, dtype=dtype)

    def conv_transpose2d(self, weight: Any, bias: Any = None, groups: int = 1, stride: Any = 1,
                         dilation: Any = 1, padding: Any = 0, output_padding: Any = 0) -> Any:
        return call(pg.conv_transpose, self, weight, bias, stride, pads(padding, weight.ndim - 2),
                    output_padding, dilation, groups)

    def avg_pool2d(self, kernel_size: Any = (2, 2), stride: Any = None, dilation: Any = 1,
                   padding: Any = 0, ceil_mode: bool = False,
                   count_include_pad: bool = True) -> Any:
        kernel = make_tuple(kernel_size, 2)
        return call(getattr(pg, f"avg_pool{len(kernel)}d"), self, kernel, stride,
                    pads(padding, len(kernel)), dilation, ceil_mode, count_include_pad)

    def max_pool2d(self, kernel_size: Any = (2, 2), stride: Any = None, dilation: Any = 1,
                   padding: Any = 0, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        kernel = make_tuple(kernel_size, 2)
        places = "_with_places" if return_indices else ""
        return call(getattr(pg, f"max_pool{len(kernel)}d{places}"), self, kernel, stride,
                    pads(padding, len(kernel)), dilation, ceil_mode)

    def max_unpool2d(self, indices: Any, kernel_size: Any = (2, 2), stride: Any = None,
                     dilation: Any = 1, padding: Any = 0, output_size: Any = None) -> Any:
        kernel = make_tuple(kernel_size, 2)
        size = None if output_size is None else tuple(output_size)[-len(kernel):]
        return call(getattr(pg, f"max_unpool{len(kernel)}d"), self, indices, kernel, stride,
                    pads(padding, len(kernel)), size, dilation)

    def interpolate(self, size: tuple[int, ...], mode: str = "linear",
                    align_corners: bool = False) -> Any:
        """The last axes, as many as sizes; plugrad's has two axes in front of them."""
        front = self.t.shape[:self.t.ndim - len(size)]
        x = self.t.reshape((1, -1) + self.t.shape[len(front):])
        made = pg.interpolate(x, tuple(size), None, mode.replace("-", "_"), align_corners)
        return wrap(made.reshape(front + tuple(size)))

    def batchnorm(self, weight: Any, bias: Any, mean: Any, invstd: Any, axis: Any = 1) -> Any:
        axes = argfix(axis) if isinstance(axis, tuple) else (axis,)
        shape = [size if i in axes else 1 for i, size in enumerate(self.t.shape)]
        scale = unwrap(invstd)
        x = self.t - unwrap(mean).reshape(shape)
        if weight is not None:
            x = x * unwrap(weight).reshape(shape)
        x = x * (scale.reshape(shape) if scale.ndim == len(axes) else scale)
        return wrap(x if bias is None else x + unwrap(bias).reshape(shape))

    def linear(self, weight: Any, bias: Any = None, dtype: Any = None) -> Any:
        x, w, b = (each if each is None or dtype is None else each.cast(to_dtype(dtype))
                   for each in map(unwrap, (self, weight, bias)))
        product = x * w if w.ndim == 1 else x @ w
        return wrap(product if b is None else product + b)

    def scaled_dot_product_attention(self, key: Any, value: Any, attn_mask: Any = None,
                                     dropout_p: float = 0.0, is_causal: bool = False,
                                     enable_gqa: bool = False) -> Any:
        return call(pg.scaled_dot_product_attention, self, key, value, attn_mask, is_causal,
                    dropout_p, enable_gqa)

    def binary_crossentropy(self, Y: Any, reduction: str = "mean") -> Any:
        return call(pg.binary_crossentropy, self, Y, reduction=reduction)

    def binary_crossentropy_logits(self, Y: Any, reduction: str = "mean",
                                   pos_weight: Any = None) -> Any:
        return call(pg.binary_crossentropy_logits, self, Y, None, pos_weight, reduction)

    def cross_entropy(self, Y: Any, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
        return call(pg.cross_entropy, self, Y, label_smoothing, None, reduction)

    def sparse_categorical_crossentropy(self, Y: Any, ignore_index: int = -1,
                                        label_smoothing: float = 0.0,
                                        reduction: str = "mean") -> Any:
        return call(pg.sparse_categorical_crossentropy, self, Y, label_smoothing, ignore_index,
                    reduction)

    def nll_loss(self, Y: Any, weight: Any = None, ignore_index: int | None = None,
                 reduction: str = "mean") -> Any:
        return call(pg.nll_loss, self, Y, 0.0, ignore_index, reduction, weight)

    def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1e-7) -> Any:
        """Odd polynomials of any degree: params[i] is the factor of (x xᵀ)ⁱ x."""
        is_tall = self.t.shape[-2] > self.t.shape[-1]
        x = self.t.transpose(-2, -1) if is_tall else self.t
        x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + eps)
        for _ in range(steps):
            gram, power, total = x @ x.transpose(-2, -1), x, x * params[0]
            for factor in params[1:]:
                power = gram @ power
                total = total + power * factor
            x = total
        return wrap(x.transpose(-2, -1) if is_tall else x)

    def qr(self) -> Any:
        return call(pg.qr, self, True)

    def svd(self, full_matrices: bool = True) -> Any:
        return call(pg.svd, self, full_matrices)
