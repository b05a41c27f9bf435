"""tinygrad's Device: the names of plugrad's devices."""
from __future__ import annotations

import plugrad as pg


class _Device:
    renderer = None

    @property
    def DEFAULT(self) -> str:
        return pg.default_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        pg.set_default_device(name)

    def canonicalize(self, name: str | None) -> str:
        return name or pg.default_device()

    def __getitem__(self, name: str) -> _Device:
        return self

    def synchronize(self) -> None:
        pass


Device = _Device()


def is_dtype_supported(dtype: object, device: str | None = None) -> bool:
    try:
        pg.Tensor([1.0], dtype=dtype, device=device).numpy()
    except (pg.UnsupportedError, TypeError):
        return False
    return True
