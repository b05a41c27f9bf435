"""Prints one expression at each stage: nodes, planned kernels, compiled kernels, values."""
import plugrad as pg


def main() -> None:
    x = pg.Tensor([1, 2, 3, 4]).realize()
    y = (x + 3 + 4) * 1

    # 1. The recorded graph. Nothing has run.
    print(f"recorded:\n{y.uop}")

    # 2. The planned kernels: constants are folded, the loop is explicit.
    for kernel in y.kernels():
        print(f"planned: {kernel}")
        for loop in kernel.ranges:
            print(f"loop {loop.axis} of {loop.size}")

    # 3. The compiled kernels: the loop is vectorised; the source is in the device's language.
    for kernel in y.schedule():
        print(f"compiled as {kernel.name}: {kernel.optimisations}\n{kernel.source}")

    # 4. The values.
    print(y.tolist())  # [8, 9, 10, 11]


if __name__ == "__main__":
    main()
