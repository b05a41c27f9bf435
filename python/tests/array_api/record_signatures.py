#!/usr/bin/env python3
"""Writes signatures.json, the names and parameters of version 2024.12 of the array API standard.

    python record_signatures.py      needs array_api_strict

A parameter is its name, its kind, and its default, of which only Python's constants are recorded.
"""
from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "signatures.json"
VERSION = "2024.12"
LATER = {"broadcast_shapes", "isin", "eig", "eigvals"}  # of version 2025.12
OWN = {"ArrayAPIStrictFlags", "Device", "get_array_api_strict_flags",
       "reset_array_api_strict_flags", "set_array_api_strict_flags", "__version__", "fft", "linalg"}


def parameters(function: Any) -> list[list[Any]]:
    rows = []
    for each in inspect.signature(function).parameters.values():
        row: list[Any] = [each.name, each.kind.name]
        if each.default is not each.empty:
            is_constant = isinstance(each.default, (bool, int, float, str, type(None)))
            row.append(each.default if is_constant else None)
        rows.append(row)
    return rows


def signatures(namespace: Any) -> dict[str, Any]:
    """None for what is no function."""
    rows: dict[str, Any] = {}
    for name in sorted(set(namespace.__all__) - LATER - OWN):
        value = getattr(namespace, name)
        is_function = callable(value) and not inspect.isclass(value)
        rows[name] = parameters(value) if is_function else None
    return rows


def recorded() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def main() -> None:
    import array_api_strict as strict
    groups = {"main": signatures(strict), "linalg": signatures(strict.linalg)}
    lines = [f'"{name}": {{\n' + ",\n".join(
        f'{json.dumps(key)}: {json.dumps(row)}' for key, row in rows.items()) + "}"
        for name, rows in groups.items()]
    FILE.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
