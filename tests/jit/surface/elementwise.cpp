#include "jit/surface/families.h"

namespace plugrad {

namespace {

using Ts = std::vector<Tensor>;
using T = Tensor;

Member of(std::string name, Tensor (Tensor::*function)() const, bool has_gradient = true) {
  return {std::move(name), [function](const T& x, const T&) { return Ts{(x.*function)()}; },
          has_gradient};
}

Member with(std::string name, std::function<Tensor(const T&, const T&)> function,
            bool has_gradient = true) {
  return {std::move(name),
          [function = std::move(function)](const T& x, const T& at) { return Ts{function(x, at)}; },
          has_gradient};
}

Family functions_of_one() {
  return {"elementwise functions",
          {of("neg", &T::operator-),
           of("reciprocal", &T::reciprocal),
           of("sqrt", &T::sqrt),
           of("rsqrt", &T::rsqrt),
           of("square", &T::square),
           of("exp", &T::exp),
           of("exp2", &T::exp2),
           of("log", &T::log),
           of("log2", &T::log2),
           of("log10", &T::log10),
           of("log1p", &T::log1p),
           of("expm1", &T::expm1),
           of("sin", &T::sin),
           of("cos", &T::cos),
           of("tan", &T::tan),
           of("asin", &T::asin),
           of("acos", &T::acos),
           of("atan", &T::atan),
           of("sinh", &T::sinh),
           of("cosh", &T::cosh),
           of("tanh", &T::tanh),
           of("asinh", &T::asinh),
           of("acosh", &T::acosh),
           of("atanh", &T::atanh),
           of("erf", &T::erf),
           of("abs", &T::abs),
           of("sign", &T::sign),
           of("trunc", &T::trunc),
           of("floor", &T::floor),
           of("ceil", &T::ceil),
           of("round", &T::round),
           of("isnan", &T::isnan, false),
           of("isinf", &T::isinf, false),
           of("isposinf", &T::isposinf, false),
           of("isneginf", &T::isneginf, false),
           of("isfinite", &T::isfinite, false),
           with(
               "not", [](const T& x, const T& at) { return (x > 1).logical_not() ^ (!(at > 1)); },
               false),
           with("bits of one", [](const T&, const T& at) { return ~at; }, false)}};
}

Family activations() {
  return {"activations",
          {of("relu", &T::relu),
           of("relu6", &T::relu6),
           of("selu", &T::selu),
           of("sigmoid", &T::sigmoid),
           of("logsigmoid", &T::logsigmoid),
           of("silu", &T::silu),
           of("mish", &T::mish),
           of("quick_gelu", &T::quick_gelu),
           of("hardswish", &T::hardswish),
           of("softsign", &T::softsign),
           with("leaky_relu", [](const T& x, const T&) { return x.leaky_relu(); }),
           with("elu", [](const T& x, const T&) { return x.elu(); }),
           with("celu", [](const T& x, const T&) { return x.celu(2); }),
           with("gelu", [](const T& x, const T&) { return x.gelu(); }),
           with("gelu of erf", [](const T& x, const T&) { return x.gelu(false); }),
           with("hardsigmoid", [](const T& x, const T&) { return x.hardsigmoid(); }),
           with("hardtanh", [](const T& x, const T&) { return x.hardtanh(); }),
           with("softplus", [](const T& x, const T&) { return x.softplus(); }),
           with("prelu", [](const T& x, const T&) { return x.prelu(T(0.3)); }),
           with("clamp", [](const T& x, const T&) { return x.clamp(-1, 2); })}};
}

Family functions_of_two() {
  return {
      "functions of two",
      {with("add", [](const T& x, const T& at) { return x + at; }),
       with("sub", [](const T& x, const T& at) { return at - x; }),
       with("mul", [](const T& x, const T& at) { return x * at; }),
       with("div", [](const T& x, const T& at) { return x / (at + 1); }),
       with("pow", [](const T& x, const T& at) { return x.abs().pow(at % 3 + 0.5); }),
       with("maximum", [](const T& x, const T& at) { return x.maximum(at); }),
       with("minimum", [](const T& x, const T& at) { return x.minimum(at); }),
       with(
           "floor_div", [](const T& x, const T& at) { return x.floor_div(at + 1); }, false),
       with(
           "trunc_div", [](const T& x, const T& at) { return x.trunc_div(at + 1); }, false),
       with("mod", [](const T& x, const T& at) { return x.mod(at + 1); }),
       with("fmod", [](const T& x, const T& at) { return x.fmod(at + 1); }),
       with("copysign", [](const T& x, const T& at) { return x.copysign(at - 2); }),
       with("logaddexp", [](const T& x, const T&) { return x.logaddexp(x * 2); }),
       with(
           "isclose", [](const T& x, const T& at) { return x.isclose(at, 0.1); }, false),
       with(
           "rounded div", [](const T& x, const T& at) { return x.div(at + 1, Rounding::Trunc); },
           false),
       with("where", [](const T& x, const T& at) { return where(x > at, x, 1); }),
       with("where of a condition", [](const T& x, const T& at) { return (at <= 1).where(x, at); }),
       with("masked_fill", [](const T& x, const T& at) { return x.masked_fill(at == 1, 2); }),
       with("lerp", [](const T& x, const T& at) { return x.lerp(at, 0.3); }),
       with(
           "compare", [](const T& x, const T& at) { return (x < at) ^ (x >= 1) ^ (x != at); },
           false),
       with(
           "bits", [](const T&, const T& at) { return ((at & 6) | (at << 3)) ^ (at >> 1); }, false),
       with("casts", [](const T& x, const T&) { return x.cast(DType::F16).cast(DType::F32); }),
       with("bitcast", [](const T& x, const T&) { return x.bitcast(DType::I32) >> 8; }, false)}};
}

}  // namespace

std::vector<Family> elementwise_families() {
  return {functions_of_one(), activations(), functions_of_two()};
}

}  // namespace plugrad
