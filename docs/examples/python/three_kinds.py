"""The three kinds of operation and their cost.

Elementwise operations fuse into the kernel that reads them, movement is free, and a reduction ends
a kernel.
"""
import plugrad as pg


def stored(*shape: int) -> pg.Tensor:
    return pg.Tensor.rand(shape).realize()


def show(what: str, tensor: pg.Tensor) -> int:
    kernels = len(tensor.schedule())
    print(f"{what:56}{kernels}")
    return kernels


def main() -> None:
    x, y, w = stored(64, 32), stored(64, 32), stored(32, 16)
    print("kernels")

    # Elementwise: any number of operations is one kernel.
    show("x + y", x + y)
    show("((x * y + 1).relu() - y).exp()", ((x * y + 1).relu() - y).exp())
    show("where(x > 0.5, x, -y)", pg.where(x > 0.5, x, -y))

    # Movement: a view indexes the same elements in another way.
    show("x.T.reshape(8, 256)", x.T.reshape(8, 256))
    show("x[8:40:2, 3]", x[8:40:2, 3])
    show("x.T + 1             (movement inside a kernel)", x.T + 1)
    show("cat([x, y]) * 2     (joining is a condition)", pg.cat([x, y]) * 2)

    # Reduction: elementwise work before and after it joins its kernel …
    show("x.sum()", x.sum())
    show("(x * y).relu().sum(1)", (x * y).relu().sum(1))
    show("relu(x @ w + 1)", pg.relu(x @ w + 1))
    # … unless several consumers need its result: x / sum reads every sum 32 times.
    show("x / x.sum(1, keepdim=True)", x / x.sum(1, keepdim=True))
    show("x.softmax()         (a maximum, a sum, a division)", x.softmax())

    # Repeating elements along an axis gives an outer product; summing it gives a matrix product.
    product = (x.reshape(64, 32, 1) * w.reshape(1, 32, 16)).sum(1)
    show("expand, multiply, sum", product)
    print("the same as a matrix product:", (product - x @ w).abs().max().item())

    # Each realize() in between costs a kernel and a pass through memory.
    a, b = stored(1024), stored(1024)
    show("(a + b).relu().sum()", (a + b).relu().sum())
    first = (a + b).realize()
    second = first.relu().realize()
    show("the last step, after realize() of the others", second.sum())


if __name__ == "__main__":
    main()
