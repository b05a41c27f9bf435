"""Reductions, scans and sorting."""
import numpy as np

from .harness import case, ints, torch, v

F = torch.nn.functional if torch else None
X = v(3, 4, 5)
ONES = v(3, 4, 5, low=0.5, high=1.5)
WHOLE = ints(3, 4)
TIES = ints(4, 6, low=0, high=4)
POSITIVE_WEIGHTS = np.array([[0, 0, 1], [1, 0, 0]], np.float32)


def last(index_of: object, x: np.ndarray, axis: int) -> np.ndarray:
    """Running index of the last of equal extrema."""
    moved = np.moveaxis(x, axis, 0)
    at = np.zeros(moved.shape, np.int32)
    for i in range(1, len(moved)):
        previous = np.take_along_axis(moved, at[i - 1:i], 0)[0]
        at[i] = np.where(index_of(moved[i], previous), i, at[i - 1])  # type: ignore[operator]
    return np.moveaxis(at, 0, axis)


for name in ("sum", "prod"):
    f = getattr(np, name)
    case(name, ONES, numpy=lambda x, f=f: f(x), rtol=1e-4)
    case(name, ONES, 1, numpy=lambda x, f=f: f(x, 1))
    case(name, ONES, (0, -1), True, numpy=lambda x, f=f: f(x, (0, -1), keepdims=True), rtol=1e-4)
    case(name, ONES, 2, False, "float64", numpy=lambda x, f=f: f(x, 2, dtype=np.float64))
    case(name, WHOLE, 0, numpy=lambda x, f=f: f(x, 0))
    case(name, WHOLE, (), numpy=lambda x: x.astype(np.int64))
for name in ("mean", "max", "min"):
    f = getattr(np, name)
    case(name, X, numpy=lambda x, f=f: f(x), atol=1e-6)
    case(name, X, 1, numpy=lambda x, f=f: f(x, 1))
    case(name, X, [0, 2], True, numpy=lambda x, f=f: f(x, (0, 2), keepdims=True))
for name in ("any", "all"):
    f = getattr(np, name)
    case(name, WHOLE, numpy=lambda x, f=f: f(x))
    case(name, WHOLE, 1, True, numpy=lambda x, f=f: f(x, 1, keepdims=True))
case("var", X, 1, True, 0, numpy=lambda x: x.var(1, keepdims=True), rtol=1e-4)
case("std", X, numpy=lambda x: x.std(ddof=1), rtol=1e-4)
case("std", X, (1, 2), False, 2, numpy=lambda x: x.std((1, 2), ddof=2), rtol=1e-4)
case("var_mean", X, 1, numpy=lambda x: [x.var(1, ddof=1), x.mean(1)], rtol=1e-4)
case("std_mean", X, 1, True, 0, rtol=1e-4,
     numpy=lambda x: [x.std(1, keepdims=True), x.mean(1, keepdims=True)])
case("logsumexp", X, 1, True, torch=lambda x: torch.logsumexp(x, 1, True))
case("logsumexp", X, torch=lambda x: torch.logsumexp(x, (0, 1, 2)))
for name in ("argmax", "argmin"):
    f = getattr(np, name)
    case(name, X, numpy=lambda x, f=f: f(x))
    case(name, TIES, 1, True, numpy=lambda x, f=f: f(x, 1, keepdims=True))
case("softmax", X, 1, torch=lambda x: torch.softmax(x, 1))
case("softmax", X, -1, "float64", torch=lambda x: torch.softmax(x, -1, dtype=torch.float64))
case("log_softmax", X, 0, torch=lambda x: torch.log_softmax(x, 0))
case("softmax", X, torch=lambda x: torch.softmax(x, -1))
case("log_softmax", X, torch=lambda x: torch.log_softmax(x, -1))
case("softmin", X, 1, torch=lambda x: F.softmin(x, 1))
case("normalize", X, 1.0, 2, 1e-6, torch=lambda x: F.normalize(x, 1.0, 2, 1e-6))
case("normalize", X, torch=lambda x: F.normalize(x))
case("cumsum", X, 1, numpy=lambda x: np.cumsum(x, 1), atol=1e-5)
case("cumsum", WHOLE, -1, "int32", numpy=lambda x: np.cumsum(x, -1, np.int32))
case("cumprod", ONES, 1, numpy=lambda x: np.cumprod(x, 1))
case("logcumsumexp", X, 1, torch=lambda x: torch.logcumsumexp(x, 1), atol=1e-5)
case("cummax", TIES, 1, numpy=lambda x: [np.maximum.accumulate(x, 1), last(np.greater_equal, x, 1)])
case("cummin", TIES, 0, numpy=lambda x: [np.minimum.accumulate(x, 0), last(np.less_equal, x, 0)])


def sorting(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    return np.argsort(-x if descending else x, axis, kind="stable")


case("argsort", TIES, 1, numpy=lambda x: sorting(x, 1, False))
case("argsort", TIES, 0, True, numpy=lambda x: sorting(x, 0, True))
case("sort", X, 1, numpy=lambda x: [np.sort(x, 1), sorting(x, 1, False)])
case("sort", TIES, -1, True, numpy=lambda x: [-np.sort(-x, -1), sorting(x, -1, True)])
case("topk", X, 2, -1, torch=lambda x: torch.topk(x, 2, -1))
case("topk", X, 2, 1, False, torch=lambda x: torch.topk(x, 2, 1, False))
case("nonzero", WHOLE, numpy=lambda x: np.argwhere(x))
case("nonzero", WHOLE, 14, -1,
     numpy=lambda x: np.vstack([np.argwhere(x), np.full((14 - np.count_nonzero(x), 2), -1)]))
case("masked_select", X, X > 0.5, numpy=lambda x, m: x[m])
case("masked_select", WHOLE, WHOLE > 0, 10, 7,
     numpy=lambda x, m: np.concatenate([x[m], np.full(10 - m.sum(), 7)]))
case("multinomial", POSITIVE_WEIGHTS, 4, True,
     numpy=lambda w: np.array([[2, 2, 2, 2], [0, 0, 0, 0]]))
