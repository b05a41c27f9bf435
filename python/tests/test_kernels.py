"""Kernels that tensors run, and kernels of the user's."""
import runpy
import struct
import weakref
from pathlib import Path

import numpy as np
import pytest

import plugrad as pg
from lifetimes import ends
from plugrad import UOp

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "docs/examples/python/custom_ops.py"))
SOURCE, ast, square_plus = (EXAMPLE[name] for name in ("SOURCE", "loops", "square_plus"))


class Op:
    """Numbers of kernel_ops.h and of its dtypes."""

    PARAM, CONST, GROUP_ID, LOAD, STORE, ADD, MUL = 1, 3, 4, 10, 11, 20, 22
    VOID, I32, F32 = 0, 6, 12


def block(instructions: list[tuple], elements: int = 3) -> bytes:
    """Kernel IR (docs/kernel-ir.md) named "square_plus", with an output and two inputs of f32:
    instructions are (op, dtype, sources, arg)."""
    name, read, write, header_bytes = b"square_plus", 1, 2, 112
    params = b"".join(struct.pack("<4IQqq", 0, Op.F32, flags, 0, elements, 0, 0)
                      for flags in (write, read, read))
    insts = b"".join(struct.pack("<4H4IQ", op, dtype, 1, len(sources),
                                 *sources, *[0] * (4 - len(sources)), arg)
                     for op, dtype, sources, arg in instructions)
    at_insts = header_bytes + len(params)
    at_name = at_insts + len(insts)
    header = struct.pack("<4IQ16I3Q", 0x52494750, 100, header_bytes, 0, at_name + 16, at_name,
                         len(name), header_bytes, 40, 3, at_insts, 24, 0, at_insts, 32,
                         len(instructions), at_name, 0, 1, 1, 1, elements, 1, 1)
    return header + params + insts + name.ljust(16, b"\0")


INSTRUCTIONS = [(Op.PARAM, Op.F32, [], 0), (Op.PARAM, Op.F32, [], 1), (Op.PARAM, Op.F32, [], 2),
                (Op.GROUP_ID, Op.I32, [], 0), (Op.LOAD, Op.F32, [1, 3], 0),
                (Op.MUL, Op.F32, [4, 4], 0), (Op.LOAD, Op.F32, [2, 3], 0),
                (Op.ADD, Op.F32, [5, 6], 0), (Op.STORE, Op.VOID, [0, 3, 7], 0)]


def test_planned_and_compiled_kernels():
    x = pg.Tensor(np.ones((8, 16), np.float32))
    y = (x + 1).relu().sum(1)
    planned, compiled = y.kernelize(), y.schedule()
    assert len(planned) == len(compiled) == len(y.kernels()) == 1
    kernel = compiled[0]
    assert kernel.name.isidentifier() and kernel.colored_name
    assert kernel.device.startswith(x.device)
    assert sorted((r.size, r.reduces) for r in planned[0].ranges) == [(8, False), (16, True)]
    assert kernel.flops > 0 and kernel.work > 0 and kernel.bytes >= 8 * 16 * 4
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
    kernel = square_plus(3)
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


@pytest.mark.parametrize("device", ["CPU", "REFERENCE"])
def test_a_kernel_as_ir(device):
    kernel = pg.UserKernel("square_plus", ir=block(INSTRUCTIONS))
    with pg.device(device):
        y = kernel([pg.Tensor([1.0, 2.0, 3.0]), pg.Tensor([1.0, 0.0, -1.0])], (3,))
        assert [k.name for k in y.schedule()] == ["square_plus"]
        assert y.tolist() == [2.0, 4.0, 8.0]


@pytest.mark.parametrize(("number", "instruction", "message"), [
    (5, (Op.MUL, Op.F32, [4, 9], 0), "instruction 5"),   # a source that is not defined yet
    (7, (999, Op.F32, [5, 6], 0), "instruction 7"),      # no op
    (4, (Op.LOAD, 77, [1, 3], 0), "instruction 4"),      # no dtype
    (8, (Op.STORE, Op.VOID, [1, 3, 7], 0), "instruction 8")])  # into an input
def test_ill_formed_ir_names_the_instruction(number, instruction, message):
    wrong = [*INSTRUCTIONS[:number], instruction, *INSTRUCTIONS[number + 1:]]
    a = pg.Tensor([1.0, 2.0, 3.0])
    with pytest.raises(pg.DeviceError, match=message):
        pg.UserKernel("square_plus", ir=block(wrong))([a, a], (3,)).tolist()


def test_a_kernel_as_text_of_uops():
    text = str(ast(3))
    (read,) = UOp.parse(text)
    assert read == ast(3)
    a = pg.Tensor([1.0, 2.0, 3.0])
    assert pg.UserKernel("parsed", ast=read)([a, a], (3,)).tolist() == [2.0, 6.0, 12.0]
    lines = text.splitlines()
    lines[2] = "%2 = nonsense"
    with pytest.raises(ValueError, match="line 3"):
        UOp.parse("\n".join(lines))


def test_errors_of_kernels():
    with pg.device("CPU"):
        a = pg.Tensor([1.0])
        with pytest.raises(pg.CompileError) as info:
            pg.UserKernel("broken", sources={"CPU": "void broken( {"}, groups=(1, 1, 1))([a], (1,)).tolist()
        assert "broken(" in info.value.source and info.value.log
        with pytest.raises(ValueError, match="CPU|source"):
            pg.UserKernel("other", sources={"CUDA": "x"}, groups=(1, 1, 1))([a], (1,)).tolist()
        with pytest.raises(ValueError, match="`groups` is missing"):
            pg.UserKernel("square_plus", sources={"CPU": SOURCE})([a, a], (1,))
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
