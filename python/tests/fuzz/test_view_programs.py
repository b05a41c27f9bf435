"""Random views of tensors, writes and reads, against NumPy's places in an array of places."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import plugrad as pg
from indices import parts
from rounds import DEVICE, fuzz

EXAMPLES = 300 if DEVICE == "REFERENCE" else 30
SHAPE = (3, 4)


@st.composite
def moves(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A function that moves the elements of a tensor and of an array alike."""
    rank, size = len(shape), int(np.prod(shape))
    kinds = ["index", "T", "reshape", "squeeze"] + (["flip"] if rank else []) + (["diagonal"] if rank == 2 else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "index":
        index = tuple(each for each in draw(parts(shape)) if each is None or isinstance(each, (int, slice)))
        return lambda x: x[index]
    if kind == "reshape":
        to = draw(st.sampled_from([(size,), (1, size)] + ([(2, size // 2)] if size % 2 == 0 else [])))
        return lambda x: x.reshape(to)
    if kind == "flip":
        axis = draw(st.integers(0, rank - 1))
        return lambda x: np.flip(x, axis) if isinstance(x, np.ndarray) else x.flip(axis)
    return {"T": lambda x: x.T, "squeeze": lambda x: x.squeeze(), "diagonal": lambda x: x.diagonal()}[kind]


@fuzz(EXAMPLES, data=st.data())
def test_programs(data: st.DataObject) -> None:
    elements = np.arange(12, dtype=np.float32)
    views = [(pg.Tensor(elements.reshape(SHAPE), device=DEVICE), np.arange(12).reshape(SHAPE))]
    for _ in range(data.draw(st.integers(2, 10))):
        tensor, places = views[data.draw(st.integers(0, len(views) - 1))]
        action = data.draw(st.sampled_from(["view", "view", "assign", "add", "set", "read"]))
        number = data.draw(st.integers(-3, 3))
        if action == "view":
            try:
                move = data.draw(moves(places.shape))
                moved = move(places)
            except (IndexError, ValueError):
                continue
            views.append((move(tensor), moved))
        elif action == "assign":
            tensor.assign(number)
            elements[places] = number
        elif action == "add":
            tensor += number
            elements[places] += number
        elif action == "set" and places.ndim and places.shape[0]:
            tensor[-1] = number
            elements[places[-1]] = number
        elif action == "read":
            np.testing.assert_array_equal(tensor.numpy(), elements[places])
    for tensor, places in views:
        np.testing.assert_array_equal(tensor.numpy(), elements[places])
