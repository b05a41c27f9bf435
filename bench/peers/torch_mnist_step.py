"""Median seconds of the MNIST training step, batch 512, under PyTorch: usage: torch_mnist_step.py THREADS."""
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))
net = nn.Sequential(
    nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(), nn.BatchNorm2d(32), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(576, 10))
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
x, y = torch.rand(512, 1, 28, 28), torch.randint(0, 10, (512,))
times = []
for _ in range(9):
    start = time.perf_counter()
    optimiser.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimiser.step()
    loss.item()
    times.append(time.perf_counter() - start)
print(statistics.median(times[2:]))
