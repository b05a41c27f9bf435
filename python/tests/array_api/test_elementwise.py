"""Elementwise functions, with special values, wrapping integers and operands that broadcast."""
import operator

import numpy as np
import pytest
from standard import BOOLS, BYTES, INTS, NUMBER, X, case, check, check_bits

import plugrad as pg
import plugrad.array_api as xp

SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -3, 0.1, -0.3, 7.3, 100, -100,
           1e-10, 1e-30, -1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan]
UNARY = ("abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan "
         "log log10 log1p log2 negative positive reciprocal round sin sinh sqrt square tan tanh "
         "trunc signbit conj real").split()
BINARY = ("add subtract multiply divide pow atan2 hypot copysign logaddexp nextafter equal "
          "not_equal less less_equal greater greater_equal").split()
INTEGER_UNARY = ("abs ceil floor round trunc isfinite isinf isnan sign square negative positive "
                 "bitwise_invert").split()
INTEGER_BINARY = ("add subtract multiply floor_divide bitwise_and bitwise_or bitwise_xor maximum "
                  "minimum equal not_equal less less_equal greater greater_equal").split()
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
RTOL = {"float32": 1e-5, "float64": 1e-13}  # of pow and exp with large results: 80 ulp


def tensor(values: np.ndarray) -> pg.Tensor:
    return xp.asarray(values, copy=True)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.meshgrid(values, values)
    return first.ravel(), second.ravel()


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name, dtype):
    x = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(getattr(np, name)(x))
    check_bits(getattr(xp, name)(tensor(x)).numpy(), expected, RTOL[dtype])


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_special_values(name, dtype):
    a, b = pairs(np.array(SPECIAL, dtype))
    with np.errstate(all="ignore"):
        expected = np.asarray(getattr(np, name)(a, b))
    check_bits(getattr(xp, name)(tensor(a), tensor(b)).numpy(), expected, RTOL[dtype])


@pytest.mark.parametrize("dtype", RTOL)
def test_division_with_remainder(dtype):
    """Infinite quotients are infinite, as the standard allows, where NumPy has NaN."""
    a, b = pairs(np.array(SPECIAL, dtype))
    with np.errstate(all="ignore"):
        check_bits(xp.remainder(tensor(a), tensor(b)).numpy(), np.remainder(a, b), 0)
        is_finite = np.isfinite(a)
        expected = np.where(is_finite, np.floor_divide(a, b), a / b)
        found = xp.floor_divide(tensor(a), tensor(b)).numpy()
        np.testing.assert_allclose(found, expected)


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.mod,
             operator.floordiv, operator.pow]


def floor_divided(a, b):
    """Infinite quotients as in test_division_with_remainder."""
    return np.where(np.isfinite(a), np.floor_divide(a, b), a / b)


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("function", OPERATORS, ids=lambda each: each.__name__)
def test_operators_with_special_numbers(function, dtype):
    x = np.array(SPECIAL, dtype)
    # NumPy's ** takes roots of -inf and -0 where the exponent is the number 0.5.
    expected = {operator.floordiv: floor_divided, operator.pow: np.power}.get(function, function)
    rtol = RTOL[dtype] if function is operator.pow else 0
    for number in (*SPECIAL, 0, 1, -1, 2, 3, -3, 1 / 3, -0.5):
        numbers = np.full_like(x, number)
        with np.errstate(all="ignore"):
            left, right = expected(x, numbers), expected(numbers, x)
        check_bits(function(tensor(x), number).numpy(), left, rtol)
        check_bits(function(number, tensor(x)).numpy(), right, rtol)


@pytest.mark.parametrize("dtype", ["float16", *RTOL])
def test_moved_elements_keep_the_sign_of_zero(dtype):
    x = np.array([[-0.0, 1, -2], [3, -0.0, 0.0], [np.nan, -0.0, -5]], dtype)
    rows, places = np.array([2, 0]), np.array([[2, 0], [1, 1], [0, 0]])
    y = tensor(x)
    for found, expected in (
            (xp.take(y, tensor(rows), axis=0), x[rows]),
            (xp.take(y, tensor(rows), axis=1), x[:, rows]),
            (xp.take_along_axis(y, tensor(places), axis=1), np.take_along_axis(x, places, 1)),
            (xp.sort(y, axis=1), np.sort(x, axis=1)),
            (xp.repeat(y, tensor(np.array([1, 2, 0])), axis=1), np.repeat(x, [1, 2, 0], 1)),
            (xp.unique_values(y[:2]), np.unique(x[:2])),
            (y[y == 0], x[x == 0]), (y[tensor(rows), tensor(rows)], x[rows, rows]),
            (xp.concat([y, y], axis=None), np.concatenate([x, x], None)),
            (xp.roll(y, 1), np.roll(x, 1)), (xp.tril(y), np.tril(x)), (xp.flip(y), np.flip(x)),
            (xp.tile(y, (2, 2)), np.tile(x, (2, 2)))):
        check_bits(found.numpy(), expected, 0)


@pytest.mark.parametrize("dtype", RTOL)
def test_extrema_and_signs(dtype):
    a, b = pairs(np.array(SPECIAL, dtype))
    for name in ("maximum", "minimum"):  # of 0 and -0 either may be the result
        np.testing.assert_array_equal(getattr(xp, name)(tensor(a), tensor(b)).numpy(),
                                      getattr(np, name)(a, b))
    np.testing.assert_array_equal(xp.sign(tensor(a)).numpy(), np.sign(a))
    assert xp.imag(tensor(a)).numpy().tolist() == [0] * len(a)


def integers(dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    values = {limits.min, limits.min + 1, 0, 1, 2, 3, 7, limits.max - 1, limits.max}
    return np.array(sorted(values | ({-7, -2, -1} if limits.min else set())), dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    values = integers(dtype)
    a, b = pairs(values)
    with np.errstate(all="ignore"):
        for name in INTEGER_UNARY:
            check_bits(getattr(xp, name)(tensor(values)).numpy(),
                       np.asarray(getattr(np, name)(values)), 0)
        for name in INTEGER_BINARY:
            check_bits(getattr(xp, name)(tensor(a), tensor(b)).numpy(),
                       np.asarray(getattr(np, name)(a, b)), 0)
        is_divisor = b != 0
        check_bits(xp.remainder(tensor(a[is_divisor]), tensor(b[is_divisor])).numpy(),
                   np.remainder(a[is_divisor], b[is_divisor]), 0)
        is_small = (b >= 0) & (b < 8)
        for name in ("pow", "bitwise_left_shift", "bitwise_right_shift"):
            check_bits(getattr(xp, name)(tensor(a[is_small]), tensor(b[is_small])).numpy(),
                       getattr(np, name)(a[is_small], b[is_small]), 0)


def test_quotients_by_zero():
    x = xp.asarray([7, -7, 0])
    assert xp.floor_divide(x, 0).tolist() == [0, 0, 0]
    assert xp.remainder(x, 0).tolist() == [7, -7, 0]
    assert xp.divide(x, 0).tolist()[:2] == [np.inf, -np.inf]


CASES = [
    *(case(name, *operands) for name in (
        "add multiply subtract divide pow maximum atan2 hypot copysign logaddexp remainder "
        "floor_divide less").split()
      for operands in ((abs(X), X[:1]), (abs(X), 2.0), (2.0, X), (NUMBER, X),
                       (abs(X).astype(np.float64), X))),
    *(case(name, *operands) for name in "add multiply bitwise_and maximum floor_divide".split()
      for operands in ((INTS, 3), (3, INTS), (BYTES, INTS.astype(np.int8) | 1),
                       (BYTES, np.array(2, np.uint16)))),
    *(case(name, *operands) for name in "logical_and logical_or logical_xor".split()
      for operands in ((BOOLS, ~BOOLS[0]), (BOOLS, True), (False, BOOLS))),
    case("logical_not", BOOLS), case("bitwise_invert", BOOLS),
    *(case("clip", X, *bounds) for bounds in (
        (), (-.5, None), (None, .5), (-.5, .5), (X * 0, .5), (X * 0 - .1, X * 0 + .1),
        (X[0] * 0, None))),
    case("clip", INTS, -2, 2), case("clip", BYTES, 1, 3),
    case("clip", np.array([3, np.nan, 0], np.float32), 0., 2.),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operands(case):
    check(case)


def test_results_are_copies():
    x = xp.asarray([1.0, 2.0])
    for function in (xp.positive, xp.conj, xp.real, xp.clip, xp.round, lambda each: +each):
        made = function(x)
        made[0] = 9
        assert x.tolist() == [1, 2]


def test_gradients_flow():
    x = pg.Tensor([0.5, 2.0], requires_grad=True)
    xp.sum(xp.hypot(x, 2.0) + xp.atan2(x, 1.0)).backward()
    expected = [each / (each**2 + 4) ** 0.5 + 1 / (1 + each**2) for each in (0.5, 2.0)]
    np.testing.assert_allclose(x.grad.numpy(), expected, 1e-5)


def test_refused():
    with pytest.raises(TypeError, match="one of the operands must be a tensor"):
        xp.add(1, 2)
    with pytest.raises(TypeError, match="takes floats"):
        xp.signbit(xp.asarray([1]))
    with pytest.raises(TypeError, match="neither a tensor nor a number"):
        xp.atan2(xp.ones(2), "1")
