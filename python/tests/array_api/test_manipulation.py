"""Shapes, joins and parts."""
import numpy as np
import pytest
from standard import BYTES, EMPTY, INTS, NUMBER, VECTOR, X, Y, case, check

import plugrad.array_api as xp

WITH_ONES = X.reshape(1, 3, 1, 4)
COUNTS = np.array([1, 0, 2])
CASES = [
    case("broadcast_to", X, (2, 3, 4)), case("broadcast_to", NUMBER, (2,)),
    case("broadcast_to", EMPTY, (2, 0, 3)),
    case("broadcast_arrays", X, X[:1], X[:, :1]), case("broadcast_arrays", NUMBER, EMPTY),
    case("concat", [X, X]), case("concat", [X, Y], axis=None), case("concat", [X, X], axis=-1),
    case("concat", [BYTES, BYTES.astype(np.int32)]), case("concat", [EMPTY, EMPTY]),
    case("concat", (VECTOR, VECTOR.astype(np.int64)), axis=0),
    *(case("expand_dims", X, axis=axis) for axis in (0, 1, 2, -1, -3)),
    *(case("flip", X, axis=axis) for axis in (None, 0, -1, (0, 1), ())), case("flip", NUMBER),
    case("moveaxis", BYTES, 0, -1), case("moveaxis", BYTES, (0, 1), (-1, 0)),
    case("moveaxis", BYTES, 2, 0), case("permute_dims", BYTES, (2, 0, 1)),
    case("permute_dims", BYTES, (-1, 0, 1)), case("permute_dims", NUMBER, ()),
    *(case("repeat", X, count, axis=0) for count in (0, 1, 3, COUNTS, np.array(2), np.array([2]))),
    case("repeat", X, 2), case("repeat", X, np.array([1, 2, 0, 3]), axis=-1),
    case("repeat", EMPTY, np.array([], np.int64), axis=0),
    *(case("reshape", X, shape) for shape in ((12,), (-1,), (4, -1), (2, -1, 3), (3, 4))),
    case("reshape", X, (2, 6), copy=True), case("reshape", EMPTY, (3, 0)),
    case("reshape", NUMBER, (1, 1)),
    *(case("roll", X, shift, axis=axis) for shift, axis in (
        (1, None), (-2, 0), (1, 1), (5, -1), ((1, 2), (0, 1)), ((1, 2), (0, 0)), (2, (0, 1)))),
    case("roll", EMPTY, 2, axis=0), case("roll", NUMBER, 2),
    *(case("squeeze", WITH_ONES, axis=axis) for axis in (0, 2, (0, 2), -2, (0, -2), ())),
    *(case("stack", [X, X], axis=axis) for axis in (0, 1, -1, 2)),
    case("stack", [BYTES, BYTES.astype(np.int16)]),
    *(case("tile", X, counts) for counts in (
        (2,), (2, 1), (1, 3), (2, 2, 2), (), (0, 1), (0,))),
    case("tile", NUMBER, (2,)), case("tile", EMPTY, (2, 2)),
    *(case("unstack", X, axis=axis) for axis in (0, 1, -1)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case):
    check(case, 0, 0)


@pytest.mark.parametrize("call", [
    lambda x: xp.broadcast_to(x, (3,)), lambda x: xp.broadcast_arrays(x, xp.ones(3)),
    lambda x: xp.concat([x, x], axis=2), lambda x: xp.expand_dims(x, axis=3),
    lambda x: xp.flip(x, axis=2), lambda x: xp.moveaxis(x, 3, 0),
    lambda x: xp.moveaxis(x, (0, 1), (0,)), lambda x: xp.permute_dims(x, (0, 0)),
    lambda x: xp.repeat(x, xp.asarray([1, 2]), axis=0), lambda x: xp.repeat(x, -1),
    lambda x: xp.reshape(x, (5, 2)), lambda x: xp.roll(x, (1, 2)),
    lambda x: xp.roll(x, (1, 2), axis=(0,)), lambda x: xp.squeeze(x, axis=0),
    lambda x: xp.squeeze(xp.ones((1, 1)), axis=(0, 0)), lambda x: xp.stack([x, xp.ones(2)]),
    lambda x: xp.unstack(x, axis=2)])
def test_refused(call):
    with pytest.raises(ValueError):
        call(xp.asarray(X, copy=True))


def test_values_and_views():
    x = xp.asarray(INTS, copy=True)
    for made in (xp.reshape(x, x.shape, copy=True), xp.concat([x]), xp.tile(x, (1, 1))):
        made[...] = 9
        assert x.tolist() == INTS.tolist()
    for number, made in enumerate([xp.reshape(x, x.shape), xp.broadcast_to(x, x.shape), xp.squeeze(x, ()),
                                   xp.permute_dims(x, (0, 1))]):
        made[...] = number
        assert x.tolist() == np.full_like(INTS, number).tolist()
