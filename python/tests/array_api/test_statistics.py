"""Statistics, and the functions all, any and diff."""
import numpy as np
import pytest
from standard import BOOLS, BYTES, EMPTY, INTS, NUMBER, VECTOR, X, Dtype, F32, F64, case, check

import plugrad.array_api as xp

AXES = (None, 0, -1, (0, 1), ())
HOLLOW = np.zeros((2, 0, 3), np.float32)
CASES = [
    *(case(name, array, axis=axis, keepdims=keepdims)
      for name in ("sum", "prod", "max", "min", "all", "any")
      for array in (X, INTS.astype(np.int32), INTS, BYTES, X.astype(np.float64))
      for axis in AXES for keepdims in (False, True)),
    *(case(name, array, axis=axis, keepdims=keepdims) for name in ("mean", "var", "std")
      for array in (X, X.astype(np.float64)) for axis in AXES for keepdims in (False, True)),
    *(case(name, array) for array in (NUMBER, EMPTY, HOLLOW)
      for name in ("sum", "prod", "mean", "all", "any")),
    *(case(name, HOLLOW, axis=axis) for axis in (0, 2, (0, 2)) for name in ("max", "min", "sum")),
    *(case(name, BOOLS, axis=axis) for name in ("all", "any") for axis in AXES),
    case("sum", INTS, dtype=F32), case("sum", BYTES, dtype=Dtype("uint8")),
    case("prod", INTS, dtype=Dtype("int8")), case("sum", X, dtype=F64),
    *(case(name, X, axis=axis, correction=correction) for name in ("var", "std")
      for axis in (None, 0) for correction in (0, 1, 0.5, 2.0)),
    *(case(name, array, axis=axis, include_initial=include)
      for name in ("cumulative_sum", "cumulative_prod") for array in (X, INTS, BYTES, EMPTY)
      for axis in (0, -1) for include in (False, True)),
    case("cumulative_sum", VECTOR), case("cumulative_prod", VECTOR, include_initial=True),
    case("cumulative_sum", VECTOR, dtype=F32), case("cumulative_sum", VECTOR, dtype=Dtype("int8")),
    *(case("diff", array, n=n, axis=axis) for array in (X, INTS, BYTES, EMPTY)
      for n in (0, 1, 2, 7) for axis in (0, -1)),
    case("diff", X, prepend=X[:, :1], append=X),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case):
    check(case, 1e-4)


def test_sums_of_bools_count():
    x = xp.asarray(BOOLS, copy=True)
    assert xp.sum(x).dtype == xp.int64 and xp.sum(x).item() == BOOLS.sum()
    assert xp.cumulative_sum(x, axis=1).tolist() == BOOLS.cumsum(1).tolist()
    assert xp.diff(xp.asarray([True, False, False])).tolist() == [True, False]


def test_integers_do_not_overflow_in_sums():
    x = xp.full(3, 2**31 - 1, dtype=xp.int32)
    assert xp.sum(x).item() == 3 * (2**31 - 1)
    assert xp.sum(xp.full(3, 255, dtype=xp.uint8)).dtype == xp.uint64


def test_nan_is_the_largest_and_the_smallest():
    x = xp.asarray([1.0, float("nan"), 2.0])
    assert np.isnan(xp.max(x).item()) and np.isnan(xp.min(x).item())


@pytest.mark.parametrize("call", [
    lambda x: xp.max(xp.ones((0,))), lambda x: xp.min(xp.ones((0, 3)), axis=0),
    lambda x: xp.sum(x, axis=2), lambda x: xp.cumulative_sum(x), lambda x: xp.diff(x, n=-1),
    lambda x: xp.cumulative_prod(x, axis=4), lambda x: xp.diff(x, axis=4)])
def test_refused(call):
    with pytest.raises(ValueError):
        call(xp.asarray(X, copy=True))
