"""Data sets in host memory and their batches as tensors.

    train, test = plugrad.data.mnist()
    for x, y in train.batches(512, shuffle=True, seed=1):
        …

Each function of a data set searches `folder` if given, else PLUGRAD_DATA, the cache and public
mirrors, in this order, and verifies checksums. Errors: ValueError, with the sources that were tried
or the damaged file, and a remedy.
"""
from __future__ import annotations

from typing import NamedTuple

from ._plugrad import Tensor
from ._plugrad._data import *  # noqa: F403
from ._plugrad._data import Dataset


class Batch(NamedTuple):
    """Samples x: (n, channels, height, width) float32 in [0, 1]; labels y: (n) int32."""

    x: Tensor
    y: Tensor


class Split(NamedTuple):
    """Training samples and test samples."""

    train: Dataset
    test: Dataset
