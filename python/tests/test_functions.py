"""Functions with a backward of their own, scan, Variable, and scopes."""
import gc
import subprocess
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import plugrad as pg
from lifetimes import ends


@pg.function
def clip(ctx, x, limit=1.0):
    ctx.limit = limit
    ctx.save(x * 0 + 2)
    return x.clamp(-limit, limit)


@clip.backward
def _(ctx, gradient):
    assert ctx.needs_gradient(0) and ctx.outputs[0].shape == ctx.inputs[0].shape
    return gradient * ctx.saved[0] * ctx.limit


def test_forward_and_backward():
    x = pg.Tensor([-3.0, 0.5, 3.0], requires_grad=True)
    y = clip(x, limit=2.0)
    assert y.tolist() == [-2.0, 0.5, 2.0]
    (clip(x, limit=2.0) * 3).sum().backward()
    assert x.grad.tolist() == [12.0, 12.0, 12.0]
    assert clip.name == "clip" and "clip" in repr(clip)


def test_several_inputs_and_outputs_and_no_gradient():
    seen = []

    def backward(ctx, product, count):
        seen.append((product.shape, count, [ctx.needs_gradient(i) for i in range(2)]))
        return product * ctx.inputs[1], None

    def forward(ctx, a, b):
        return a * b, (a * 0).cast("int32")

    multiply = pg.CustomFunction(forward, backward, name="multiply")
    a, b = pg.Tensor([2.0, 3.0]), pg.Tensor([5.0, 7.0])
    product, count = multiply(a, b)
    (slope,) = pg.gradient(product.sum(), [a])
    assert slope.tolist() == [5.0, 7.0] and count.tolist() == [0, 0]
    assert seen == [((2,), None, [True, False])]


def test_second_derivative():
    cube = pg.function(lambda ctx, x: x * x * x, lambda ctx, g: g * 3 * ctx.inputs[0] ** 2)
    x = pg.Tensor([2.0])
    (first,) = pg.gradient(cube(x).sum(), [x])
    (second,) = pg.gradient(first.sum(), [x])
    assert second.tolist() == [12.0] and first.tolist() == [12.0]


class Custom(Exception):
    pass


def test_exceptions_keep_class_and_traceback():
    @pg.function
    def fails(ctx, x):
        return x + 1

    @fails.backward
    def _(ctx, gradient):
        raise Custom("in backward")

    x = pg.Tensor([1.0], requires_grad=True)
    with pytest.raises(Custom, match="in backward") as info:
        fails(x).sum().backward()
    assert traceback.extract_tb(info.value.__traceback__)[-1].name == "_"
    assert x.grad is None and x.tolist() == [1.0]
    bad = pg.function(lambda ctx, x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bad(x)


def test_wrong_results_are_named():
    x = pg.Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"\[<lambda>\] the result of forward"):
        pg.function(lambda ctx, x: "a")(x)
    with pytest.raises(TypeError, match="input 1 is a str"):
        clip(x, "a")
    for backward, error, text in [
            (lambda ctx, g: (g, g), ValueError, "2 gradients for 1 inputs"),
            (lambda ctx, g: g.sum(), ValueError, "shape"),
            (lambda ctx, g: "a", TypeError, "result of backward"),
            (None, ValueError, "no backward")]:
        with pytest.raises(error, match=text):
            pg.function(lambda ctx, x: x + 1, backward, "f")(x).sum().backward()
    with pytest.raises(TypeError):
        pg.function(3)


def test_a_context_ends_with_its_call():
    kept = []
    keep = pg.function(lambda ctx, x: (kept.append(ctx), x + 1)[1], lambda ctx, g: ctx.save(g))
    x = pg.Tensor([1.0], requires_grad=True)
    y = keep(x)
    with pytest.raises(ValueError, match="ended"):
        kept[0].inputs
    with pytest.raises(ValueError, match="only forward"):
        y.sum().backward()


def test_python_functions_end_with_their_tensors():
    class Scale:
        def __call__(self, ctx, g):
            return g * 2

    scale = Scale()
    ref = weakref.ref(scale)
    x = pg.Tensor([1.0], requires_grad=True)
    y = pg.function(lambda ctx, x: x * 2, scale)(x)
    del scale
    gc.collect()
    assert ref() is not None
    y.sum().backward()
    assert x.grad.tolist() == [2.0]
    del y
    assert ends(x, ref)


def test_dropped_on_another_thread():
    def work() -> None:
        x = pg.Tensor([1.0], requires_grad=True)
        for _ in range(50):
            clip(x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_many_calls_do_not_grow():
    x = pg.Tensor([1.0, 2.0])

    def calls(n: int) -> None:
        for _ in range(n):
            clip(x, limit=2.0)

    calls(3000)
    gc.collect()
    counts, memory = [sys.getrefcount(o) for o in (x, clip, pg.Tensor)], resident()
    objects = len(gc.get_objects())
    calls(10_000)
    for _ in range(10):
        gc.collect()
    assert resident() - memory < 16 << 20
    after = [sys.getrefcount(o) for o in (x, clip, pg.Tensor)]
    assert all(abs(a - b) < 200 for a, b in zip(after, counts)), (after, counts)
    assert len(gc.get_objects()) - objects < 2000


def test_inside_of_jit():
    f = pg.jit(lambda x: clip(x, limit=2.0) * 2)
    for i in range(4):
        assert f(pg.Tensor([float(i)])).item() == min(i, 2) * 2


def test_scan_of_containers():
    def step(state, x):
        total = state["sum"] + x[0]
        return {"sum": total}, (total, x[1] * 2)

    a, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((3, 1), np.float32)
    state, (sums, twice) = pg.scan(step, {"sum": pg.Tensor([0.0, 0.0])},
                                   (pg.Tensor(a), pg.Tensor(b)))
    assert np.array_equal(sums.numpy(), np.cumsum(a, 0))
    assert state["sum"].tolist() == a.sum(0).tolist() and twice.tolist() == [[2.0]] * 3
    last, outputs = pg.scan(lambda s, x: (s + x, s), pg.Tensor([1.0, 1.0]), pg.Tensor(a),
                            reverse=True)
    assert last.tolist() == (a.sum(0) + 1).tolist() and outputs.shape == (3, 2)


def test_scan_has_gradients_and_errors():
    x, w = pg.Tensor([[1.0], [2.0], [3.0]]), pg.Tensor([2.0])
    _, y = pg.scan(lambda s, e: (s * w + e, s * w + e), pg.Tensor([0.0]), x)
    (slope,) = pg.gradient(y[-1].sum(), [w])
    assert y.tolist() == [[1.0], [4.0], [11.0]] and slope.tolist() == [6.0]
    with pytest.raises(TypeError, match="pair"):
        pg.scan(lambda s, e: s, pg.Tensor([0.0]), x)
    with pytest.raises(TypeError, match="other containers"):
        pg.scan(lambda s, e: ((s,), e), pg.Tensor([0.0]), x)
    with pytest.raises(TypeError, match="outputs.* is a int"):
        pg.scan(lambda s, e: (s, 3), pg.Tensor([0.0]), x)
    with pytest.raises(Custom):
        pg.scan(lambda s, e: (_ for _ in ()).throw(Custom()), pg.Tensor([0.0]), x)


def test_variable():
    length = pg.Variable("length", 1, 8)
    assert (length.name, length.low, length.high) == ("length", 1, 8) and "length" in repr(length)
    assert length.bind(3).item() == 3
    with pytest.raises(ValueError, match="length"):
        length.bind(9)
    with pytest.raises(ValueError):
        pg.Variable("n", 3, 1)
    x = pg.Tensor(np.arange(8, dtype=np.float32))
    assert length.limit(x, 0, 3).sum().item() == 3.0
    assert length.limit(x, 0, length.bind(4)).sum().item() == 6.0
    f = pg.jit(lambda x: x.sum())
    for n in (2, 5, 8, 1, 7):
        assert f(length.fit(pg.Tensor(np.ones(n, np.float32)), 0)).item() == n
    assert f.recordings == 1


def test_no_grad():
    x = pg.Tensor([2.0], requires_grad=True)
    with pg.no_grad():
        assert not pg.is_grad_enabled()
        y = x * x
    assert pg.is_grad_enabled()
    (y * x).sum().backward()
    assert x.grad.tolist() == [4.0]

    @pg.no_grad()
    def square(x):
        return x * x

    assert square.__name__ == "square"
    with pytest.raises(ValueError):
        square(x).sum().backward()
    with pytest.raises(Custom), pg.no_grad():
        raise Custom
    assert pg.is_grad_enabled()


def test_device_scope_is_of_its_thread():
    before, seen = pg.default_device(), []
    with pg.device("REFERENCE"):
        x = pg.Tensor([1.0, 2.0]) + 1
        assert x.device.startswith("REFERENCE") and x.tolist() == [2.0, 3.0]
        thread = threading.Thread(target=lambda: seen.append(pg.default_device()))
        thread.start()
        thread.join()
        with pg.device(before):
            assert pg.default_device() == before
    assert pg.default_device() == before and seen == [before]
    with pytest.raises(ValueError), pg.device("NONE"):
        pass


def test_search_and_optimisation_scopes():
    x = pg.Tensor(np.ones((16, 16), np.float32))
    with pg.SearchScope(2, 0.5):
        assert (x @ x + 3).sum().item() == 16 * 16 * 19
    for wrong in ((-1, 1.0), (2, 0.0)):
        with pytest.raises(ValueError), pg.SearchScope(*wrong):
            pass
    with pytest.raises(ValueError), pg.OptimisationScope("!"):
        pass


def test_seed():
    pg.manual_seed(5)
    first = pg.Tensor.rand(3).tolist()
    pg.manual_seed(5)
    assert pg.Tensor.rand(3).tolist() == first


def test_a_process_ends_with_functions_in_tensors():
    program = """
import threading, plugrad as pg
class Loud:
    def __call__(self, ctx, g): return g
    def __del__(self): pg.Tensor([1.0]).tolist()
f = pg.function(lambda ctx, x: x + 1, Loud())
x = pg.Tensor([1.0], requires_grad=True)
kept = [f(x) for _ in range(10)]
for _ in range(50): f(x)
step = pg.jit(lambda x: x * 2)
for _ in range(4): step(x)
threading.Thread(target=lambda: [f(x).sum().backward() for _ in range(20)]).start()
"""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=250)
        assert (done.returncode, done.stderr) == (0, b"")
