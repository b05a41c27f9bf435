"""The type of Tensor.size, which NumPy's users read and PyTorch's users call."""
from __future__ import annotations

from .errors import UserIndexError


class Size(int):
    """The number of a tensor's elements: x.size == 6; x.size(0) is the number along one axis."""

    shape: tuple[int, ...]

    def __new__(cls, count: int, shape: tuple[int, ...]) -> Size:
        size = super().__new__(cls, count)
        size.shape = shape
        return size

    def __call__(self, axis: int) -> int:
        """The number of elements along an axis. Errors: UserIndexError for a bad axis."""
        if not -len(self.shape) <= axis < len(self.shape):
            raise UserIndexError(f"[size] axis {axis} is out of range for shape {self.shape}")
        return self.shape[axis]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)
