"""A loss of one's own, its gradient, and a check of the gradient.

Huber's loss is quadratic near 0 and linear beyond delta, so that outliers do not dominate. It is
written with ordinary functions; autograd needs nothing else. Source: Huber 1964.
"""
import plugrad as pg


def huber(error: pg.Tensor, delta: float = 1.0) -> pg.Tensor:
    size = error.abs()
    return pg.where(size <= delta, error.square() * 0.5, (size - 0.5 * delta) * delta)


def main() -> None:
    errors = pg.Tensor([-3.0, -1.0, -0.4, 0.0, 0.7, 1.5, 20.0], dtype="float64")
    x = errors.clone()
    x.requires_grad = True
    loss = huber(x).sum()
    print("kernels of the loss:", len(loss.schedule()))
    loss.backward()

    # Central differences in float64: (f(x + h) - f(x - h)) / 2h has an error of O(h²).
    step = 1e-6
    slope = (huber(errors + step) - huber(errors - step)) / (2 * step)
    assert x.grad is not None
    print(x.grad.tolist())
    print("agrees with differences:", x.grad.allclose(slope, rtol=0, atol=1e-6))
    assert x.grad.allclose(slope, rtol=0, atol=1e-6)


if __name__ == "__main__":
    main()
