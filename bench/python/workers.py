"""The operations that compare.py measures, in plugrad, PyTorch and tinygrad: one process each.

    python workers.py (plugrad | torch | tinygrad)       prints one line of JSON: name -> seconds
"""
from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDS = 15
SMALL_ROUNDS, SMALL_CALLS = 200, 20  # of single operations
CHAIN = 60  # kernels
BIG = np.ones(16 << 20, np.float32)  # 64 MiB


def seconds_of(calls: int, call: Callable[[], Any]) -> float:
    """The median over the rounds of the mean of `calls` calls."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - start) / calls)
    return sorted(rounds)[ROUNDS // 2]


def binary(operand: Callable[[], Any], read: Callable[[Any], Any],
           rounds: int = SMALL_ROUNDS) -> float:
    """Of read(a + b) with another `a` each time: plugrad would compute the same sum once."""
    b, spent = operand(), []
    for _ in range(rounds):
        lefts = [operand() for _ in range(SMALL_CALLS)]
        start = time.perf_counter()
        for left in lefts:
            read(left + b)
        spent.append((time.perf_counter() - start) / SMALL_CALLS)
    return sorted(spent)[rounds // 2]


def nothing(value: Any) -> None:
    pass


def plugrad() -> dict[str, float]:
    import plugrad as pg

    def operand() -> pg.Tensor:
        return pg.Tensor([1.0, 2.0, 3.0, 4.0]).realize()

    def chain(x: pg.Tensor) -> pg.Tensor:
        for _ in range(CHAIN):
            x = (x.flip(0) + 1.0).contiguous()
        return x

    found = {"value": binary(operand, lambda c: c.tolist()),
             "value as an array": binary(operand, lambda c: c.numpy())}
    a, step = operand(), pg.jit(chain)
    for _ in range(3):
        step(a).realize()
    found["jit"] = seconds_of(100, lambda: step(a))
    found["record"] = binary(operand, nothing)
    shared = pg.from_numpy(BIG)
    big = pg.Tensor(BIG).realize()
    assert np.shares_memory(np.from_dlpack(shared), BIG), "from_numpy copies"
    assert np.shares_memory(big.numpy(copy=None), np.from_dlpack(big)), "numpy(copy=None) copies"
    return found | {"to tensor, copy": seconds_of(3, lambda: pg.Tensor(BIG).realize()),
                    "to tensor, in place": seconds_of(100, lambda: pg.from_numpy(BIG)),
                    "to array, copy": seconds_of(3, big.numpy),
                    "to array, in place": seconds_of(100, lambda: big.numpy(copy=None))}


def torch() -> dict[str, float]:
    import torch as t

    def operand() -> t.Tensor:
        return t.tensor([1.0, 2.0, 3.0, 4.0])

    big = t.tensor(BIG)
    return {"value": binary(operand, lambda c: c.tolist()),
            "value as an array": binary(operand, lambda c: c.numpy()),
            "to tensor, copy": seconds_of(3, lambda: t.tensor(BIG)),
            "to tensor, in place": seconds_of(100, lambda: t.from_numpy(BIG)),
            "to array, copy": seconds_of(3, lambda: big.numpy().copy()),
            "to array, in place": seconds_of(100, big.numpy)}


def tinygrad() -> dict[str, float]:
    from tinygrad import Tensor, TinyJit

    def operand() -> Tensor:
        return Tensor([1.0, 2.0, 3.0, 4.0]).realize()

    def chain(x: Tensor) -> Tensor:
        for _ in range(CHAIN):
            x = (x.flip(0) + 1.0).contiguous()
        return x.realize()

    found = {"value": binary(operand, lambda c: c.tolist(), 5),
             "value as an array": binary(operand, lambda c: c.numpy(), 5)}
    a, step = operand(), TinyJit(chain)
    for _ in range(3):
        step(a)
    found["jit"] = seconds_of(20, lambda: step(a))
    found["record"] = binary(operand, nothing, 5)
    big = Tensor(BIG).realize()
    return found | {"to tensor, copy": seconds_of(3, lambda: Tensor(BIG).realize()),
                    "to array, copy": seconds_of(3, big.numpy)}


if __name__ == "__main__":
    print(json.dumps({"plugrad": plugrad, "torch": torch, "tinygrad": tinygrad}[sys.argv[1]]()))
