"""Learns exclusive or from ten samples with two layers until the loss is below 0.001.

The classes are not linearly separable, so one layer cannot learn them; a hidden layer can. The loop
is the usual one: forward, backward, step.
"""
import plugrad as pg
from plugrad import nn, optim


def main() -> None:
    pg.Tensor.manual_seed(3)
    # Corners of a square, and points near them.
    x = pg.Tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.1, 0.1], [0.1, 0.9],
                   [0.9, 0.1], [0.9, 0.9], [0.0, 0.2], [0.8, 1.0]])
    y = pg.Tensor([0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]).reshape(10, 1)
    net = nn.Sequential(nn.Linear(2, 16), pg.relu, nn.Linear(16, 1))
    opt = optim.Adam(nn.parameters(net), lr=0.03)

    value, step = 1.0, 0
    while value >= 0.001 and step < 1000:
        opt.zero_grad()
        loss = pg.binary_crossentropy_logits(net(x), y)
        loss.backward()
        opt.step()
        value = float(loss.item())
        step += 1
    right = bool(((net(x) > 0) == (y > 0.5)).all())
    print(f"loss {value:.5f} after {step} steps, all right: {right}")
    assert right and value < 0.001


if __name__ == "__main__":
    main()
