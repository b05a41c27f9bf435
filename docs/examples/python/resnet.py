"""A small residual network (He et al. 2016) that classifies colour images into ten classes.

    python resnet.py [STEPS] [CHANNELS]

With CIFAR-10 when its files are present (see plugrad.data.cifar10), else with images of noisy
stripes, whose direction and colour depend on the class.
"""
from __future__ import annotations

import sys

import numpy as np

import plugrad as pg
from plugrad import data, nn, optim


class Residual:
    """Two convolutions and a connection around them, 1 x 1 where the image shrinks."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm(out), nn.BatchNorm(out)
        self.around = (nn.Conv2d(channels, out, 1, stride=stride, bias=False)
                       if channels != out or stride != 1 else None)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        h = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return (h + (self.around(x) if self.around else x)).relu()


class ResNet:
    def __init__(self, width: int) -> None:
        self.first, self.norm = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm(width)
        self.blocks = [Residual(width, width, 1), Residual(width, 2 * width, 2),
                       Residual(2 * width, 4 * width, 2)]
        self.out = nn.Linear(4 * width, 10)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        h = self.norm(self.first(x)).relu()
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean((2, 3)))  # the average of each channel


def stripes(count: int, size: int, seed: int) -> data.Dataset:
    """Images of stripes; those of class k are rotated by k * 18 degrees."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    angle = (labels * np.pi / 10).reshape(-1, 1, 1, 1)
    row, column = np.mgrid[:size, :size]
    along = column * np.cos(angle) + row * np.sin(angle)
    shift = random.uniform(0, 2 * np.pi, (count, 1, 1, 1)) + np.arange(3).reshape(1, 3, 1, 1)
    noise = random.integers(0, 80, (count, 3, size, size))
    images = 88 + 80 * np.sin(along * 1.2 + shift) + noise
    return data.Dataset(images.astype(np.uint8), labels.astype(np.uint8), (3, size, size))


def load() -> tuple[data.Dataset, data.Dataset]:
    try:
        return data.cifar10(download=False)
    except pg.UserError:
        print("no CIFAR-10 found: made images of stripes instead")
        return stripes(640, 16, 1), stripes(160, 16, 2)


def main(steps: int = 60, width: int = 8) -> None:
    pg.Tensor.manual_seed(1)
    train, test = load()
    net = ResNet(width)
    # Weight decay applies to kernels only, not to scales, shifts and biases.
    kernels = [p for p in nn.parameters(net) if p.ndim > 1]
    others = [p for p in nn.parameters(net) if p.ndim <= 1]
    opt = optim.OptimizerGroup(
        optim.SGD(kernels, lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
        optim.SGD(others, lr=0.1, momentum=0.9, nesterov=True))
    rate = optim.one_cycle_rate(0.1, steps)
    losses = []
    for step, (x, y) in enumerate(train.batches(32, shuffle=True, seed=1, steps=steps)):
        for member in opt.members:
            member.lr = rate(step)
        opt.zero_grad()
        loss = pg.sparse_categorical_crossentropy(net(x), y, label_smoothing=0.05)
        loss.backward()
        opt.step()
        losses.append(float(loss.item()))
        if step % 10 == 0:
            print(f"step {step}: loss {losses[-1]:.3f}", flush=True)
    accuracy = nn.accuracy(net, test, 160)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, test accuracy {accuracy}")
    if steps >= 60:
        assert losses[-1] < losses[0] and accuracy > 0.25  # a guess is right in 0.1 of all cases


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
