"""tinygrad's layers by plugrad's. Attributes of a layer are its tensors, as the adapter's."""
from __future__ import annotations

from typing import Any

import plugrad as pg

from ..wrapping import pads, unwrap, wrap


class Layer:
    """Holds a layer of plugrad."""

    def __init__(self, layer: Any):
        object.__setattr__(self, "layer", layer)

    def __getattr__(self, name: str) -> Any:
        if name == "layer":
            raise AttributeError(name)
        return wrap(getattr(self.layer, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.layer, name, unwrap(value))

    def __call__(self, *args: Any) -> Any:
        return wrap(self.layer(*unwrap(args)))


class Linear(Layer):
    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__(pg.nn.Linear(in_features, out_features, bias))


class Conv2d(Layer):
    made, axes = pg.nn.Conv2d, 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True):
        if isinstance(padding, str) and (padding != "same" or stride != 1):
            raise ValueError(f"padding {padding!r} with stride {stride}: 'same' has stride 1")
        super().__init__(self.made(in_channels, out_channels, kernel_size, stride,
                                   pads(padding, self.axes), dilation, groups, bias=bias))


class Conv1d(Conv2d):
    made, axes = pg.nn.Conv1d, 1


class ConvTranspose2d(Layer):
    made = pg.nn.ConvTranspose2d

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True):
        super().__init__(self.made(in_channels, out_channels, kernel_size, stride, padding,
                                   output_padding, dilation, groups, bias=bias))


class ConvTranspose1d(ConvTranspose2d):
    made = pg.nn.ConvTranspose1d


class BatchNorm(Layer):
    def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True,
                 track_running_stats: bool = True, momentum: float = 0.1):
        super().__init__(pg.nn.BatchNorm(sz, eps, momentum, affine))
        object.__setattr__(self, "tracks", track_running_stats)

    def __call__(self, *args: Any) -> Any:
        """Without running statistics those of the batch are used, as in training."""
        from ..helpers import VARIABLES
        with pg.nn.training(bool(VARIABLES["TRAINING"]) or not self.tracks):
            return super().__call__(*args)


BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm(Layer):
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
        super().__init__(pg.nn.GroupNorm(num_groups, num_channels, eps, affine))


class InstanceNorm(Layer):
    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True):
        super().__init__(pg.nn.InstanceNorm(num_features, eps, affine))


class LayerNorm(Layer):
    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True):
        super().__init__(pg.nn.LayerNorm(normalized_shape, eps, elementwise_affine))


class LayerNorm2d(LayerNorm):
    def __call__(self, *args: Any) -> Any:
        return super().__call__(args[0].permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm(Layer):
    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True):
        super().__init__(pg.nn.RMSNorm(dim, eps, elementwise_affine))


class Embedding(Layer):
    def __init__(self, vocab_size: int, embed_size: int):
        super().__init__(pg.nn.Embedding(vocab_size, embed_size))


class LSTMCell(Layer):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__(pg.nn.LSTMCell(input_size, hidden_size, bias))


from . import optim as optim  # noqa: E402
from . import state as state  # noqa: E402
