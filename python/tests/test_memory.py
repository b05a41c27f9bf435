"""Memory and reference counts stay as they are over 100,000 calls of each loop below, after a tenth
of them for what is made once."""
from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import plugrad as pg

ROUNDS = 100_000
SLACK_BYTES = 3 << 20  # an arena of malloc, or a table that grows at last


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


X, Y = pg.Tensor([[1.0, 2.0], [3.0, 4.0]]).realize(), pg.Tensor([1.0, 2.0]).realize()
ARRAY = np.ones((4, 4), np.float32)
NUMBERS = [[1.5, 2.5], [3.5, 4.5]]
COMPILED = pg.jit(lambda a: (a * 2 + 1).sum(0))


def fail() -> None:
    for wrong in (lambda: X.reshape(5), lambda: X.sum(9), lambda: X + "a", lambda: X[7],
                  lambda: pg.Tensor([[1], [2, 3]]), lambda: X + 2**70):
        try:
            wrong()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        raise AssertionError("no error")


def learn() -> None:
    w = pg.Tensor([1.0, 2.0], requires_grad=True)
    (w * Y).sum().backward()


LOOPS: dict[str, Callable[[], object]] = {
    "operators": lambda: (X + 1) * Y - X @ Y,
    "methods": lambda: X.sum(axis=0, keepdim=True).reshape(1, 2).relu().max(dim=-1),
    "functions": lambda: pg.cat([X, pg.softmax(X)], axis=1),
    "indices": lambda: (X[0], X[:, None, 1], X[..., -1]),
    "arrays": lambda: pg.Tensor(ARRAY),
    "lists": lambda: pg.Tensor(NUMBERS, dtype="float64").shape,
    "views": lambda: (X.numpy(), X.tolist(), memoryview(X)),
    "exchange": lambda: np.from_dlpack(X),
    "properties": lambda: (X.shape, X.dtype, X.device, X.T, repr(X + Y)),
    "errors": fail,
}
SLOW: dict[str, Callable[[], object]] = {
    "values": lambda: (X + Y).numpy(),
    "gradients": learn,
    "jit": lambda: COMPILED(X),
    "assignment": lambda: X.assign(X + 0).realize(),
    "layers": lambda: pg.nn.Linear(2, 2),
}


def growth(function: Callable[[], object], rounds: int) -> tuple[int, int]:
    """Bytes and Python objects that the last rounds added."""
    for _ in range(rounds // 10):
        function()
    gc.collect()
    blocks, before = sys.getallocatedblocks(), resident_bytes()
    for _ in range(rounds):
        function()
    gc.collect()
    return resident_bytes() - before, sys.getallocatedblocks() - blocks


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize("name", [*LOOPS, *SLOW])
def test_memory_is_flat(name: str) -> None:
    if name in LOOPS:
        function, rounds = LOOPS[name], ROUNDS // (6 if name == "errors" else 1)
    else:
        function, rounds = SLOW[name], ROUNDS // 50
    added, blocks = growth(function, rounds)
    if added >= SLACK_BYTES:  # pages of the last round may be new ones: only a leak grows again
        added, blocks = growth(function, rounds)
    assert added < SLACK_BYTES, f"{added} bytes in {rounds} calls"
    assert blocks < rounds / 20, f"{blocks} objects in {rounds} calls"


def test_reference_counts_return() -> None:
    held = [pg.Tensor([1.0, 2.0]), ARRAY, NUMBERS, "sum", (0, 1), pg.float64, slice(0, 1)]
    tensor = held[0]

    def calls() -> None:
        pg.Tensor(ARRAY), pg.Tensor(NUMBERS), tensor + tensor, tensor[slice(0, 1)], tensor[held[6]]
        pg.mse_loss(tensor, tensor, held[3]), X.sum(held[4]), tensor.cast(held[5])
        tensor.maximum(ARRAY[0, :2]), pg.cat([tensor, tensor]), np.asarray(tensor)
        for wrong in (lambda: tensor + "a", lambda: tensor.cast("no"), lambda: tensor[held]):
            with pytest.raises((TypeError, ValueError, IndexError)):
                wrong()

    calls()
    gc.collect()
    before = [sys.getrefcount(each) for each in held]
    for _ in range(1000):
        calls()
    gc.collect()
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(b - a) < 5 for a, b in zip(before, after)), (before, after)


def test_tensors_die_with_their_names() -> None:
    array = np.arange(1000, dtype=np.float32)
    alive = weakref.ref(array)
    x = pg.from_numpy(array)
    total = (x + 1).realize()
    del array, x
    gc.collect()
    assert total.numpy()[-1] == 1000
    del total
    gc.collect()
    pg.Tensor([1.0]).numpy()  # memory that is given back waits for the next use of the device
    assert alive() is None
