// Functions of one, two and three operands.
#include "programs/operations.h"

namespace plugrad::programs {
namespace {

using Result = std::vector<Tensor>;

// clang-format off: a table
#define UNARY(kind, name) {"unary", #name, [](Args& a) -> Result { return {a.kind().name()}; }}
#define BINARY(kind, name, symbol) \
  {"binary", name, [](Args& a) -> Result { const Tensor& x = a.kind(); const Tensor& y = a.kind(); return {x symbol y}; }}
#define WITH_NUMBER(kind, name, symbol, number) \
  {"binary", name, [](Args& a) -> Result { const Tensor& x = a.kind(); return {x symbol a.number}; }}

const Operation kElementwise[] = {
    {"unary", "neg", [](Args& a) -> Result { return {-a.numeric()}; }},
    {"unary", "not", [](Args& a) -> Result { return {~a.tensor([](const Tensor& t) { return !is_float(t.dtype()); })}; }},
    UNARY(tensor, logical_not), UNARY(real, reciprocal), UNARY(real, sqrt), UNARY(real, rsqrt), UNARY(numeric, square),
    UNARY(real, exp), UNARY(real, exp2), UNARY(real, log), UNARY(real, log2), UNARY(real, log1p), UNARY(real, sin),
    UNARY(real, cos), UNARY(real, tanh), UNARY(real, erf), UNARY(numeric, abs), UNARY(numeric, sign),
    UNARY(real, trunc), UNARY(real, floor), UNARY(real, ceil), UNARY(real, round), UNARY(real, isnan), UNARY(real, isinf),
    UNARY(real, isfinite), UNARY(numeric, relu), UNARY(real, relu6), UNARY(real, leaky_relu), UNARY(real, elu),
    UNARY(real, selu), UNARY(real, sigmoid), UNARY(real, logsigmoid), UNARY(real, silu), UNARY(real, mish), UNARY(real, gelu),
    UNARY(real, hardsigmoid), UNARY(real, hardswish), UNARY(real, softplus), UNARY(real, softsign),
    UNARY(real, sinh), UNARY(real, cosh), UNARY(real, atan), UNARY(real, asinh), UNARY(real, asin),
    {"unary", "int_to_float_function", [](Args& a) -> Result { return {a.whole().sqrt()}; }},
    {"unary", "clamp", [](Args& a) -> Result { const Tensor& x = a.real(); const double low = a.quarter(); return {x.clamp(low, 1 + a.quarter())}; }},
    {"unary", "pow_number", [](Args& a) -> Result { const Tensor& x = a.real(); return {x.pow(a.pick(-1, 3))}; }},
    {"cast", "cast", [](Args& a) -> Result {
       constexpr DType kTo[] = {DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8,
                                DType::U8, DType::I16, DType::U32, DType::U64, DType::Bool};
       return {a.tensor().cast(a.one_of(kTo))}; }},
    {"cast", "bitcast", [](Args& a) -> Result {
       const Tensor& x = a.tensor([](const Tensor& t) { return t.dtype() != DType::Bool; });
       constexpr DType kTo[] = {DType::I8, DType::U8, DType::I16, DType::U16, DType::F16, DType::I32, DType::U32, DType::I64};
       const DType to = a.one_of(kTo);
       require_fit(size_of(to) == size_of(x.dtype()));
       return {x.bitcast(to)}; }},

    BINARY(tensor, "+", +), BINARY(numeric, "-", -), BINARY(tensor, "*", *), BINARY(real, "/", /), BINARY(whole, "int /", /),
    BINARY(numeric, "%", %), BINARY(whole, "&", &), BINARY(whole, "|", |), BINARY(whole, "^", ^),
    BINARY(tensor, "==", ==), BINARY(tensor, "!=", !=), BINARY(numeric, "<", <), BINARY(numeric, "<=", <=), BINARY(numeric, ">", >),
    BINARY(numeric, ">=", >=),
    WITH_NUMBER(numeric, "x + c", +, quarter()), WITH_NUMBER(numeric, "x * c", *, quarter()), WITH_NUMBER(numeric, "x - i", -, pick(-3, 3)),
    WITH_NUMBER(numeric, "x * i", *, pick(-3, 3)), WITH_NUMBER(whole, "x << i", <<, pick(0, 6)), WITH_NUMBER(whole, "x >> i", >>, pick(0, 6)),
    WITH_NUMBER(numeric, "x < c", <, quarter()), WITH_NUMBER(numeric, "x == c", ==, quarter()),
    {"binary", "c - x", [](Args& a) -> Result { const Tensor& x = a.numeric(); return {a.quarter() - x}; }},
    {"binary", "+ like", [](Args& a) -> Result { const Tensor& x = a.tensor(); return {x + a.like(x)}; }},
    {"binary", "* like", [](Args& a) -> Result { const Tensor& x = a.tensor(); return {x * a.like(x)}; }},
    {"binary", "maximum", [](Args& a) -> Result { const Tensor& x = a.numeric(); return {x.maximum(a.numeric())}; }},
    {"binary", "minimum", [](Args& a) -> Result { const Tensor& x = a.numeric(); return {x.minimum(a.numeric())}; }},
    {"binary", "floor_div", [](Args& a) -> Result { const Tensor& x = a.whole(); return {x.floor_div(a.whole())}; }},
    {"binary", "trunc_div", [](Args& a) -> Result { const Tensor& x = a.whole(); return {x.trunc_div(a.whole())}; }},
    {"binary", "fmod", [](Args& a) -> Result { const Tensor& x = a.numeric(); return {x.fmod(a.numeric())}; }},
    {"binary", "copysign", [](Args& a) -> Result { const Tensor& x = a.real(); return {x.copysign(a.real())}; }},
    {"binary", "logaddexp", [](Args& a) -> Result { const Tensor& x = a.real(); return {x.logaddexp(a.real())}; }},
    {"binary", "isclose", [](Args& a) -> Result { const Tensor& x = a.real(); return {x.isclose(a.real())}; }},
    {"binary", "where", [](Args& a) -> Result {
       const Tensor& c = a.tensor([](const Tensor& t) { return t.dtype() == DType::Bool; });
       const Tensor& x = a.tensor(); return {c.where(x, a.tensor())}; }},
    {"binary", "where positive", [](Args& a) -> Result {
       const Tensor& x = a.numeric(); const Tensor& y = a.numeric(); return {(x > 0).where(x, y * 2)}; }},
    {"binary", "masked_fill", [](Args& a) -> Result {
       const Tensor& x = a.numeric(); const Tensor& y = a.numeric(); return {x.masked_fill(y < 0, a.pick(-2, 2))}; }},
    {"binary", "lerp", [](Args& a) -> Result { const Tensor& x = a.real(); const Tensor& y = a.real(); return {x.lerp(y, 0.25)}; }},
};
// clang-format on

}  // namespace

std::span<const Operation> elementwise_operations() {
  return kElementwise;
}

}  // namespace plugrad::programs
