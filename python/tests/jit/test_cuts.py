"""jit(f, cuts=True): functions that read values while they run."""
import re
import threading

import numpy as np
import pytest

import plugrad as pg
from plugrad import nn, optim


def numbers(shape, call: int, by: float = 1.0) -> pg.Tensor:
    count = int(np.prod(shape))
    return pg.Tensor(np.sin(0.7 * np.arange(count) + call).reshape(shape).astype(np.float32) * by)


def test_without_the_option_the_error_names_the_line_and_the_option():
    @pg.jit
    def f(x):
        if x.sum().item() > 0:
            return x
        return -x

    with pytest.raises(ValueError, match="cuts=True") as error:
        f(numbers((3,), 0))
    assert "if x.sum().item() > 0:" in str(error.traceback[-1].statement)


@pg.jit(cuts=True)
def halved(x, least):
    loss = x.abs().sum()
    while loss.item() > least:
        x = x / 2
        loss = x.abs().sum()
    return x


def test_a_loop_and_an_early_exit():
    for call, by in enumerate([1, 100, 0.01, 7, 1000]):
        x = numbers((16,), call, by)
        expected = x.numpy()
        while np.abs(expected).sum() > 2:
            expected = expected / 2
        np.testing.assert_array_equal(halved(x, 2).numpy(), expected)

    @pg.jit(cuts=True)
    def first(x):
        for i in range(4):
            if x[i].item() > 0:
                return x[i] * 2
        return x.sum()

    for values in [[-1, 3, 0, 0], [-1, -1, -1, -1], [5, 0, 0, 0], [-1, 3, 0, 0]] * 2:
        positive = [v for v in values if v > 0]
        assert first(pg.Tensor(np.float32(values))).item() == (positive[0] * 2 if positive else -4)


def test_masks_numpy_and_print(capsys):
    w = numbers((64,), 9).realize()

    @pg.jit(cuts=True)
    def f(x):
        y = x * w
        if bool((y > 2).any()):
            print(float(y.max()))
        assert y.numpy().shape == (64,)
        return y[y > 0.25]

    for call in range(6):
        x = numbers((64,), call, 1 + call)
        expected = x.numpy() * w.numpy()
        np.testing.assert_allclose(f(x).numpy(), expected[expected > 0.25], rtol=1e-6)
    assert capsys.readouterr().out.count("\n") >= 1


class Net:
    def __init__(self) -> None:
        self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 4)
        for i, p in enumerate([self.a.weight, self.a.bias, self.b.weight, self.b.bias]):
            p.assign(numbers(p.shape, i, 0.1)).realize()
        self.parameters = [self.a.weight, self.a.bias, self.b.weight, self.b.bias]
        self.opt = optim.Adam(self.parameters, lr=1e-2)
        self.losses: list[float] = []
        self.skipped = 0

    def step(self, x, y):
        self.opt.zero_grad()
        loss = ((self.b(self.a(x).relu()) - y) ** 2).mean()
        self.losses.append(loss.item())
        if not np.isfinite(self.losses[-1]):
            self.skipped += 1
            return loss
        loss.backward()
        norm = sum(float((p.grad ** 2).sum()) for p in self.parameters) ** 0.5
        if norm < 1e3:
            self.opt.step()
        return loss


def test_a_step_that_looks_at_its_loss_and_gradients():
    plain, cut = Net(), Net()
    step = pg.jit(cut.step, cuts=True)
    for call in range(8):
        x, y = numbers((8, 32), call), numbers((8, 4), call + 50)
        if call == 5:
            x = x / pg.Tensor(np.zeros((8, 32), np.float32))
        step(x, y)
        plain.step(x, y)
    assert cut.skipped == 1
    np.testing.assert_allclose(cut.losses, plain.losses, rtol=1e-4, equal_nan=True)
    for p, q in zip(cut.parameters, plain.parameters):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-3, atol=1e-5)


def test_explain_names_the_lines():
    halved.explain()

    @pg.jit(cuts=True)
    def f(x):
        a = x.sum().item()
        return x * 2 if x.max().item() > a else x

    for call in range(3):
        f(numbers((4,), call))
    lines = f.explain().splitlines()
    assert lines[0] == ("3 calls ran the function, in parts between what the host reads: 2 cuts in "
                        "the last one, 2 to 2 in each")
    assert len(lines) == 3
    for line in lines[1:]:
        assert re.fullmatch(r"cut at .*test_cuts\.py:\d+, in f: 3 times", line)


def test_an_exception_passes_and_state_stays():
    state = pg.Tensor(np.ones(3, np.float32)).realize()

    @pg.jit(cuts=True)
    def f(x):
        state.assign(state + x)
        if state.sum().item() > 20:
            raise RuntimeError("enough")
        return state * 1

    with pytest.raises(RuntimeError, match="enough"):
        for _ in range(20):
            f(pg.Tensor(np.ones(3, np.float32)))
    np.testing.assert_array_equal(state.numpy(), np.full(3, 7, np.float32))


def test_methods_inner_functions_and_threads():
    runs = []

    @pg.jit
    def inner(x):
        runs.append(1)
        return x * 2 + 1

    class Model:
        def __init__(self, w):
            self.w = w

        @pg.jit(cuts=True)
        def __call__(self, x):
            y = inner(x) * self.w
            return y if y.sum().item() > 0 else -y

    models = [Model(pg.Tensor(np.float32(k)).realize()) for k in (2, -3)]
    wrong = []

    def work():
        for call in range(10):
            x = numbers((5,), call)
            for model, k in zip(models, (2, -3)):
                y = (x.numpy() * 2 + 1) * np.float32(k)
                if not np.allclose(model(x).numpy(), y if y.sum() > 0 else -y, rtol=1e-5):
                    wrong.append(call)

    work()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(runs) < 30


def test_results_and_the_recipe_of_a_decorator():
    assert "jitted function" in repr(halved)
    with pytest.raises(TypeError):
        pg.jit(lambda x: x, cut=True)
