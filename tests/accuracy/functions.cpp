#include "accuracy/functions.h"

#include <cmath>
#include <numbers>

namespace plugrad::accuracy {
namespace {

template <auto member>
Tensor run(const Tensor& x, const Tensor&) {
  return (x.*member)();
}
template <class F>
constexpr Function row(std::string_view name, double f32, double f64,
                       Tensor (*function)(const Tensor&, const Tensor&), F exact) {
  return {name, f32, f64, function, exact, exact};
}

template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::fabs(x));
  return (x < 0 ? e : T{1}) / (1 + e);
}
template <class T>
T softplus(T x) {
  return std::fmax(x, T{0}) + std::log1p(std::exp(-std::fabs(x)));
}

// Two operands: the others ignore the second.
#define OF_X(expression) [](auto x, auto) { return expression; }
#define SAME(name) run<&Tensor::name>, OF_X(std::name(x))

const Function kFunctions[] = {
    row("exp", 2, 2, SAME(exp)),
    row("exp2", 2, 2, SAME(exp2)),
    row("expm1", 2, 2, SAME(expm1)),
    row("log", 2, 2, SAME(log)),
    row("log2", 3, 3, SAME(log2)),
    row("log10", 3, 3, SAME(log10)),
    row("log1p", 2, 2, SAME(log1p)),
    {"pow", 4, 4, [](const Tensor& x, const Tensor& y) { return x.pow(y); },
     [](double x, double y) { return std::pow(x, y); },
     [](long double x, long double y) { return std::pow(x, y); }, true},
    row("sin", 2, 3, SAME(sin)),
    row("cos", 2, 3, SAME(cos)),
    row("tan", 2, 3, SAME(tan)),
    row("asin", 5, 5, SAME(asin)),
    row("acos", 5, 5, SAME(acos)),
    row("atan", 4, 4, SAME(atan)),
    row("sinh", 2, 2, SAME(sinh)),
    row("cosh", 2, 2, SAME(cosh)),
    row("tanh", 2, 2, SAME(tanh)),
    row("asinh", 4, 4, SAME(asinh)),
    row("acosh", 4, 4, SAME(acosh)),
    row("atanh", 4, 4, SAME(atanh)),
    row("erf", 2, 2, SAME(erf)),
    row("sigmoid", 2, 2, run<&Tensor::sigmoid>, OF_X(sigmoid(x))),
    row(
        "softplus", 3, 3, [](const Tensor& x, const Tensor&) { return x.softplus(); },
        OF_X(softplus(x))),
    row("logsigmoid", 3, 3, run<&Tensor::logsigmoid>, OF_X(-softplus(-x))),
    row("rsqrt", 2, 2, run<&Tensor::rsqrt>, OF_X(1 / std::sqrt(x))),
};

}  // namespace

std::span<const Function> functions() {
  return kFunctions;
}

}  // namespace plugrad::accuracy
