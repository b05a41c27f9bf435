"""jit: recordings of functions and methods, their keys, and the errors of what they refuse."""
import collections
import dataclasses
import enum
import gc
import sys
import threading
import traceback
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrad as pg
from plugrad import nn, optim


class Runs:
    """Counts the calls that ran the function."""

    def __init__(self) -> None:
        self.count = 0


def counted(function):
    runs = Runs()

    def wrapped(*args, **kwargs):
        runs.count += 1
        return function(*args, **kwargs)

    wrapped.__wrapped__ = function
    return pg.jit(wrapped), runs


def test_the_third_call_replays_on_new_values():
    f, runs = counted(lambda x, y: (x * 2 + y).sum())
    for i in range(6):
        x = np.arange(6, dtype=np.float32) + i
        assert f(pg.Tensor(x), pg.Tensor([1.0])).item() == (x * 2 + 1).sum()
    assert runs.count == 2
    assert f.recordings == 1


def test_earlier_results_stay():
    f = pg.jit(lambda x: x + 1)
    results = [f(pg.Tensor([float(i)])) for i in range(5)]
    assert [r.item() for r in results] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_shapes_dtypes_and_numbers_are_recorded_apart():
    f, runs = counted(lambda x, k: x * k)
    for _ in range(3):
        for x in (pg.Tensor([1.0, 2.0]), pg.Tensor([1, 2]), pg.Tensor([[1.0]])):
            for k in (2, 2.0, True):
                assert np.array_equal(f(x, k).numpy(), x.numpy() * k)
    assert runs.count == 2 * 3 * 3
    assert f.recordings == 9


class Mode(enum.Enum):
    ADD = 1
    MULTIPLY = 2


class Weights(NamedTuple):
    w: pg.Tensor
    b: pg.Tensor


@dataclasses.dataclass
class Batch:
    x: pg.Tensor
    scale: float = 1.0
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Result:
    y: pg.Tensor
    parts: dict[str, pg.Tensor]


def test_nested_arguments_and_results():
    def function(batch, weights, *, mode, extra=None):
        y = batch.x * batch.scale
        y = y + weights.w if mode is Mode.ADD else y * weights.w
        if extra:
            y = y + extra["bias"][0]
        return Result(y, {"b": weights.b + 1, "none": None}), [y, (weights.b,)], Weights(y, y)

    f, runs = counted(function)
    for i in range(4):
        x = pg.Tensor([1.0 + i, 2.0])
        b = pg.Tensor([float(i)])
        result, listed, named = f(Batch(x, 3.0, ("a",)), Weights(x, b), mode=Mode.MULTIPLY,
                                  extra={"bias": [pg.Tensor([1.0])]})
        want = [(1.0 + i)**2 * 3 + 1, 13.0]
        assert isinstance(result, Result) and isinstance(named, Weights)
        assert result.y.tolist() == named.w.tolist() == listed[0].tolist() == want
        assert result.parts["b"].tolist() == [i + 1.0] and result.parts["none"] is None
        assert isinstance(listed, list) and listed[1][0].tolist() == [float(i)]
    assert runs.count == 2
    f(Batch(x, 4.0), Weights(x, b), mode=Mode.MULTIPLY)
    f(Batch(x, 3.0), Weights(x, b), mode=Mode.ADD)
    assert runs.count == 4


def test_results_keep_their_containers():
    Ordered = collections.OrderedDict
    f = pg.jit(lambda x: (Ordered(b=x + 1, a=x), {1: x * 2, "1": x * 3}, None, [], ()))
    for i in range(4):
        ordered, plain, none, empty, nothing = f(pg.Tensor([float(i)]))
        assert type(ordered) is Ordered and list(ordered) == ["b", "a"]
        assert plain[1].item() == 2 * i and plain["1"].item() == 3 * i
        assert none is None and empty == [] and nothing == ()


def test_every_kind_of_argument_is_part_of_the_key():
    f, runs = counted(lambda x, k: x + 1)
    x = pg.Tensor([1.0])
    keys = [None, True, 1, 1.0, 1 + 2j, 2**70, 2**71, "1", b"1", [1], (1,), {1: 2}, {"1": 2},
            pg.float32, pg.int32, int, pg.relu, np.float32(1), np.int64(1), slice(1, 2), range(3),
            range(4), Mode.ADD, Mode.MULTIPLY, Batch(x), abs, -0.0, 0.0, float, [], {}, ()]
    for k in keys:
        f(x, k)
    assert runs.count == len(keys)


def test_training_step_equals_the_plain_one():
    def trained(jitted: bool) -> list[float]:
        pg.Tensor.manual_seed(3)
        net = nn.Sequential(nn.Linear(4, 8), pg.relu, nn.Linear(8, 1))
        opt = optim.Adam(nn.parameters(net), lr=0.05)

        def step(x, y):
            opt.zero_grad()
            loss = ((net(x) - y)**2).mean()
            loss.backward()
            opt.step()
            return loss

        call = pg.jit(step) if jitted else step
        rng = np.random.default_rng(1)
        losses = []
        for _ in range(8):
            x = rng.normal(size=(16, 4)).astype(np.float32)
            losses.append(call(pg.Tensor(x), pg.Tensor(x[:, :1] * 2)).item())
        return losses

    plain, jitted = trained(False), trained(True)
    assert plain[-1] < plain[0]
    assert np.allclose(plain, jitted, rtol=1e-5)


def test_modules_are_arguments():
    f, runs = counted(lambda net, x: net(x))
    x = pg.Tensor([[1.0, 2.0]])
    nets = [nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))]
    for _ in range(4):
        for net in nets:
            assert np.allclose(f(net, x).numpy(), net(x).numpy())
    nets[0].layers[0].weight = pg.Tensor([[1.0, 0.0], [0.0, 1.0]])
    nets[0].layers[0].bias = pg.Tensor([0.0, 1.0])
    for _ in range(3):
        assert f(nets[0], x).tolist() == [[1.0, 3.0]]
    layer = nn.Linear(2, 3)  # a class of C++
    for _ in range(3):
        assert np.allclose(f(layer, x).numpy(), layer(x).numpy())


def test_modules_with_cycles():
    class Node:
        def __init__(self) -> None:
            self.w, self.me = pg.Tensor([2.0]), self

    f, node = pg.jit(lambda node, x: node.w * x), Node()
    for i in range(4):
        assert f(node, pg.Tensor([float(i)])).item() == 2.0 * i


class Model:
    def __init__(self, scale: float) -> None:
        self.w = pg.Tensor([scale])
        self.scale = scale
        self.runs = 0

    @pg.jit
    def forward(self, x, power=1):
        """Scales."""
        self.runs += 1
        return {"y": x**power * self.w * self.scale}

    @pg.jit
    def __call__(self, x):
        return x * self.w

    def __eq__(self, other):  # makes instances unhashable
        return True


def test_methods_are_recorded_for_each_instance():
    models = [Model(2.0), Model(3.0)]
    for i in range(5):
        for model in models:
            want = i * model.scale**2
            assert model.forward(pg.Tensor([float(i)]))["y"].item() == want
            assert model(pg.Tensor([float(i)])).item() == i * model.scale
    assert [model.runs for model in models] == [2, 2]
    assert models[0].forward.recordings == models[1].forward.recordings == 1
    assert Model.forward.recordings == 0
    assert models[0].forward(pg.Tensor([2.0]), power=3)["y"].item() == 32.0
    models[0].w.assign(pg.Tensor([1.0]))
    assert models[0].forward(pg.Tensor([2.0]))["y"].item() == 4.0


def test_instances_and_their_recordings_end():
    alive = []
    for _ in range(3):
        model = Model(2.0)
        for i in range(3):
            model.forward(pg.Tensor([float(i)]))
        alive.append(weakref.ref(model))
        del model
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3


def test_classes_with_jitted_methods_end():
    def make() -> Any:
        class Local:
            @pg.jit
            def f(self, x):
                return x + 1 if __class__ else x  # noqa: F821: a cycle through the closure

        Local().f(pg.Tensor([1.0]))
        return weakref.ref(Local)

    ref = make()
    gc.collect()
    assert ref() is None


def test_slots_without_weak_references():
    class Slotted:
        __slots__ = ("w",)

        @pg.jit
        def f(self, x):
            return x

    with pytest.raises(TypeError, match="__weakref__"):
        Slotted().f(pg.Tensor([1.0]))


def test_jit_looks_like_its_function():
    @pg.jit
    def step(x, y=2):
        """Adds."""
        return x + y

    import inspect
    assert list(inspect.signature(step).parameters) == ["x", "y"]
    assert step.__name__ == "step" and "step" in repr(step) and step.__wrapped__.__doc__ == "Adds."
    assert Model(1.0).forward.__self__.scale == 1.0
    with pytest.raises(TypeError, match="function"):
        pg.jit(3)
    with pytest.raises(TypeError, match="missing 1 required"):
        step()


@pytest.mark.parametrize("value", [{1, 2}, frozenset(), object(), iter([]), bytearray(b"")])
def test_unknown_arguments_are_named(value):
    @pg.jit
    def step(x, config=None, *rest, last=None):
        return x

    x = pg.Tensor([1.0])
    with pytest.raises(TypeError, match=r"step: the argument config is a"):
        step(x, value)
    with pytest.raises(TypeError, match=r"step: the argument config\['a'\]\[1\] is a"):
        step(x, {"a": [1, value]})
    with pytest.raises(TypeError, match=r"step: the argument last\.x is a"):
        step(x, last=Batch(value))
    with pytest.raises(TypeError, match=r"step: the argument number 3 is a"):
        step(x, 1, value)


def test_arrays_and_endless_lists_are_refused():
    f = pg.jit(lambda x: x)
    with pytest.raises(TypeError, match=r"argument x is an array \(ndarray\).*plugrad.Tensor"):
        f(np.zeros(3))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match=r"argument x\[0\].*contain itself"):
        f(endless)


@pytest.mark.parametrize("value, kind", [(3, "int"), (2.5, "float"), ("a", "str"), ({1}, "set"),
                                         (np.zeros(2), "ndarray")])
def test_results_that_a_replay_cannot_renew(value, kind):
    @pg.jit
    def step(x):
        return {"loss": x, "n": [value]}

    for _ in range(3):
        with pytest.raises(TypeError, match=rf"step: the result\['n'\]\[0\] is a {kind}"):
            step(pg.Tensor([1.0]))


class Custom(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def test_exceptions_of_the_function_pass():
    fails = True

    @pg.jit
    def step(x):
        if fails:
            raise Custom(7)
        return x + 1

    raised = None
    for _ in range(3):
        with pytest.raises(Custom) as info:
            step(pg.Tensor([1.0]))
        assert info.value.code == 7
        assert info.value is not raised
        raised = info.value
        assert "step" in [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
    fails = False
    for i in range(4):
        assert step(pg.Tensor([float(i)])).item() == i + 1
    ref = weakref.ref(raised)
    del raised, info
    gc.collect()
    assert ref() is None


def test_reads_inside_are_an_error():
    f = pg.jit(lambda x: x * x.sum().item())
    with pytest.raises(pg.UserError, match="jit"):
        for _ in range(3):
            f(pg.Tensor([1.0]))


def test_garbage_of_the_function_is_no_error():
    def function(x):
        cycle: list[Any] = [x * 3]
        cycle.append(cycle)
        return x + cycle[0]

    f, runs = counted(function)
    for i in range(4):
        assert f(pg.Tensor([float(i)])).item() == 4 * i
    assert runs.count == 2


def test_jitted_functions_call_each_other():
    inner = pg.jit(lambda x: x * 2)
    outer, runs = counted(lambda x: inner(x) + inner(x + 1))
    for i in range(4):
        assert outer(pg.Tensor([float(i)])).item() == 4 * i + 2
    assert runs.count == 2


def test_threads():
    f = pg.jit(lambda x: (x @ x).sum())
    errors = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for _ in range(30):
                x = rng.integers(0, 4, (8, 8)).astype(np.float32)
                assert f(pg.Tensor(x)).item() == (x @ x).sum()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_ten_thousand_calls_do_not_grow():
    f = pg.jit(lambda batch, k: [batch["x"] + batch["y"] * k])
    x, y, k = pg.Tensor([1.0, 2.0]), pg.Tensor([3.0, 4.0]), 2.5
    model = Model(2.0)

    def calls(n: int) -> None:
        for _ in range(n):
            f({"x": x, "y": y}, k=k)
            model.forward(x)

    calls(500)
    gc.collect()
    counts = [sys.getrefcount(o) for o in (x, y, k, model, Model, f, pg.Tensor, None)]
    objects, memory = len(gc.get_objects()), resident()
    calls(10_000)
    gc.collect()
    after = [sys.getrefcount(o) for o in (x, y, k, model, Model, f, pg.Tensor, None)]
    assert after[:-1] == counts[:-1]
    assert abs(after[-1] - counts[-1]) < 100
    assert len(gc.get_objects()) - objects < 100
    assert resident() - memory < 4 << 20
