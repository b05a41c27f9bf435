"""Seconds of one 3x3 convolution (N=32, C=32, 28x28, K=64) under PyTorch: usage: torch_conv.py THREADS."""
import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
x, w = torch.rand(32, 32, 28, 28), torch.rand(64, 32, 3, 3)
best = float("inf")
with torch.no_grad():
    for _ in range(60):
        start = time.perf_counter()
        torch.conv2d(x, w)
        best = min(best, time.perf_counter() - start)
print(best)
