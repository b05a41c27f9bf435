"""The rows of bench/rows/variation.cpp in PyTorch: each function takes the inputs and gives the
call of a number; calls with other numbers differ in a number, a length or an index."""
import itertools

import torch
from torch.nn import functional as F

PRIMES = 7919, 104729  # steps between indices


def number(x):
    return lambda n: x * (0.3 + 1e-4 * n)


def prefix(x):
    return lambda n: x[:1 + 37 * n % len(x)].sum()


def read(x):
    def call(n):
        part = x[37 * n % len(x)]
        part.numpy()
        return part

    return call


def assigned(x):
    def call(n):
        x[37 * n % len(x)] = 2.0
        return x

    return call


def growing_attention(q, cache):
    context = cache

    def call(n):
        nonlocal context
        if n % 512 == 0:
            context = cache
        context = torch.cat([context, q], 1)
        return F.scaled_dot_product_attention(q, context, context)

    return call


def table_gradient(table):
    table.requires_grad_()
    first, second = (torch.arange(12000) * prime % len(table) for prime in PRIMES)

    def call(n):
        table.grad = None
        (table[first] - table[second]).square().sum().backward()
        return table.grad

    return call


def products(x, w):
    return lambda n: torch.cat([x[k] @ w for k in range(len(x))])


def recurrence(x, w):
    def call(n):
        h, states = torch.zeros_like(x[0]), []
        for part in x:
            h = (h * w + part).tanh()
            states.append(h)
        return torch.stack(states)

    return call


def scaled(make):
    """Jitted in plugrad."""
    def row(x):
        def call(n):
            k = make(0.3 + 1e-4 * n)
            return (x * k).sin() + k

        return call

    return row


def small(f):
    """An operation and the read of its result."""
    def row(*inputs):
        def call(n):
            made = f(n, *inputs)
            made.numpy()
            return made

        return call

    return row


def put_one(n, x, y):
    x[n % 4] = 1.0
    return x


ROWS = {
    "x * k": number,
    "x[:n].sum()": prefix,
    "x[i]": read,
    "x[i] = v": assigned,
    "attention over a growing context": growing_attention,
    "gradient of a table at two index tensors": table_gradient,
    "cat of 21 products of slices": products,
    "10 steps of a recurrence": recurrence,
    "20 steps of a recurrence": recurrence,
    "40 steps of a recurrence": recurrence,
    "jit: Tensor(k)": scaled(torch.tensor),
    "jit: full((), k)": scaled(lambda k: torch.full((), k)),
    "jit: ones(4) * k": scaled(lambda k: torch.ones(4) * k),
    "4 x 4: x + 1": small(lambda n, x, y: x + 1),
    "4 x 4: matmul": small(lambda n, x, y: x @ y),
    "4 x 4: relu(x @ y + 1)": small(lambda n, x, y: (x @ y + 1).relu()),
    "4 x 4: cat": small(lambda n, x, y: torch.cat([x, y])),
    "4 x 4: x[i] = 1": small(put_one),
    "4 x 4: sort": small(lambda n, x, y: x.sort()[0]),
    "4 x 4: randn": small(lambda n, x, y: torch.randn(4, 4)),
    "4 x 4: multinomial": small(lambda n, x, y: (x * x).multinomial(2)),
}
RANDOM = ("4 x 4: randn", "4 x 4: multinomial")


def variants(request, inputs):
    """(run, first) pairs as in protocol.serve, `first` in tensors; none of the rows of others."""
    name = request["row"]
    if name not in ROWS:
        return []
    call, numbers = ROWS[name](*inputs), itertools.count(request["start"])

    def run():
        for _ in range(request["calls"]):
            call(next(numbers))

    return [(run, lambda: None if name in RANDOM else [call(next(numbers))])]
