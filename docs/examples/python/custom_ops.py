"""Operations of one's own: composed of others, with a gradient of its own, or as a kernel."""
import math

import plugrad as pg
from plugrad import UOp


# Composed operations fuse like built-in ones and are differentiated without further code.
def my_gelu(x: pg.Tensor) -> pg.Tensor:
    return x * 0.5 * (1 + (x / math.sqrt(2)).erf())


def my_rms_norm(x: pg.Tensor, weight: pg.Tensor) -> pg.Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def my_swiglu(x: pg.Tensor, gate: pg.Tensor, up: pg.Tensor) -> pg.Tensor:
    return (x @ gate).silu() * (x @ up)


def show(name: str, result: pg.Tensor) -> None:
    kernels = result.schedule()
    print(f"{name}: {len(kernels)} kernels", *(kernel.name for kernel in kernels))


# round() has derivative 0; this gradient is the identity's (straight-through estimator).
@pg.function
def round_through(call: pg.FunctionContext, x: pg.Tensor) -> pg.Tensor:
    return x.round()


@round_through.backward
def round_through_backward(call: pg.FunctionContext, gradient: pg.Tensor) -> pg.Tensor:
    return gradient


def loops(n: int) -> UOp:
    """out[i] = a[i]² + b[i] as loops over loads and stores, which are scheduled for every device."""
    i = UOp.range(n, 0)
    out = UOp.param(0, "float32", n, True)
    a, b = (UOp.param(slot, "float32", n, False).load(i) for slot in (1, 2))
    return UOp.sink([out.store(i, a * a + b)])


def square_plus(n: int) -> pg.UserKernel:
    def backward(call: pg.FunctionContext, g: pg.Tensor) -> tuple[pg.Tensor, pg.Tensor]:
        return g * 2 * call.inputs[0], g

    return pg.UserKernel("square_plus", ast=loops(n), backward=backward)


# The same kernel in C, for the CPU: one workgroup for each element.
SOURCE = """
void square_plus(void *const *buffers, const unsigned long *scalars,
                 unsigned long begin, unsigned long end) {
  float *restrict out = buffers[0];
  const float *a = buffers[1], *b = buffers[2];
  for (unsigned long i = begin; i < end; ++i) out[i] = a[i] * a[i] + b[i];
}"""


def main() -> None:
    x, weight = pg.Tensor.randn((32, 64)).realize(), pg.Tensor.ones(64).realize()
    gate, up = (pg.Tensor.randn((64, 64)).realize() for _ in range(2))
    show("gelu", my_gelu(x))
    show("rms_norm", my_rms_norm(x, weight))
    show("swiglu", my_swiglu(x, gate, up))

    t = pg.Tensor([0.4, 1.6], requires_grad=True)
    rounded = round_through(t)
    slope = pg.gradient((rounded * 3).sum(), [t])[0]
    print(rounded.tolist(), "with slope", slope.tolist())  # [0.0, 2.0] with slope [3.0, 3.0]
    assert slope.tolist() == [3.0, 3.0]

    a, b = pg.Tensor([1.0, 2.0, 3.0], requires_grad=True), pg.Tensor([1.0, 1.0, 1.0])
    y = square_plus(3)([a, b], (3,))
    slope = pg.gradient(y.sum(), [a])[0]
    print(y.tolist(), "with slope", slope.tolist())  # [2.0, 5.0, 10.0] with slope [2.0, 4.0, 6.0]
    assert y.tolist() == [2.0, 5.0, 10.0]

    if pg.default_device().startswith("CPU"):
        kernel = pg.UserKernel("square_plus", sources={"CPU": SOURCE}, groups=(3, 1, 1))
        print(kernel([a.detach(), b], (3,)).tolist())


if __name__ == "__main__":
    main()
