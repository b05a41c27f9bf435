"""Trains the transformer of gpt.py on two devices, in two ways.

    python gpt_parallel.py tensor               each device has half of every matrix
    mpirun -n 2 python gpt_parallel.py tensor   the same in two processes
    python gpt_parallel.py pipeline [DEVICE]    the second device has half of the blocks
    mpirun -n 2 python gpt_parallel.py pipeline the second process has them
    python gpt_parallel.py one                  one device, for comparison

All print the same losses, up to the order of sums.
"""
import random
import sys
from collections.abc import Callable

import plugrad as pg
from gpt import BATCH, CONTEXT, WIDTH, Block, rhyme
from plugrad import distributed, nn, optim

STEPS = 12
Loss = Callable[[pg.Tensor, pg.Tensor], pg.Tensor]


class Input:
    """The letters and their places."""

    def __init__(self, letters: int) -> None:
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        return self.letter(x) + self.place.weight


def network(letters: int) -> nn.Sequential:
    return nn.Sequential(Input(letters), Block(), Block(), nn.LayerNorm(WIDTH),
                         nn.Linear(WIDTH, letters))


def train(parameters: list[pg.Tensor], numbers: list[int], loss_of: Loss) -> None:
    opt = optim.AdamW(parameters, lr=3e-3, weight_decay=0.01)
    pieces = random.Random(1)
    for step in range(STEPS):
        starts = [pieces.randrange(len(numbers) - CONTEXT) for _ in range(BATCH)]
        x = pg.Tensor([numbers[at:at + CONTEXT] for at in starts])
        y = pg.Tensor([numbers[at + 1:at + 1 + CONTEXT] for at in starts])
        opt.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optim.clip_grad_norm(parameters, 1.0)
        opt.step()
        value = loss.item()
        if distributed.rank() == 0:
            print(f"step {step}: loss {value:.7g}", flush=True)


def train_tensor_parallel(net: nn.Sequential, numbers: list[int]) -> None:
    """The rules cut attention by heads, and pairs of Linear by the values between them."""
    many = distributed.size() > 1
    mesh = pg.Mesh({"model": 2}) if many else pg.Mesh({"model": 2}, [pg.default_device()] * 2)
    # The places stay whole: they are added, not multiplied.
    nn.shard(net, mesh, [("0.place.weight", None), *nn.tensor_parallel(net, "model")])
    train(nn.parameters(net), numbers, lambda x, y: pg.sparse_categorical_crossentropy(
        net(x.shard(mesh)), y.shard(mesh)))


def train_pipeline(net: nn.Sequential, numbers: list[int], second: str) -> None:
    """Layers 0 and 1 on one device or process, the others on another; each batch in four parts."""
    first = pg.default_device()
    if distributed.size() > 1:
        first, second = (pg.Mesh({"data": 1}, ranks=[rank]).device for rank in (0, 1))
    pipeline = nn.Pipeline(net, [(0, first), (2, second)], 4)
    train(nn.parameters(pipeline), numbers, lambda x, y: pipeline.loss(
        x, y, pg.sparse_categorical_crossentropy))


def main(way: str = "tensor", second: str | None = None) -> None:
    distributed.init()  # finds the processes of mpirun or srun; without a launcher there is one
    pg.Tensor.manual_seed(1)
    text = rhyme()
    alphabet = sorted(set(text))
    numbers = [alphabet.index(letter) for letter in text]
    net = network(len(alphabet))
    if way == "tensor":
        train_tensor_parallel(net, numbers)
    elif way == "pipeline":
        train_pipeline(net, numbers, second or pg.default_device())
    else:
        train(nn.parameters(net), numbers,
              lambda x, y: pg.sparse_categorical_crossentropy(net(x), y))


if __name__ == "__main__":
    main(*sys.argv[1:])
