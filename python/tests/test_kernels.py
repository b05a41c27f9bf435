"""Kernels that tensors run, and kernels of the user's."""
import weakref

import numpy as np
import pytest

import plugrad as pg
from lifetimes import ends
from plugrad import UOp

SOURCE = """
void square_plus(void *const *buffers, const unsigned long *scalars,
                 unsigned long begin, unsigned long end) {
  float *restrict out = buffers[0];
  const float *a = buffers[1], *b = buffers[2];
  for (unsigned long i = begin; i < end; ++i) out[i] = a[i] * a[i] + b[i];
}"""


def ast(n: int) -> UOp:
    i = UOp.range(n, 0)
    out = UOp.param(0, "float32", n, True)
    a, b = (UOp.param(slot, "float32", n, False).load(i) for slot in (1, 2))
    return UOp.sink([out.store(i, a * a + b)])


def test_planned_and_compiled_kernels():
    x = pg.Tensor(np.ones((8, 16), np.float32))
    y = (x + 1).relu().sum(1)
    planned, compiled = y.kernelize(), y.schedule()
    assert len(planned) == len(compiled) == len(y.kernels()) == 1
    kernel = compiled[0]
    assert kernel.name.isidentifier() and kernel.colored_name
    assert kernel.device.startswith(x.device)
    assert sorted((r.size, r.reduces) for r in planned[0].ranges) == [(8, False), (16, True)]
    assert kernel.flops > 0 and kernel.bytes >= 8 * 16 * 4
    assert "reduce" in planned[0].ast and kernel.ast in str(kernel)
    assert kernel.name in repr(kernel) and "16" in repr(planned[0].ranges)
    assert not y.is_realized


def test_explain():
    with pg.device("CPU"):
        y = (pg.Tensor([1.0, 2.0]) + 1).exp()
        text = pg.explain(y)
    assert "1 kernel" in text and "schedule:" in text and y.schedule()[0].source in text
    assert not y.is_realized
    assert "0 kernels" in pg.explain(y.realize())


def test_a_given_schedule_is_used():
    with pg.device("CPU"):
        x = pg.Tensor(np.ones((32, 32), np.float32))
        (kernel,) = (x * 2).exp().schedule()
        with pg.OptimisationScope(kernel.optimisations):
            (again,) = (x * 2).exp().schedule()
    assert again.optimisations == kernel.optimisations


def test_a_kernel_as_ast():
    kernel = pg.UserKernel("square_plus", ast=ast(3),
                           backward=lambda ctx, g: (g * 2 * ctx.inputs[0], g))
    a, b = pg.Tensor([1.0, 2.0, 3.0]), pg.Tensor([1.0, 1.0, 1.0])
    y = kernel([a, b], (3,))
    slopes = pg.gradient(y.sum(), [a, b])
    assert [k.name for k in y.schedule()] == ["square_plus"]
    assert y.tolist() == [2.0, 5.0, 10.0]
    assert slopes[0].tolist() == [2.0, 4.0, 6.0] and slopes[1].tolist() == [1.0] * 3
    assert kernel.name == "square_plus" and "square_plus" in repr(kernel)
    with pg.device("REFERENCE"):
        (z,) = kernel([pg.Tensor([2.0] * 3), pg.Tensor([0.0] * 3)], [((3,), "float32")])
        assert z.tolist() == [4.0] * 3


def test_a_kernel_as_source():
    kernel = pg.UserKernel("square_plus", sources={"CPU": SOURCE}, groups=(3, 1, 1))
    with pg.device("CPU"):
        a = pg.Tensor([1.0, 2.0, 3.0])
        assert kernel([a, a], ((3,), pg.float32)).tolist() == [2.0, 6.0, 12.0]
        f = pg.jit(lambda a, b: kernel([a, b], 3) + 1)
        for i in range(4):
            assert f(a + i, a).tolist() == [(v + i)**2 + v + 1 for v in (1.0, 2.0, 3.0)]


def test_errors_of_kernels():
    with pg.device("CPU"):
        a = pg.Tensor([1.0])
        with pytest.raises(pg.CompileError) as info:
            pg.UserKernel("broken", sources={"CPU": "void broken( {"})([a], (1,)).tolist()
        assert "broken(" in info.value.source and info.value.log
        with pytest.raises(ValueError, match="CPU|source"):
            pg.UserKernel("other", sources={"CUDA": "x"})([a], (1,)).tolist()
    with pytest.raises(ValueError):
        pg.UserKernel("no name", ast=ast(3))([a, a], (3,))
    with pytest.raises(ValueError):
        pg.UserKernel("nothing")([a], (1,))
    with pytest.raises(ValueError):
        pg.UserKernel("f", ir=b"no block")([a], (1,))
    with pytest.raises(ValueError):
        pg.UserKernel("f", ast=ast(3))([a, a], (4,))
    with pytest.raises(TypeError, match="output"):
        pg.UserKernel("f", ast=ast(3))([a, a], "float32")
    for arguments in ({"sources": ["CPU"]}, {"backward": 3}, {"ast": 3}, {"groups": 3}):
        with pytest.raises(TypeError):
            pg.UserKernel("f", **arguments)


def test_kernels_end():
    class Backward:
        def __call__(self, ctx, g):
            return g, g

    backward = Backward()
    backward.kernel = pg.UserKernel("square_plus", ast=ast(3), backward=backward)
    a = pg.Tensor([1.0, 2.0, 3.0])
    for _ in range(10):
        backward.kernel([a, a], (3,)).tolist()
    ref = weakref.ref(backward)
    del backward
    assert ends(a, ref)
