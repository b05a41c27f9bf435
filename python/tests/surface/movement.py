"""Views, joins, gathering and scattering."""
import numpy as np

from .harness import case, ints, torch, v

F = torch.nn.functional if torch else None
X = v(2, 3, 4)
M = v(3, 4)
ROW = v(6)
for name in ("reshape", "view"):
    case(name, X, (4, -1), numpy=lambda x: x.reshape(4, -1))
    case(name, X, 24, numpy=lambda x: x.reshape(24))
case("permute", X, (2, 0, 1), numpy=lambda x: x.transpose(2, 0, 1))
case("transpose", X, 0, 2, numpy=lambda x: x.swapaxes(0, 2))
case("transpose", X, numpy=lambda x: x.swapaxes(-2, -1))
case("expand", v(3, 1), (2, 3, 4), numpy=lambda x: np.broadcast_to(x, (2, 3, 4)))
case("expand", v(3, 1), (-1, 4), numpy=lambda x: np.broadcast_to(x, (3, 4)))
case("pad", M, ((1, 2), None), names=("pads", "value"),
     numpy=lambda x: np.pad(x, ((1, 2), (0, 0))))
case("pad", M, (1, 0, 2, 1), 9.0, names=("pads", "value"),
     numpy=lambda x: np.pad(x, ((2, 1), (1, 0)), constant_values=9))
case("pad", M, ((1, 1), (2, 1)), "reflect", names=("pads", "mode"),
     numpy=lambda x: np.pad(x, ((1, 1), (2, 1)), "reflect"))
case("pad", M, ((1, 1), (2, 1)), "circular", names=("pads", "mode"),
     numpy=lambda x: np.pad(x, ((1, 1), (2, 1)), "wrap"))
case("pad", M, ((1, 1), (2, 1)), "replicate", names=("pads", "mode"),
     numpy=lambda x: np.pad(x, ((1, 1), (2, 1)), "edge"))
case("pad", M, ((1, 1), (2, 1)), "constant", 3.0, names=("pads", "mode", "value"),
     numpy=lambda x: np.pad(x, ((1, 1), (2, 1)), constant_values=3))
case("pad_to", M, (None, 6), 1.0, numpy=lambda x: np.pad(x, ((0, 0), (0, 2)), constant_values=1))
case("shrink", M, ((1, 3), None), numpy=lambda x: x[1:3])
case("shrink_to", M, [2, None], numpy=lambda x: x[:2])
case("flip", X, (0, 2), numpy=lambda x: np.flip(x, (0, 2)))
case("flip", X, 1, numpy=lambda x: np.flip(x, 1))
case("squeeze", v(1, 3, 1), numpy=lambda x: x.squeeze())
case("squeeze", v(1, 3, 1), 0, numpy=lambda x: x.squeeze(0))
case("unsqueeze", M, 1, numpy=lambda x: x[:, None])
case("flatten", X, 1, 2, numpy=lambda x: x.reshape(2, 12))
case("flatten", X, numpy=np.ravel)
case("unflatten", X, -1, (2, -1), numpy=lambda x: x.reshape(2, 3, 2, 2))
case("split", ROW, 4, names=("size",), numpy=lambda x: [x[:4], x[4:]])
case("split", X, 2, 2, names=("size", "axis"), numpy=lambda x: [x[..., :2], x[..., 2:]])
case("split", X, (1, 3), 2, names=("sizes", "axis"), numpy=lambda x: [x[..., :1], x[..., 1:]])
case("chunk", ROW, 4, torch=lambda x: torch.chunk(x, 4))
case("chunk", X, 2, -1, torch=lambda x: torch.chunk(x, 2, -1))
case("repeat", M, (2, 1, 3), numpy=lambda x: np.tile(x, (2, 1, 3)))
case("repeat_interleave", M, 2, 1, numpy=lambda x: np.repeat(x, 2, 1))
case("repeat_interleave", M, 3, numpy=lambda x: np.repeat(x, 3))
case("roll", X, 1, 2, numpy=lambda x: np.roll(x, 1, 2))
case("roll", X, (1, -1), (0, 2), numpy=lambda x: np.roll(x, (1, -1), (0, 2)))
case("roll", X, 5, numpy=lambda x: np.roll(x, 5))
case("unfold", X, 2, 2, 1, torch=lambda x: x.unfold(2, 2, 1))
case("diag", ROW, 1, numpy=lambda x: np.diag(x, 1))
case("diag", M, -1, numpy=lambda x: np.diag(x, -1))
case("diagonal", X, 1, 0, 2, numpy=lambda x: np.diagonal(x, 1, 0, 2))
case("tril", M, 1, numpy=lambda x: np.tril(x, 1))
case("triu", X, -1, numpy=lambda x: np.triu(x, -1))
case("numel", X, numpy=lambda x: np.int64(24))
case("bound_shape", X, numpy=lambda x: np.array(x.shape))

INDEX = np.array([[0, 2, 1], [1, 1, 0]], np.int32)
case("gather", M, 0, INDEX, torch=lambda x, i: torch.gather(x, 0, i.long()))
case("index_select", M, 1, np.array([3, 0, 3], np.int32), numpy=lambda x, i: x[:, i])
VALUES = v(2, 3, seed=5)
for how, theirs in (("sum", "sum"), ("prod", "prod"), ("mean", "mean"), ("max", "amax"),
                    ("min", "amin")):
    for include in (True, False):
        case("scatter_reduce", M, 0, INDEX, VALUES, how, include,
             torch=lambda x, i, y, h=theirs, n=include: x.scatter_reduce(0, i.long(), y, h,
                                                                       include_self=n))
UNIQUE = np.array([[0, 2, 1], [1, 0, 2]], np.int32)
case("scatter", M, 0, UNIQUE, VALUES, torch=lambda x, i, y: x.scatter(0, i.long(), y))
case("scatter", M, 0, INDEX, VALUES, "sum",
     torch=lambda x, i, y: x.scatter(0, i.long(), y, reduce="add"))
case("scatter", M, 1, UNIQUE, 2.5, torch=lambda x, i: x.scatter(1, i.long(), 2.5))
case("one_hot", ints(4, low=0, high=5), 5, numpy=lambda i: np.eye(5)[i])
for name, function in (("cat", np.concatenate), ("stack", np.stack)):
    case(name, [M, M + 1], numpy=lambda a, b, f=function: f([a, b]))
    case(name, [M, M + 1], -1, numpy=lambda a, b, f=function: f([a, b], -1))
A, B = v(3), v(4, seed=2)
case("meshgrid", [A, B], numpy=lambda a, b: np.meshgrid(a, b, indexing="ij"))
case("meshgrid", [A, B], "xy", numpy=lambda a, b: np.meshgrid(a, b))
