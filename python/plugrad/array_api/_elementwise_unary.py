"""Functions of the elements of tensors."""
from __future__ import annotations

from .._plugrad import Tensor, int8, int16, int32, int64
from ..errors import UserTypeError


def abs(x: Tensor, /) -> Tensor:
    """Magnitudes."""
    return x.abs()


def acos(x: Tensor, /) -> Tensor:
    """Inverse cosines, in [0, pi]; NaN outside [-1, 1]."""
    return x.acos()


def acosh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic cosines; NaN below 1."""
    return x.acosh()


def asin(x: Tensor, /) -> Tensor:
    """Inverse sines, in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    return x.asin()


def asinh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic sines."""
    return x.asinh()


def atan(x: Tensor, /) -> Tensor:
    """Inverse tangents, in [-pi/2, pi/2]."""
    return x.atan()


def atanh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic tangents; NaN outside [-1, 1]."""
    return x.atanh()


def ceil(x: Tensor, /) -> Tensor:
    """Rounds up; integers are unchanged."""
    return x.ceil()


def cos(x: Tensor, /) -> Tensor:
    """Cosines of radians."""
    return x.cos()


def cosh(x: Tensor, /) -> Tensor:
    """Hyperbolic cosines."""
    return x.cosh()


def exp(x: Tensor, /) -> Tensor:
    """e to the power of x."""
    return x.exp()


def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, accurate near 0."""
    return x.expm1()


def floor(x: Tensor, /) -> Tensor:
    """Rounds down; integers are unchanged."""
    return x.floor()


def isfinite(x: Tensor, /) -> Tensor:
    """Whether elements are neither infinite nor NaN."""
    return x.isfinite()


def isinf(x: Tensor, /) -> Tensor:
    """Whether elements are infinite."""
    return x.isinf()


def isnan(x: Tensor, /) -> Tensor:
    """Whether elements are NaN."""
    return x.isnan()


def log(x: Tensor, /) -> Tensor:
    """Natural logarithms; NaN below 0, -inf at 0."""
    return x.log()


def log10(x: Tensor, /) -> Tensor:
    """Logarithms of base 10."""
    return x.log10()


def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x), accurate near 0."""
    return x.log1p()


def log2(x: Tensor, /) -> Tensor:
    """Logarithms of base 2."""
    return x.log2()


def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x."""
    return x.reciprocal()


def round(x: Tensor, /) -> Tensor:
    """The nearest integers; halves to even."""
    return x.round()


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN of NaN."""
    return x.sign()


def sin(x: Tensor, /) -> Tensor:
    """Sines of radians."""
    return x.sin()


def sinh(x: Tensor, /) -> Tensor:
    """Hyperbolic sines."""
    return x.sinh()


def sqrt(x: Tensor, /) -> Tensor:
    """Square roots; NaN below -0."""
    return x.sqrt()


def square(x: Tensor, /) -> Tensor:
    """x * x; integers wrap."""
    return x.square()


def tan(x: Tensor, /) -> Tensor:
    """Tangents of radians."""
    return x.tan()


def tanh(x: Tensor, /) -> Tensor:
    """Hyperbolic tangents."""
    return x.tanh()


def trunc(x: Tensor, /) -> Tensor:
    """Rounds towards 0; integers are unchanged."""
    return x.trunc()


def bitwise_invert(x: Tensor, /) -> Tensor:
    """The opposite bits; of a bool tensor, logical not."""
    return ~x


def conj(x: Tensor, /) -> Tensor:
    """The conjugates, which are the real numbers themselves."""
    return x.clone()


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts of real numbers: zeros."""
    return x.zeros_like()


def logical_not(x: Tensor, /) -> Tensor:
    """Whether elements are False."""
    return x.logical_not()


def negative(x: Tensor, /) -> Tensor:
    """-x; integers wrap."""
    return -x


def positive(x: Tensor, /) -> Tensor:
    """A copy of x."""
    return x.clone()


def real(x: Tensor, /) -> Tensor:
    """The real parts, which are the real numbers themselves."""
    return x.clone()


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit of a float is set: of -0 and of negative numbers."""
    return bits(x) < 0


def bits(x: Tensor) -> Tensor:
    """The bits of floats as signed integers of the same size."""
    if not x.dtype.is_floating_point:
        raise UserTypeError(f"[signbit] takes floats, not {x.dtype}; cast it")
    return x.bitcast({1: int8, 2: int16, 4: int32, 8: int64}[x.dtype.itemsize])
