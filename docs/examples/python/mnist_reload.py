"""Trains on MNIST for a few steps, saves the network and loads it into a second one.

The outputs of both are bitwise equal. Needs the data set: `plugrad data mnist` fetches it,
PLUGRAD_DATA names it.
"""
import tempfile
from pathlib import Path

import numpy as np

import plugrad as pg
from plugrad import data, nn, optim


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.BatchNorm(8), pg.relu,
                         lambda x: x.max_pool2d(2).flatten(1), nn.Linear(8 * 6 * 6, 10))


def main() -> None:
    try:
        train, test = data.mnist(download=False)
    except pg.UserError as error:
        print("MNIST is not here, nothing to do:", error)
        return
    pg.Tensor.manual_seed(1)
    net = network()
    opt = optim.Adam(nn.parameters(net), lr=5e-3)
    for x, y in train.batches(128, shuffle=True, seed=1, steps=60):
        opt.zero_grad()
        pg.sparse_categorical_crossentropy(net(x), y).backward()
        opt.step()

    copy = network()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mnist.safetensors"
        nn.save(net, path)  # weights and the statistics of BatchNorm
        nn.load(copy, path)
    images = test.gather([0, 1, 2, 3, 4, 5, 6, 7]).x
    with nn.training(False):
        same = np.array_equal(net(images).numpy(), copy(images).numpy())
    before, after = nn.accuracy(net, test), nn.accuracy(copy, test)
    print(f"test accuracy {before}, reloaded {after}, same bits: {same}")
    assert same and before == after > 0.85


if __name__ == "__main__":
    main()
