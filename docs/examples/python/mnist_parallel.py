"""Trains on MNIST over several devices: each has the whole network and takes a part of every batch.

    python mnist_parallel.py                  one process, two positions on the default device
    python mnist_parallel.py 1                one position, for comparison
    mpirun -n 2 python mnist_parallel.py      two processes, one position each

All three print the same losses, up to the order of sums; with PLUGRAD_DETERMINISTIC=1 all digits are
the same. Needs the data set: `plugrad data mnist` fetches it, PLUGRAD_DATA names it.
"""
import sys

import plugrad as pg
from plugrad import data, distributed, nn, optim

BATCH, STEPS = 128, 40


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), pg.relu,
                         lambda x: x.max_pool2d(2).flatten(1), nn.Linear(8 * 6 * 6, 10))


def main(positions: int = 2) -> None:
    distributed.init()  # finds the processes of mpirun or srun; without a launcher there is one
    many = distributed.size() > 1
    try:
        train, test = data.mnist(download=False)
    except pg.UserError as error:
        print("MNIST is not here, nothing to do:", error)
        return
    if many:  # each process has its default device
        mesh = pg.Mesh({"data": distributed.size()})
    else:
        mesh = pg.Mesh({"data": positions}, [pg.default_device()] * positions)

    pg.Tensor.manual_seed(1)  # the same initial weights in all processes
    net = nn.data_parallel(network(), mesh)
    opt = optim.Adam(nn.parameters(net), lr=5e-3)

    @pg.jit
    def step(x: pg.Tensor, y: pg.Tensor) -> pg.Tensor:
        opt.zero_grad()
        loss = pg.sparse_categorical_crossentropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    def on_mesh(part: pg.Tensor) -> pg.Tensor:
        """Each process loads its part of the batch alone; one process cuts the batch itself."""
        if not many:
            return part.shard(mesh, ("data",))
        return pg.from_shards(mesh, ("data",), (BATCH, *part.shape[1:]), [part])

    batches = train.batches(BATCH, shuffle=True, seed=1, steps=STEPS, rank=distributed.rank(),
                            ranks=distributed.size())
    for at, (x, y) in enumerate(batches):
        loss = step(on_mesh(x), on_mesh(y)).item()
        if distributed.rank() == 0:
            print(f"step {at}: loss {loss:.7g}", flush=True)

    nn.to(net, device=pg.default_device())  # from here on, each process works alone
    accuracy = nn.accuracy(net, test)
    if distributed.rank() == 0:
        print("test accuracy", accuracy)
    assert accuracy > 0.8


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
