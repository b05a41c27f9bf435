"""Tensor basics: shape, dtype and device, and lazy evaluation."""
import plugrad as pg


def main() -> None:
    # A tensor has a shape, a dtype and a device. Operations only record: nothing runs.
    a = pg.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = a * 2 + pg.Tensor([10.0, 20.0, 30.0])  # axes of size 1 are broadcast
    print(b)  # Tensor(2, 3) f32 on CPU, lazy

    # Reading a value computes it; the value is kept, and reading it again runs nothing.
    print(b[1, 2].item())  # 42.0
    b.realize()
    print(b.is_realized, b.tolist())  # True [[12.0, 24.0, 36.0], [18.0, 30.0, 42.0]]

    # Python's numbers are weakly typed: they take the tensor's dtype. Promotion never loses range.
    small = pg.Tensor([250, 251, 252], dtype="uint8")
    print((small + 1).dtype, (small + 1.5).dtype, (small.cast("float16") + 1.5).dtype)

    # Two names may denote one tensor. Recorded operations keep the old value.
    other, before = a, a.sum()
    a += 100
    print(other[0, 0].item(), before.item())  # 101.0 21.0

    # Reductions take one axis, several axes or all; sizes of 0 are allowed.
    print(b.max(axis=0).tolist(), pg.Tensor.zeros((0, 3)).sum().item())

    # An error names the failed function, its arguments and a remedy, and is a ValueError.
    try:
        a @ b
    except pg.UserError as error:
        print(type(error).__mro__[1:3], error)


if __name__ == "__main__":
    main()
