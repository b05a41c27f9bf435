"""explain(): why calls of jitted functions were no replays, and why kernels were compiled."""
import re

import pytest

import plugrad as pg


def ones(*shape: int, dtype=pg.float32) -> pg.Tensor:
    return pg.Tensor.ones(shape, dtype=dtype).contiguous().realize()


@pytest.fixture
def step():
    @pg.jit
    def step(x, k=1.0, *, how="mean", layer=None):
        return (x * k).relu().sum()

    for _ in range(3):
        step(ones(3, 4), 0.5)
    assert step.explain().splitlines() == [
        "3 calls: 1 replayed one of 1 recordings, 2 ran to be recorded",
        "call 1: the first of its kind"]
    return step


def test_arguments_have_names(step):
    step(ones(5, 4), 0.5)
    step(ones(3, 4, dtype=pg.float64), 0.5)
    step(ones(3, 4), 0.75)
    step(ones(3, 4), 1)
    lines = step.explain().splitlines()[2:6]
    assert lines == ["call 4: the shape of x is (5, 4), was (3, 4)",
                     "call 5: the dtype of x is f64, was f32",
                     "call 6: k is 0.75, was 0.5",
                     "call 7: k is 1, was 0.75"]
    assert "Tensor.full((), k)" in step.explain()


def test_keywords(step):
    step(ones(3, 4), 0.5, how="mean")
    assert "call 4: the structure of the arguments differs" in step.explain()
    step(ones(3, 4), 0.5, how="ä" * 100)
    assert f"call 5: how is '{'ä' * 59}, was 'mean'\n" in step.explain()
    step(ones(3, 4), 0.5, layer=None)
    step(ones(3, 4), 0.5, layer=(1, 2))
    assert "call 7: layer is (1, 2), was None\n" in step.explain()


class Layer:
    def __init__(self) -> None:
        self.weight = ones(2)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        return x * self.weight


def test_other_objects(step):
    layers = [Layer(), Layer()]
    for layer in layers:
        step(ones(3, 4), 0.5, layer=layer)
    assert "call 5: layer differs\n" in step.explain()


def test_methods():
    class Model:
        @pg.jit
        def forward(self, x, k):
            return x.sum() * k

    model = Model()
    for k in (0.5, 0.75):
        model.forward(ones(3), k)
    assert "call 2: k is 0.75, was 0.5\n" in model.forward.explain()
    assert Model.forward.explain().startswith("0 calls")


def test_a_number_that_always_differs(step):
    x = ones(2, 3)
    for i in range(40):
        assert abs(step(x, 0.25 + i / 64).item() - 6 * (0.25 + i / 64)) < 1e-5
    assert "32 ran without being recorded because k differed in each" in step.explain()
    assert step.recordings == 1


def test_one_warning_at_the_fourth_call_that_is_no_replay(capfd):
    @pg.jit
    def scale(x, k):
        return x.sum() * k

    for i in range(12):
        scale(ones(3), 0.25 + i / 8)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(r"test_explain.py:\d+, in test_one_warning_at_the_fourth_call_that_is_no_replay: 4 calls in a row ran "
                     r"the function instead of replaying it\. In the last one k is 0\.625, was 0\.5; each number is recorded: "
                     r"give a tensor, Tensor\.full\(\(\), k\), or a Variable\. explain\(\) of the jitted function lists all$",
                     lines[0])


def test_models(tmp_path):
    pg.onnx.export(lambda x: x.sum() * 2, [ones(3)], tmp_path / "sum.onnx")
    model = pg.onnx.load(tmp_path / "sum.onnx")
    for _ in range(3):
        model(ones(3))
    assert model.explain().splitlines() == [
        "3 calls: 2 replayed one of 1 recordings, 1 ran to be recorded",
        "call 1: the first of its kind"]


def test_compiles():
    for k in (0.5, 0.75, 0.875):
        ((ones(3, 7) - k).sin() * 1.5).realize()
    lines = [line for line in pg.explain().splitlines() if "a number is" in line]
    assert re.search(r"^f32 \(3, 7\), .*test_explain.py:\d+, in test_compiles, 1 kernel in "
                     r"[\d.]+ ms: a number is 0.75, was 0.5$", lines[-1])
    assert "kernel" in pg.explain(ones(2) + 1)


def test_lengths():
    def compiled() -> int:
        return sum("in test_lengths" in line for line in pg.explain().splitlines())

    cache = ones(1, 6)
    for token in range(1, 40):
        cache = pg.cat([cache, ones(1, 6) * token])
        weights = (cache @ ones(6, 1)).softmax(0)
        assert abs((weights * cache).sum().item() - 6 * token) < 0.1
        if token == 20:
            before = compiled()
    assert 0 < before == compiled()
    for n in (11, 12, 13, 14):
        (ones(2 * n).reshape(2, n) * 3).realize()
    assert "each length has kernels of its own: Reshape: " in pg.explain()
