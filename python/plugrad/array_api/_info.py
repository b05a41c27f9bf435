"""What the namespace offers: __array_namespace_info__ and versions of the standard."""
from __future__ import annotations

import importlib
from typing import Any

from .._plugrad import default_device
from . import _dtypes
from ._dtypes import DType

#: The version that the namespace has, and those whose functions it has too.
VERSION = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", VERSION)


def namespace(api_version: str | None = None) -> Any:
    """The module plugrad.array_api. Errors: ValueError for a version that it does not have."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"[__array_namespace__] version {api_version!r} of the array API standard "
                         f"is none of {', '.join(VERSIONS)}")
    return importlib.import_module("plugrad.array_api")


class Info:
    """What plugrad.array_api offers."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and shapes that depend on values are supported; both read the values."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The device of new tensors."""
        return default_device()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of Python's numbers and of indices. There is no complex dtype."""
        return {"real floating": _dtypes.DEFAULT_FLOAT, "integral": _dtypes.DEFAULT_INTEGER,
                "indexing": _dtypes.DEFAULT_INDEX}

    def devices(self) -> list[str]:
        """The default device. Others are used by name: `plugrad devices` lists them."""
        return [default_device()]

    def dtypes(self, *, device: str | None = None,
               kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's dtypes by name, all or those of one or several kinds."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for each in kinds:
            if each not in _dtypes.KINDS:
                raise ValueError(f"[dtypes] {each!r} is none of "
                                 f"{', '.join(map(repr, _dtypes.KINDS))}")
        return {dtype.name: dtype for each in kinds for dtype in _dtypes.KINDS[each]}


def __array_namespace_info__() -> Info:
    """An object that describes what the namespace offers."""
    return Info()
