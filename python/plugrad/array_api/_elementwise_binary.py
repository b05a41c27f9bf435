"""Functions of the elements of two tensors, of which one may be a number."""
from __future__ import annotations

from .._plugrad import Tensor, bool_, where
from ._constants import inf, nan, pi
from ._dtypes import Number, iinfo
from ._elementwise_unary import bits, signbit
from ._operands import floats, pair, promoted_pair, tensor_of


def add(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Sums of the elements of both."""
    a, b = pair("add", x1, x2)
    return a + b


def subtract(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Differences x1 - x2."""
    a, b = pair("subtract", x1, x2)
    return a - b


def multiply(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Products; integers wrap."""
    a, b = pair("multiply", x1, x2)
    return a * b


def divide(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Quotients, which are floats."""
    a, b = pair("divide", x1, x2)
    return a / b


def equal(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Whether elements are equal; NaN equals nothing."""
    a, b = pair("equal", x1, x2)
    return a == b


def not_equal(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Whether elements differ."""
    a, b = pair("not_equal", x1, x2)
    return a != b


def greater(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 > x2."""
    a, b = pair("greater", x1, x2)
    return a > b


def greater_equal(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 >= x2."""
    a, b = pair("greater_equal", x1, x2)
    return a >= b


def less(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 < x2."""
    a, b = pair("less", x1, x2)
    return a < b


def less_equal(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 <= x2."""
    a, b = pair("less_equal", x1, x2)
    return a <= b


def bitwise_and(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Bits that are in both."""
    a, b = pair("bitwise_and", x1, x2)
    return a & b


def bitwise_or(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Bits that are in one or both."""
    a, b = pair("bitwise_or", x1, x2)
    return a | b


def bitwise_xor(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Bits that are in one of both."""
    a, b = pair("bitwise_xor", x1, x2)
    return a ^ b


def copysign(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """|x1| with the sign of x2."""
    a, b = pair("copysign", x1, x2)
    return a.copysign(b)


def logaddexp(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """log(exp(x1) + exp(x2)), without overflow."""
    a, b = pair("logaddexp", x1, x2)
    return a.logaddexp(b)


def maximum(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The larger of both; NaN if either is."""
    a, b = pair("maximum", x1, x2)
    return a.maximum(b)


def minimum(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The smaller of both; NaN if either is."""
    a, b = pair("minimum", x1, x2)
    return a.minimum(b)


def atan2(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The angles of the points (x2, x1) to the positive axis of x2, in [-pi, pi]."""
    y, x = promoted_pair("atan2", x1, x2)
    across, along = y.abs(), x.abs()
    # The angle to the nearer axis is that of a quotient of at most 1; two infinities are 1 apart.
    larger, smaller = along.maximum(across), along.minimum(across)
    is_equal = larger == smaller
    quotient = where(is_equal, where(larger == 0, 0.0, 1.0).cast(y.dtype), smaller / larger)
    angle = quotient.atan()
    angle = where(across > along, pi / 2 - angle, angle)
    angle = where(signbit(x), pi - angle, angle)
    return where(x.isnan() | y.isnan(), nan, angle).copysign(y)


def bitwise_left_shift(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 * 2^x2; bits that do not fit are lost."""
    a, b = promoted_pair("bitwise_left_shift", x1, x2)
    return a << b


def bitwise_right_shift(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 / 2^x2, rounded down."""
    a, b = promoted_pair("bitwise_right_shift", x1, x2)
    return a >> b


def clip(x: Tensor, /, min: Tensor | Number | None = None,
         max: Tensor | Number | None = None) -> Tensor:
    """The elements, or the bound that they exceed; `max` where min > max. Dtype: that of x."""
    clipped = x
    if min is not None:
        clipped = clipped.maximum(tensor_of(min, x))
    if max is not None:
        clipped = clipped.minimum(tensor_of(max, x))
    return x.clone() if clipped is x else clipped.cast(x.dtype)


def floor_divide(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Quotients rounded down; of an integer by 0: 0."""
    a, b = promoted_pair("floor_divide", x1, x2)
    return a.floor_div(b)


def hypot(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The roots of x1² + x2², without overflow."""
    a, b = promoted_pair("hypot", x1, x2)
    a, b = floats(a).abs(), floats(b).abs()
    larger, smaller = a.maximum(b), a.minimum(b)
    quotient = smaller / where(larger == 0, 1.0, larger)
    is_infinite = a.isinf() | b.isinf()
    return where(is_infinite, inf, larger * (quotient.square() + 1.0).sqrt())


def logical_and(x1: Tensor | bool, x2: Tensor | bool, /) -> Tensor:
    """Whether both are True."""
    a, b = pair("logical_and", x1, x2)
    return truth(a) & truth(b)


def logical_or(x1: Tensor | bool, x2: Tensor | bool, /) -> Tensor:
    """Whether one or both are True."""
    a, b = pair("logical_or", x1, x2)
    return truth(a) | truth(b)


def logical_xor(x1: Tensor | bool, x2: Tensor | bool, /) -> Tensor:
    """Whether one of both is True."""
    a, b = pair("logical_xor", x1, x2)
    return truth(a) ^ truth(b)


def truth(x: Tensor) -> Tensor:
    return x if x.dtype == bool_ else x != 0


def nextafter(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The floats next to x1 in the direction of x2."""
    a, b = promoted_pair("nextafter", x1, x2)
    number = bits(a)
    # The bits of floats of one sign are in the order of their magnitudes.
    moved = number + where((a < b) == (a > 0), 1, -1)
    smallest = where(b > 0, 1, 1 + iinfo(number).min)
    result = where(a == 0, smallest, moved).cast(number.dtype).bitcast(a.dtype)
    return where(a.isnan() | b.isnan(), nan, where(a == b, b, result))


def pow(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 to the power of x2; integers wrap."""
    a, b = promoted_pair("pow", x1, x2)
    return a.pow(b)


def remainder(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The remainders of floor_divide, with the sign of x2; of an integer by 0: x1."""
    a, b = promoted_pair("remainder", x1, x2)
    return a.mod(b)
