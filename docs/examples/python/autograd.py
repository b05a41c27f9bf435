"""Gradients, checked by finite differences."""
from collections.abc import Callable

import numpy as np

import plugrad as pg

STEP = 1e-6


def disagreement(f: Callable[[pg.Tensor], pg.Tensor], at: np.ndarray) -> float:
    """The largest difference between the gradient of f(x).sum() and (f(x + h) - f(x - h)) / 2h."""
    x = pg.Tensor(at, requires_grad=True)
    exact = pg.gradient(f(x).sum(), [x])[0].numpy()
    worst = 0.0
    for i in range(len(at)):
        h = np.zeros_like(at)
        h[i] = STEP
        above, below = (float(f(pg.Tensor(at + sign * h)).sum().item()) for sign in (1, -1))
        worst = max(worst, abs((above - below) / (2 * STEP) - float(exact[i])))
    return worst


def main() -> None:
    # backward() accumulates into the grad of every leaf that requires a gradient.
    x = pg.Tensor([2.0], requires_grad=True)
    (x * x + 3 * x + 1).sum().backward()
    print("2x + 3 at 2:", x.grad)

    # Control flow is Python's: the branch that ran is differentiated.
    z = pg.Tensor([3.0], requires_grad=True)
    y = z * z if z.item() > 0 else -z
    print("2z at 3:", pg.gradient(y.sum(), [z])[0].item())

    # The gradient of a broadcast leaf is summed over the broadcast axes.
    bias = pg.Tensor.zeros(3, "float64")
    bias.requires_grad = True
    (pg.Tensor.ones((4, 3), "float64") + bias).sum().backward()
    print("rows:", bias.grad)

    # gradient() is a function of tensors, so it can be differentiated again: x³, 3x², 6x.
    v = pg.Tensor([2.0], requires_grad=True)
    slope = pg.gradient((v * v * v).sum(), [v])[0]
    print(slope.item(), pg.gradient(slope.sum(), [v])[0].item())

    # Every derivative can be checked like this.
    points = np.array([-1.7, -0.4, 0.3, 1.1, 2.6])
    functions: list[Callable[[pg.Tensor], pg.Tensor]] = [
        lambda t: (t * t).sin(), lambda t: t.sigmoid().log(), lambda t: t.softmax() * t,
        lambda t: t.cumsum(0).tanh()]
    worst = max(disagreement(f, points) for f in functions)
    print("gradients agree with differences:", worst < 1e-7)
    assert worst < 1e-7


if __name__ == "__main__":
    main()
