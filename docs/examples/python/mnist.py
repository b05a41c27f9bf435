"""Trains the network of `plugrad train mnist` from Python: the same weights, batches and accuracy.

    python mnist.py [--steps N] [--device D] [--data DIR] [--save F] [--plot FILE.(svg|html)]

Progress goes to stderr; the last line on stdout is one line of JSON.
"""
import argparse
import json
import time

import plugrad as pg
from plugrad import data, nn, optim

BATCH = 512
SEED = 1  # of the weights and of the batches


class Net:
    """5x5x32, 5x5x32, batchnorm, pool, 3x3x64, 3x3x64, batchnorm, pool, linear."""

    def __init__(self) -> None:
        self.c1, self.c2 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 32, 5)
        self.c3, self.c4 = nn.Conv2d(32, 64, 3), nn.Conv2d(64, 64, 3)
        self.n1, self.n2 = nn.BatchNorm(32), nn.BatchNorm(64)
        self.out = nn.Linear(576, 10)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        x = self.n1(self.c2(self.c1(x).relu()).relu()).max_pool2d(2)
        x = self.n2(self.c4(self.c3(x).relu()).relu()).max_pool2d(2)
        return self.out(x.flatten(1))


def train_steps(net: Net, train: data.Dataset, steps: int, progress: optim.Progress) -> list[float]:
    """Returns the milliseconds of each step."""
    opt = optim.Adam(nn.parameters(net), lr=1e-3)

    @pg.jit
    def step(x: pg.Tensor, y: pg.Tensor) -> pg.Tensor:
        opt.zero_grad()
        loss = pg.sparse_categorical_crossentropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    times = []
    start = time.perf_counter()
    for x, y in train.batches(BATCH, shuffle=True, seed=SEED, steps=steps):
        progress.update(float(step(x, y).item()))
        now = time.perf_counter()
        times.append((now - start) * 1e3)
        start = now
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a network on MNIST.")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--device", help="such as CPU; default: as DEV says")
    parser.add_argument("--data", help="folder that holds the files of the data set")
    parser.add_argument("--save", help="safetensors file to write the trained network to")
    parser.add_argument("--plot", help="file for a plot of the training: .html or .svg")
    given = parser.parse_args()

    if given.device:
        pg.set_default_device(given.device)
    train, test = data.mnist(given.data)
    pg.Tensor.manual_seed(SEED)
    net = Net()
    with optim.Progress(given.steps, title=f"mnist on {pg.default_device()}", units_a_step=BATCH,
                        plot=given.plot) as progress:
        times = train_steps(net, train, given.steps, progress)
        if given.save:
            nn.save(net, given.save)
        accuracy = nn.accuracy(net, test)
        progress.add_test_accuracy(accuracy)
    steady = sorted(times[1:])  # the first step compiles the kernels
    print(json.dumps({"device": pg.default_device(), "steps": given.steps, "batch": BATCH,
                      "seconds": sum(times) / 1e3,
                      "step_ms": steady[len(steady) // 2] if steady else 0,
                      "test_accuracy": accuracy}))


if __name__ == "__main__":
    main()
