"""tinygrad's state dictionaries."""
from __future__ import annotations

from typing import Any

import plugrad as pg

from ..wrapping import Wrapped, unwrap, wrap


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Wrapped) -> dict[str, Any]:
    if isinstance(obj, tensor_type):
        return {prefix.strip("."): obj}
    attributes = getattr(obj, "__dict__", {})
    if "layer" in attributes:
        return {prefix + name: wrap(each) for name, each in pg.nn.state_dict(obj.layer).items()}
    items = enumerate(obj) if isinstance(obj, (list, tuple)) else \
        (obj if isinstance(obj, dict) else attributes).items()
    return {name: each for key, value in items
            for name, each in get_state_dict(value, f"{prefix}{key}.", tensor_type).items()}


def get_parameters(obj: Any) -> list[Any]:
    return list(get_state_dict(obj).values())


def load_state_dict(model: Any, state_dict: dict[str, Any], strict: bool = True,
                    **_: Any) -> list[Any]:
    ours = get_state_dict(model)
    if strict and (missing := set(ours) - set(state_dict)):
        raise KeyError(sorted(missing))
    return [each.assign(state_dict[name]) for name, each in ours.items() if name in state_dict]


def safe_save(tensors: dict[str, Any], fn: str, metadata: Any = None) -> None:
    pg.nn.safe_save({name: unwrap(each) for name, each in tensors.items()}, fn)


def safe_load(fn: str) -> dict[str, Any]:
    return {name: wrap(each) for name, each in pg.nn.safe_load(str(fn)).items()}
