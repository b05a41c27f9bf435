"""Loop, If and Scan."""
import numpy as np

from net import Net, Value
from registry import network

BOOL, INT64 = 9, 7


def step(n: Net, x: Value, state: Value, width: int) -> Value:
    """One of a gated recurrence."""
    pair = n.Concat(x, state, axis=-1)
    pair.width = x.width + width
    gate, new = n.linear(pair, width, "Sigmoid"), n.linear(pair, width, "Tanh")
    y = n.Add(n.Mul(gate, state), n.Mul(n.Sub(1.0, gate), new))
    y.width = width
    return y


@network()
def greedy(n: Net) -> None:
    """A Loop that decodes 12 tokens: each is the best after the one before."""
    state = n.gemm(n.input("context", 1, 32), 64, "Tanh")
    table = n.weight(200, 48, fan=1, gain=0.5)
    body = n.body()
    body.place(INT64, [])
    go_on, token, before = body.place(BOOL, []), body.place(INT64, [1]), body.place(shape=[1, 64], width=64)
    x = body.Gather(table, token)
    x.width = 48
    after = step(body, x, before, 64)
    scores = body.linear(after, 200)
    best = body.ArgMax(scores, axis=1, keepdims=0)
    body.output(body.Identity(go_on), dtype=BOOL)
    body.output(best, dtype=INT64)
    body.output(after)
    body.output(body.Identity(best), dtype=INT64)
    _, last, tokens = n.Loop(12, True, [1], state, outputs=3, body=body.graph())
    n.output(last, rank=2)
    n.output(tokens, dtype=INT64, rank=2)


@network()
def converging(n: Net) -> None:
    """A Loop that ends by its data: a fixed point."""
    x, w = n.input("x", 4, 32), n.const(np.float32(0.08) * n.uniform(32, 32))
    body = n.body()
    body.place(INT64, [])
    body.place(BOOL, [])
    state = body.place(shape=[4, 32])
    new = body.Tanh(body.Add(body.MatMul(state, w), x))
    change = body.ReduceMax(body.Abs(body.Sub(new, state)), keepdims=0)
    body.output(body.Greater(change, 1e-3), dtype=BOOL)
    body.output(new)
    n.output(n.Loop(50, True, n.const(np.zeros((4, 32), np.float32)), body=body.graph()), rank=2)


@network()
def branches(n: Net) -> None:
    """An If that an input decides, with another network in each branch."""
    x = n.input("x", 1, 64)
    is_long = n.input("is_long", value=np.array(True))
    graphs = []
    for depth in (4, 1):
        body = n.body()
        y = x
        for _ in range(depth):
            y = body.linear(y, 64, "Relu")
        body.output(body.linear(y, 10))
        graphs.append(body.graph())
    n.output(n.Softmax(n.If(is_long, then_branch=graphs[0], else_branch=graphs[1]), axis=-1))


@network()
def early_exit(n: Net) -> None:
    """The second half runs only if the first is not sure."""
    x = n.linear(n.input("x", 1, 64), 64, "Relu")
    first = n.Softmax(n.linear(x, 10), axis=-1)
    sure = n.Greater(n.ReduceMax(first, keepdims=0), 0.9)
    stop, go_on = n.body(), n.body()
    stop.output(stop.Identity(first))
    y = go_on.linear(go_on.linear(x, 128, "Relu"), 128, "Relu")
    go_on.output(go_on.Softmax(go_on.linear(y, 10), axis=-1))
    n.output(n.If(sure, then_branch=stop.graph(), else_branch=go_on.graph()))


@network()
def scanned(n: Net) -> None:
    """A recurrence by Scan over 30 steps."""
    body = n.body()
    before, x = body.place(shape=[2, 48], width=48), body.place(shape=[2, 24], width=24)
    after = step(body, x, before, 48)
    body.output(after, body.Identity(after))
    last, states = n.Scan(n.const(np.zeros((2, 48), np.float32)), n.input("x", 30, 2, 24), outputs=2, num_scan_inputs=1, body=body.graph())
    n.output(last, states)
