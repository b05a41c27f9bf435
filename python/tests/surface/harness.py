"""A case: a function's name, its arguments, and the values that NumPy or PyTorch give for them.

This module and the tables of cases import no plugrad, so that record.py runs where only PyTorch is
installed.
"""
from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

EXPECTED = Path(__file__).with_name("torch_expected.json")
ALIASES = {"axis": "dim", "axis0": "dim0", "axis1": "dim1"}


@dataclass
class Case:
    """Call `name` with `args`. Arrays become tensors; the expectation takes the arrays alone."""

    name: str
    args: tuple[Any, ...]
    numpy: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None
    check: Callable[..., None] | None = None  # takes the result, for random values
    names: tuple[str, ...] | None = None  # of the overload's arguments, where several could match
    atol: float = 2e-6
    rtol: float = 2e-5
    identity: str = field(default="")


CASES: list[Case] = []


def case(name: str, *args: Any, **keywords: Any) -> None:
    number = sum(each.name == name for each in CASES)
    CASES.append(Case(name, args, identity=f"{name}-{number}", **keywords))


def v(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Values from low to high in a mixed order, all different up to 97 elements."""
    steps = (np.arange(int(np.prod(shape))) * 61 + 17 * seed) % 97
    return (low + (high - low) * steps / 96).astype(np.float32).reshape(shape)


def ints(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> np.ndarray:
    """Integers of [low, high) as int32."""
    steps = (np.arange(int(np.prod(shape))) * 7 + 3 * seed) % 11
    return (low + steps * (high - low) // 11).astype(np.int32).reshape(shape)


def arrays_of(args: Any) -> list[np.ndarray]:
    """The arrays among the arguments, those in lists one by one."""
    found: list[np.ndarray] = []
    for each in args:
        if isinstance(each, np.ndarray):
            found.append(each)
        elif isinstance(each, list) and each and isinstance(each[0], np.ndarray):
            found += each
    return found


def torch_values(of: Case) -> Any:
    """What PyTorch computes: an array, or a list of them."""
    inputs = [torch.from_numpy(np.array(each)) for each in arrays_of(of.args)]
    result = of.torch(*inputs)  # type: ignore[misc]
    if isinstance(result, (tuple, list)):
        return [each.detach().numpy() for each in result]
    return result.detach().numpy()


def recorded_values() -> dict[str, Any]:
    return json.loads(EXPECTED.read_text())


def to_record(values: Any) -> Any:
    if isinstance(values, list):
        return [to_record(each) for each in values]
    rounded = values if values.dtype.kind != "f" else [float(f"{x:.7g}") for x in values.ravel()]
    return {"dtype": str(values.dtype), "shape": list(values.shape),
            "values": np.asarray(rounded).ravel().tolist()}


def from_record(record: Any) -> Any:
    if isinstance(record, list):
        return [from_record(each) for each in record]
    return np.array(record["values"], record["dtype"]).reshape(record["shape"])


@dataclass(frozen=True)
class Form:
    """One overload as Python's signature shows it."""

    names: tuple[str, ...]
    star: bool  # its first argument is a list of separate ones
    is_static: bool
    required: int  # arguments without a default

    @staticmethod
    def of(signature: str) -> Form:
        text = signature[signature.index("def "):].rstrip(":") + ": ..."
        arguments = ast.parse(text).body[0].args  # type: ignore[attr-defined]
        names = [each.arg for each in arguments.args + arguments.kwonlyargs]
        if arguments.vararg:
            names.insert(1 if names[:1] == ["self"] else 0, arguments.vararg.arg)
        method = names[:1] == ["self"]
        defaults = len(arguments.defaults) + sum(each is not None for each in arguments.kw_defaults)
        return Form(tuple(names[method:]), arguments.vararg is not None, not method,
                    len(names) - method - defaults - (arguments.vararg is not None))

    @property
    def is_alias(self) -> bool:
        return any(name in ALIASES.values() for name in self.names)


def forms_of(function: Any) -> list[Form]:
    return [Form.of(each[0]) for each in function.__nb_signature__]


def calls(function: Any, case: Case, make: Callable[[Any], Any], method: bool
          ) -> Iterator[tuple[Form, Any]]:
    """The case by every overload that takes it: positional, and by the names of the arguments."""
    for form in forms_of(function):
        names = form.names
        bound = method and not form.is_static
        args = list(case.args[1:] if bound else case.args)
        first = [make(case.args[0])] if bound else []
        wanted = case.names
        if wanted and tuple(ALIASES.get(n, n) for n in wanted) != \
                tuple(ALIASES.get(n, n) for n in names[:len(wanted)]):
            continue
        if not form.required <= len(args) <= len(names):
            continue
        if form.star:
            if args and isinstance(args[0], (tuple, list)):
                rest = {name: make(each) for name, each in zip(names[1:], args[1:])}
                yield form, function(*first, *args[0], **rest)
            elif args and isinstance(args[0], int):
                rest = {name: make(each) for name, each in zip(names[1:], args[1:])}
                yield form, function(*first, args[0], **rest)
            elif args:
                yield form, function(*first, *(make(each) for each in args))
            continue
        keywords = {name: make(each) for name, each in zip(names, args)}
        yield form, function(*first, **keywords)
        yield form, function(*first, *(make(each) for each in args))
