"""New tensors, and random ones by what must hold of them."""
import numpy as np

from .harness import case, v

X = v(3, 4)


def random(shape: tuple[int, ...], dtype: str, low: float, high: float, mean: float = np.nan,
           whole: bool = False, slack: float = 0.2):
    """The values lie in [low, high), are not all equal, and have about this mean."""
    def check(result: object) -> None:
        values = result.numpy()  # type: ignore[attr-defined]
        assert values.shape == shape and values.dtype == dtype
        assert values.min() >= low and values.max() <= high
        assert len(np.unique(values)) > 1
        assert np.isnan(mean) or abs(values.mean() - mean) < slack
        assert not whole or (values == np.round(values)).all()
    return check


case("zeros", (2, 3), "int32", numpy=lambda: np.zeros((2, 3), np.int32))
case("ones", (2, 3), numpy=lambda: np.ones((2, 3), np.float32))
case("ones", 4, "float64", "CPU", numpy=lambda: np.ones(4))
case("empty", (2, 3), numpy=lambda: np.zeros((2, 3), np.float32))
case("full", (2, 2), 7, numpy=lambda: np.full((2, 2), 7, np.int32))
case("full", (2, 2), 7, "float32", "CPU", numpy=lambda: np.full((2, 2), 7, np.float32))
case("zeros_like", X, numpy=np.zeros_like)
case("ones_like", X, "int64", numpy=lambda x: np.ones_like(x, np.int64))
case("empty_like", X, "int8", numpy=lambda x: np.zeros_like(x, np.int8))
case("full_like", X, 2, "float64", numpy=lambda x: np.full_like(x, 2, np.float64))
case("arange", 5, numpy=lambda: np.arange(5, dtype=np.int32))
case("arange", 2.5, "float64", names=("stop", "dtype"), numpy=lambda: np.arange(2.5))
case("arange", 1, 10, 3, names=("start", "stop", "step"), numpy=lambda: np.arange(1, 10, 3))
case("arange", 1, 0, -0.25, "float32", names=("start", "stop", "step", "dtype"),
     numpy=lambda: np.arange(1, 0, -0.25, np.float32))
case("linspace", 0.0, 1.0, 5, numpy=lambda: np.linspace(0, 1, 5, dtype=np.float32))
case("eye", 3, numpy=lambda: np.eye(3, dtype=np.float32))
case("eye", 2, 4, "int32", numpy=lambda: np.eye(2, 4, dtype=np.int32))

BIG = (40, 50)
case("rand", BIG, check=random(BIG, "float32", 0, 1, 0.5, slack=0.05))
case("randn", BIG, "float64", check=random(BIG, "float64", -6, 6, 0.0))
case("rand_like", X, check=random((3, 4), "float32", 0, 1))
case("randn_like", X, "float64", check=random((3, 4), "float64", -6, 6))
case("uniform", BIG, -3.0, -1.0, check=random(BIG, "float32", -3, -1, -2.0))
case("normal", BIG, 10.0, 0.5, check=random(BIG, "float32", 6, 14, 10.0))
case("randint", BIG, -2, 3, check=random(BIG, "int32", -2, 2, 0.0, True))
case("kaiming_uniform", BIG, 0.0, check=random(BIG, "float32", -(6 / 50)**0.5, (6 / 50)**0.5, 0.0))
case("kaiming_normal", BIG, 0.0, check=random(BIG, "float32", -1.5, 1.5, 0.0))
case("glorot_uniform", BIG, check=random(BIG, "float32", -(6 / 90)**0.5, (6 / 90)**0.5, 0.0))
case("scaled_uniform", BIG, check=random(BIG, "float32", -2000**-0.5, 2000**-0.5, 0.0, slack=0.01))


def permutation(result: object) -> None:
    assert sorted(result.tolist()) == list(range(20))  # type: ignore[attr-defined]


case("randperm", 20, check=permutation)
