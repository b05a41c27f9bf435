"""A program with every part of the surface, for type checkers (test_types.py) and for Python."""
from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np

import plugrad as pg
import plugrad.array_api as xp
from plugrad import Tensor, nn, optim


def creation() -> list[Tensor]:
    a = Tensor([[1.0, 2.0], [3, 4]], dtype=pg.float32, device=pg.default_device())
    return [a, Tensor(3), Tensor(np.ones(3)), Tensor(a, requires_grad=True), Tensor.zeros(2, 3),
            Tensor.zeros((2, 3), "int32"), Tensor.ones([2], dtype=np.float32),
            Tensor.full((2,), 1.5), Tensor.arange(3), Tensor.arange(1, 7, 2, dtype="int64"),
            Tensor.linspace(0, 1, 5), Tensor.eye(3), Tensor.rand(2, 2), Tensor.randn((2, 2)),
            Tensor.uniform((2,), -1, 1), Tensor.randint((3,), 0, 9), a.zeros_like(),
            a.full_like(2), a.rand_like()]


def operators(x: Tensor, y: Tensor) -> Tensor:
    z = (x + y - 1) * 2 / x // 1 % 3 + 2 - 3 * x
    z = -z + abs(x) + x ** 2 + (x @ y.T)[0, 0] + np.float32(1.0)
    flags = (x < y) & (x <= 1) | ~(x > y) ^ (x >= 0)
    same = (x == y) | (x != 2)
    z += 1
    z -= x
    z *= 2
    return pg.where(flags & same, z, 0.0)


def indexing(x: Tensor) -> list[Tensor]:
    x = x.clone()
    x[0] = 1.0
    x[..., 1] = x[..., 0]
    x[x > 2] = 0
    x[None] = x
    parts = [x[0], x[0, 1], x[1:], x[::-1], x[None], x[..., 0], x[[0, 1]], x[Tensor([1, 0])],
             x[np.array([0, 1]), 0]]
    return parts + [row for row in x]


def methods(x: Tensor) -> list[Tensor]:
    values, places = x.sort(axis=-1, descending=True)
    first, second = x.split(1)
    return [x.sum(), x.sum(axis=0, keepdim=True), x.sum(dim=(0, 1)), x.mean(-1), x.max(), x.argmax(),
            x.softmax(dim=1), x.log_softmax(), x.reshape(-1), x.reshape((4, 1)), x.permute(1, 0),
            x.transpose(), x.T, x.expand(3, 2, 2), x.pad([(1, 1), None]), x.flip(0), x.squeeze(),
            x.unsqueeze(0), x.flatten(), x.cast("float16"), x.cast(np.float64), x.bitcast("int32"),
            x.clamp(0, 1), x.clamp(0), x.cumsum(0), x.repeat(2, 1), x.relu().gelu().sigmoid(),
            x.rearrange("(a b) c -> a b c", a=1), x.to("REFERENCE"), x.to(pg.float64), x.detach(),
            x.masked_fill(x > 1, 0.0), x.gather(0, Tensor([[0, 1]])), values, places, first, second]


def functions(x: Tensor) -> list[Tensor]:
    q, r = pg.qr(x)
    u, s, vt = pg.svd(x)
    image = Tensor.rand((1, 2, 6, 6))
    return [pg.cat([x, x], axis=1), pg.stack([x, x], dim=0), pg.matmul(x, x), pg.relu(x), q, r, u, s,
            vt, pg.einsum("ij,jk->ik", [x, x]), pg.where(x > 0, x, 1),
            pg.conv2d(image, Tensor.rand((3, 2, 3, 3)), stride=(1, 1), padding="same"),
            pg.max_pool2d(image, 2), pg.interpolate(image, size=(3, 3)),
            pg.mse_loss(x, x, reduction="sum"), pg.cross_entropy(x, Tensor([0, 1])),
            pg.scaled_dot_product_attention(x, x, x, is_causal=True)]


def values(x: Tensor) -> None:
    number: bool | int | float = x.sum().item()
    array: np.ndarray = x.numpy()
    shape: tuple[int, ...] = x.shape
    dtype: pg.dtype = x.dtype
    device: str = x.device
    nested: list[list[float]] = x.tolist()
    assert float(x.sum()) == number == sum(map(sum, nested)) == array.sum()
    assert int(Tensor(3)) == 3 and bool(Tensor(True)) and len(x) == x.size(0) == shape[0]
    assert dtype == "float32" and dtype.itemsize == 4 and device == x.device
    assert np.asarray(x).shape == shape and x.ndim == 2 and x.numel() == 4
    assert pickle.loads(pickle.dumps(x)).allclose(copy.deepcopy(x))
    assert pg.from_dlpack(array).allclose(x)


class Net:
    def __init__(self) -> None:
        self.body = nn.Sequential(nn.Linear(2, 8), pg.relu, nn.LayerNorm(8))
        self.head = nn.Linear(8, 2)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))

    @pg.jit
    def forward(self, x: Tensor) -> Tensor:
        return self(x)


def training(x: Tensor) -> None:
    net = Net()
    opt = optim.AdamW(nn.parameters(net), lr=1e-2, betas=(0.9, 0.99))
    rate: optim.Schedule = optim.warm_up(optim.cosine_rate(1e-2, 10), 2)
    for step in pg.progress(range(3), label="training", quiet=True):
        opt.lr = rate(step)
        opt.zero_grad()
        loss = pg.cross_entropy(net(x), Tensor([0, 1]))
        loss.backward()
        opt.step()
    weight: Tensor = nn.state_dict(net)["head.weight"]
    skipped: list[nn.StateDifference] = nn.load_state_dict(net, {"head.weight": weight}, strict=False)
    assert skipped and nn.clone(net) is not net
    with tempfile.TemporaryDirectory() as folder:
        nn.save_sharded({"net": net}, folder)
        skipped = nn.load_sharded({"net": net}, Path(folder), strict=False)
        assert not skipped
    with nn.training(False), pg.no_grad():
        assert net.forward(x).allclose(net(x))
    gradients: list[Tensor] = pg.gradient((x * x).sum(), [x])
    assert gradients[0].allclose(2 * x)


def programs(x: Tensor) -> None:
    length: pg.Variable = pg.Variable("length", 1, 2)
    limited: Tensor = length.limit(x, 0, length.bind(1))
    node: pg.UOp = (x + 1).uop
    matcher = pg.PatternMatcher([(pg.Pattern.any("a") * 1, lambda match: match["a"])])
    names: list[str] = [kernel.name for kernel in (x + 1).schedule()]
    assert limited.ndim == 2 and str(matcher.rewrite(node)) and names and pg.explain(x + 1)
    with pg.device("REFERENCE"), pg.SearchScope(2, 1):
        assert Tensor([1]).device == "REFERENCE"


def standard(x: Tensor) -> None:
    number: int = x.size
    there: Tensor = x.to_device("REFERENCE").mT
    mean: Tensor = xp.mean(xp.astype(there, xp.float64), axis=(0, 1), keepdims=True)
    rows: tuple[Tensor, ...] = xp.unstack(x)
    dtype: pg.dtype = xp.result_type(xp.int8, x, 1.5)
    largest: float = xp.finfo(dtype).max
    names: dict[str, pg.dtype] = xp.__array_namespace_info__().dtypes(kind="bool")
    eigenvalues: Tensor = xp.linalg.eigh(x @ x.mT).eigenvalues
    assert number == 4 and mean.shape == (1, 1) and len(rows) == 2 and largest > 1e38 and names
    assert eigenvalues.shape == (2,) and xp.where(x > 0, x, 0).allclose(xp.clip(x, min=0))


def main() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    plain = x.detach()
    for tensor in [*creation(), operators(plain, plain), *indexing(plain), *methods(plain),
                   *functions(plain)]:
        tensor.realize()
    values(plain)
    standard(plain)
    training(x)
    programs(plain)


if __name__ == "__main__":
    main()
