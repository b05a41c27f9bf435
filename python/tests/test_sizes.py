"""A bound Variable where an integer is a size, in and outside jitted functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad as pg

VALUES = (1, 2, 5, 7)

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "x[:n]": lambda x, n: x[:n] * 2,
    "x[n:]": lambda x, n: x[n:],
    "x[-n:]": lambda x, n: x[-n:],
    "x[n:n + 3]": lambda x, n: x[n:n + 3],
    "x[n:n + 2, 1:3]": lambda x, n: x[n:n + 2, 1:3],
    "x[:2 * n - 1:3]": lambda x, n: x[:2 * n - 1:3],
    "x[:, None, :n // 2 + 1]": lambda x, n: x[:, None, :n // 2 + 1],
    "sum": lambda x, n: x[:n].sum(0),
    "mean": lambda x, n: x[:n + 1].mean(0),
    "matmul": lambda x, n: x[:n] @ x[:n].T,
    "arange": lambda x, n: x[:n] + pg.Tensor.arange(n).reshape(n, 1),
    "arange(n, n + 2)": lambda x, n: pg.Tensor.arange(n, n + 2) * x[0, 1],
    "zeros": lambda x, n: pg.Tensor.zeros(n, 4) + x[0],
    "zeros((n, 4))": lambda x, n: pg.Tensor.zeros((n, 4)) + x[0],
    "full": lambda x, n: pg.Tensor.full((n + 1, 4), 2.0) * x[0],
    "reshape": lambda x, n: x[:n].reshape(n, -1, 2).sum(-1),
    "reshape((2 * n, 2))": lambda x, n: x[:n].reshape((2 * n, 2)).max(1),
    "expand": lambda x, n: x[:1].expand(n, 4) + 1,
    "repeat": lambda x, n: x[0].repeat(n, 1),
    "shrink": lambda x, n: x.shrink(((n, n + 2), None)),
    "triu": lambda x, n: x.triu(n - 4),
    "cat": lambda x, n: pg.cat([x[:n], x[2:4]], 0),
    "softmax": lambda x, n: x[:n].softmax(0),
}


def data() -> pg.Tensor:
    return pg.Tensor(np.arange(48, dtype=np.float32).reshape(12, 4) % 7)


@pytest.mark.parametrize("form", FORMS)
def test_a_bound_variable_is_a_size(form: str) -> None:
    n, function = pg.Variable("n", 1, 7), FORMS[form]
    step = pg.jit(function)
    for value in VALUES:
        expected = function(data(), value).numpy()
        np.testing.assert_allclose(function(data(), n.bind(value)).numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(step(data(), n.bind(value)).numpy(), expected, rtol=1e-6)


def test_elements_are_assigned() -> None:
    n = pg.Variable("n", 1, 7)
    for value in VALUES:
        x, expected, size = data(), data().numpy(), n.bind(value)
        x[size:size + 2] = x[:2] * 3
        expected[value:value + 2] = expected[:2] * 3
        x[:size, 1] = -1
        expected[:value, 1] = -1
        np.testing.assert_array_equal(x.numpy(), expected)


def test_a_cache_has_one_recording() -> None:
    places = pg.Variable("places", 1, 16)
    cache = pg.Tensor.zeros(16, 4)

    @pg.jit
    def step(token: pg.Tensor, n: pg.Tensor) -> pg.Tensor:
        cache[n - 1:n] = token
        return (cache[:n] @ token).softmax(0) @ cache[:n]

    tokens: list[np.ndarray] = []
    for n in range(1, 12):
        tokens.append(np.sin(np.arange(4, dtype=np.float32) * n))
        got, seen = step(pg.Tensor(tokens[-1]), places.bind(n)).numpy(), np.stack(tokens)
        weights = np.exp(seen @ tokens[-1])
        np.testing.assert_allclose(got, weights / weights.sum() @ seen, rtol=1e-4, atol=1e-5)
    assert step.recordings == 1


def test_errors() -> None:
    n = pg.Variable("n", 1, 7)
    for use in (lambda: pg.Tensor.zeros(n, 3), lambda: data()[:n], lambda: data().reshape(n, -1)):
        with pytest.raises(TypeError, match=r"n\.bind\(value\)"):
            use()
    with pytest.raises(ValueError, match="n is 8; it is bound to 1 to 7"):
        n.bind(8)
    with pytest.raises(IndexError, match=r"10 elements from 3 on reach beyond axis 0 of \(12, 4\)"):
        data()[n.bind(3):n.bind(3) + 10]
    count = pg.Tensor([2, 4]).max()
    assert data()[:count].shape == (4, 4)
    with pytest.raises(Exception, match="jit"):
        pg.jit(lambda x, k: x[:k])(data(), pg.Tensor([2, 4]).max())
