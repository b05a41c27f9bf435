"""Operations element by element."""
import math

import numpy as np

from .harness import case, ints, torch, v

F = torch.nn.functional if torch else None
SMALL = v(3, 5)
POSITIVE = v(3, 5, low=0.1, high=4.0)
UNIT = v(3, 5, low=-0.95, high=0.95)
SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 2.5], np.float32)
WHOLE = ints(3, 5)

for name in ("abs", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "floor", "sign", "sin", "sinh",
             "square", "tan", "tanh", "trunc"):
    case(name, SMALL, numpy=getattr(np, name))
case("round", np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4], np.float32), numpy=np.round)
case("abs", WHOLE, numpy=np.abs)
case("sign", WHOLE, numpy=np.sign)
case("square", WHOLE, numpy=np.square)
case("exp", WHOLE, numpy=lambda x: np.exp(x.astype(np.float32)))
case("asinh", SMALL, numpy=np.arcsinh)
case("acosh", v(3, 5, low=1.1, high=5.0), numpy=np.arccosh)
case("asin", UNIT, numpy=np.arcsin)
case("acos", UNIT, numpy=np.arccos)
case("atan", SMALL, numpy=np.arctan)
case("atanh", UNIT, numpy=np.arctanh)
for name in ("log", "log10", "log1p", "log2", "sqrt", "reciprocal"):
    case(name, POSITIVE, numpy=getattr(np, name))
case("rsqrt", POSITIVE, numpy=lambda x: 1 / np.sqrt(x))
case("erf", SMALL, torch=lambda x: torch.erf(x), atol=2e-6)
for name in ("isnan", "isinf", "isposinf", "isneginf", "isfinite"):
    case(name, SPECIAL, numpy=getattr(np, name))
case("logical_not", WHOLE, numpy=np.logical_not)

case("relu", SMALL, numpy=lambda x: np.maximum(x, 0))
case("relu6", v(3, 5, low=-3, high=9), numpy=lambda x: np.clip(x, 0, 6))
case("leaky_relu", SMALL, 0.2, torch=lambda x: F.leaky_relu(x, 0.2))
case("elu", SMALL, 1.5, torch=lambda x: F.elu(x, 1.5))
case("celu", SMALL, 1.5, torch=lambda x: F.celu(x, 1.5))
case("selu", SMALL, torch=lambda x: F.selu(x))
case("sigmoid", SMALL, torch=lambda x: torch.sigmoid(x))
case("logsigmoid", SMALL, torch=lambda x: F.logsigmoid(x))
case("silu", SMALL, torch=lambda x: F.silu(x))
case("swish", SMALL, torch=lambda x: F.silu(x))
case("mish", SMALL, torch=lambda x: F.mish(x))
case("gelu", SMALL, torch=lambda x: F.gelu(x, approximate="tanh"))
case("gelu", SMALL, False, torch=lambda x: F.gelu(x))
case("quick_gelu", SMALL, numpy=lambda x: x / (1 + np.exp(-1.702 * x)))
case("hardsigmoid", SMALL, torch=lambda x: F.hardsigmoid(x))
case("hardsigmoid", SMALL, 0.2, 0.4, numpy=lambda x: np.clip(0.2 * x + 0.4, 0, 1))
case("hardswish", v(3, 5, low=-5, high=5), torch=lambda x: F.hardswish(x))
case("hardtanh", SMALL, -0.5, 0.75, torch=lambda x: F.hardtanh(x, -0.5, 0.75))
case("softplus", SMALL, 2.0, torch=lambda x: F.softplus(x, beta=2.0))
case("softsign", SMALL, torch=lambda x: F.softsign(x))
case("prelu", v(2, 3, 4), v(3, low=0.1, high=0.9), torch=lambda x, w: F.prelu(x, w))
case("dropout", SMALL, 0.5, False, numpy=lambda x: x)

OTHER = v(3, 5, low=0.3, high=2.5, seed=3)
case("pow", POSITIVE, OTHER, numpy=np.power)
case("pow", SMALL, 3, numpy=lambda x: x**3)
case("div", SMALL, OTHER, numpy=np.divide)
case("div", SMALL, OTHER, "floor", numpy=lambda x, y: np.floor(x / y))
case("div", WHOLE, np.int32(3), "trunc", numpy=lambda x: np.trunc(x / 3).astype(np.int32))
case("floor_div", WHOLE, 3, numpy=lambda x: x // 3)
case("trunc_div", WHOLE, 3, numpy=lambda x: np.trunc(x / 3).astype(np.int32))
case("mod", WHOLE, 3, numpy=lambda x: x % 3)
case("mod", SMALL, OTHER, numpy=np.mod)
case("fmod", WHOLE, 3, numpy=lambda x: np.fmod(x, 3))
case("fmod", SMALL, OTHER, numpy=np.fmod)
case("maximum", SMALL, OTHER, numpy=np.maximum)
case("minimum", SMALL, OTHER[:1], numpy=np.minimum)
case("maximum", SMALL, 0.5, numpy=lambda x: np.maximum(x, np.float32(0.5)))
case("copysign", OTHER, SMALL, numpy=np.copysign)
case("logaddexp", SMALL, OTHER, numpy=np.logaddexp)
NEAR = (SMALL * (1 + 1e-6)).astype(np.float32)
case("isclose", SMALL, NEAR, 1e-4, 1e-8, True, numpy=lambda x, y: np.isclose(x, y, 1e-4))
case("isclose", SPECIAL, SPECIAL, 1e-5, 1e-8, True,
     numpy=lambda x, y: np.isclose(x, y, equal_nan=True))
case("allclose", SMALL, NEAR, 1e-4, 1e-8, False, numpy=lambda x, y: np.bool_(True))
case("allclose", SMALL, OTHER, numpy=lambda x, y: np.bool_(False))
MASK = ints(3, 5) > 0
case("where", MASK, SMALL, OTHER, numpy=np.where)
case("where", MASK, SMALL, 0.0, numpy=lambda m, x: np.where(m, x, np.float32(0)))
case("masked_fill", SMALL, MASK, -9.0, numpy=lambda x, m: np.where(m, np.float32(-9), x))
case("lerp", SMALL, OTHER, 0.25, numpy=lambda x, y: x + np.float32(0.25) * (y - x))
case("lerp", SMALL, OTHER, UNIT, numpy=lambda x, y, w: x + w * (y - x))
for name in ("clamp", "clip"):
    case(name, SMALL, -0.5, 0.75, numpy=lambda x: np.clip(x, np.float32(-0.5), np.float32(0.75)))
    case(name, SMALL, 0.0, numpy=lambda x: np.maximum(x, 0))

case("cast", SMALL, "int32", numpy=lambda x: x.astype(np.int32))
case("cast", WHOLE, "float64", numpy=lambda x: x.astype(np.float64))
case("cast", WHOLE, bool, numpy=lambda x: x.astype(bool))
case("bitcast", SMALL, "int32", numpy=lambda x: x.view(np.int32))
case("to", SMALL, np.float16, names=("target",), numpy=lambda x: x.astype(np.float16))
case("to", SMALL, "CPU", names=("target",), numpy=lambda x: x)
for name in ("clone", "contiguous", "detach", "numpy"):
    case(name, SMALL, numpy=lambda x: x)
case("tolist", SMALL, numpy=lambda x: x)
case("item", np.array([[3.5]], np.float32), numpy=lambda x: np.float64(x[0, 0]))
