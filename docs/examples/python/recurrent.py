"""A loop with a state and its gradient; an LSTM over sequences of different lengths."""
import plugrad as pg
from plugrad import nn


def main() -> None:
    # Each step halves the state and adds an input of 100, 0 or 50. The step is recorded once.
    kept = pg.Tensor(0.5, requires_grad=True)

    def step(state: pg.Tensor, x: pg.Tensor) -> tuple[pg.Tensor, pg.Tensor]:
        now = state * kept + x
        return now, now

    last, stock = pg.scan(step, pg.Tensor(0.0), pg.Tensor([100.0, 0.0, 50.0]))
    slope = pg.gradient(last, [kept])[0]  # of 100 k² + 0 k + 50
    print(stock.tolist(), "slope", slope.item())  # [100.0, 50.0, 75.0] slope 100.0
    assert slope.item() == 100.0

    # Two sequences of lengths 4 and 2, in a batch padded to the longer one.
    pg.Tensor.manual_seed(1)
    lstm = nn.LSTM(3, 5)
    x, lengths = pg.Tensor.randn((4, 2, 3)), pg.Tensor([4, 2])
    output, (h, _) = lstm(x, lengths=lengths)
    _, (alone, _) = lstm(x[:2, 1:2])  # the short one by itself
    empty_behind = bool((output[2:4, 1] == 0).all())
    same = h[:, 1].allclose(alone[:, 0])
    print("0 behind the length:", empty_behind, "- the same state:", same)
    assert empty_behind and same


if __name__ == "__main__":
    main()
