"""The default device, and moving tensors between devices."""
import plugrad as pg


def main() -> None:
    print("default device:", pg.default_device())
    here = pg.Tensor([1.0, 2.0, 3.0])
    there = (here.to("REFERENCE") * 2).to(here.device)  # computed by the interpreter
    print((here + there).tolist())  # [3.0, 6.0, 9.0]
    try:
        here + pg.Tensor([1.0, 1.0, 1.0], device="REFERENCE")
    except pg.UserError as error:
        print(f"{type(error).__name__}: {error}")

    with pg.device("REFERENCE"):  # the default of this block
        x = pg.Tensor([1.0, 2.0])
    print(x.device, "and", pg.Tensor([1.0]).device)


if __name__ == "__main__":
    main()
