"""Networks on nodes and edges, and on points."""
import numpy as np

from net import Net, Value
from registry import network

NODES, EDGES = 60, 240


def edges(n: Net) -> tuple[Value, Value]:
    pair = n.input("edges", 2, EDGES, high=NODES)
    return n.Gather(pair, 0, axis=0), n.Gather(pair, 1, axis=0)


def summed(n: Net, values: Value, to: str, width: int) -> Value:
    """Adds a row of each edge to its node's."""
    rows = n.Expand(n.Unsqueeze(to, [1]), [EDGES, width])
    y = n.ScatterElements(n.const(np.zeros((NODES, width), np.float32)), rows, values, axis=0, reduction="add")
    y.width = width
    return y


@network(opset=16)
def graph_convolution(n: Net) -> None:
    x, (start, end) = n.input("x", NODES, 32), edges(n)
    degree = n.Add(summed(n, n.const(np.ones((EDGES, 1), np.float32)), end, 1), 1.0)
    scale = n.Reciprocal(n.Sqrt(degree))
    share = n.Mul(n.Gather(scale, start), n.Gather(scale, end))
    for width in (64, 64, 7):
        y = n.linear(x, width, bias=False)
        near = n.Mul(n.Gather(y, start), share)
        x = n.Add(summed(n, near, end, width), n.Mul(y, n.Mul(scale, scale)))
        x = n.act(n.Add(x, n.around(0, width)), "Relu" if width == 64 else "")
        x.width = width
    n.output(n.LogSoftmax(x, axis=1))


@network(opset=16)
def graph_attention(n: Net) -> None:
    x, (start, end) = n.input("x", NODES, 16), edges(n)
    for width in (32, 32):
        y = n.linear(x, width)
        score = n.Exp(n.LeakyRelu(n.Add(n.Gather(n.linear(y, 1), start), n.Gather(n.linear(y, 1), end)), alpha=0.2))
        score.width = 1
        total = n.Gather(summed(n, score, end, 1), end)
        x = n.Elu(n.Add(summed(n, n.Mul(n.Gather(y, start), n.Div(score, total)), end, width), y))
    n.output(n.linear(n.ReduceMean(x, axes=[0]), 3))


@network(opset=18)
def messages(n: Net) -> None:
    """Messages by a network of both ends; the largest of each node is kept."""
    x, (start, end) = n.input("x", NODES, 16), edges(n)
    for _ in range(3):
        pair = n.Concat(n.Gather(x, start), n.Gather(x, end), axis=1)
        pair.width = 2 * x.width
        sent = n.linear(n.linear(pair, 32, "Relu"), 32)
        rows = n.Expand(n.Unsqueeze(end, [1]), [EDGES, 32])
        most = n.ScatterElements(n.const(np.zeros((NODES, 32), np.float32)), rows, sent, axis=0, reduction="max")
        most.width = 32
        x = n.linear(n.concat(x, most), 16, "Tanh")
    n.output(x)


@network()
def points(n: Net) -> None:
    """As PointNet: a learnt turn, layers on each point, the largest of all."""
    x = n.input("points", 1, 3, 256)
    y = x
    for width in (32, 64, 128):
        y = n.conv(y, width, 1, rank=1)
    y = n.ReduceMax(y, axes=[2], keepdims=0)
    y.width = 128
    turn = n.Reshape(n.Add(n.gemm(n.gemm(y, 64, "Relu"), 9), np.eye(3, dtype=np.float32).ravel()), [1, 3, 3])
    x = n.MatMul(turn, x)
    x.width = 3
    for width in (64, 128, 256):
        x = n.conv(x, width, 1, rank=1, norm=True)
    x = n.ReduceMax(x, axes=[2], keepdims=0)
    x.width = 256
    n.output(n.LogSoftmax(n.gemm(n.gemm(x, 128, "Relu"), 40), axis=1))
