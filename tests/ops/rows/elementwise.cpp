// Functions of one, two and three operands, and activations.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kElementwiseRows("elementwise", {
    {"neg", "-x", {{{45, 65}}}, [](const In& x) { return -x[0]; }},
    {"neg_scalar", "-x", {{Shape{}}}, [](const In& x) { return -x[0]; }},
    {"exp", "x.exp()", {{{45, 65}}}, [](const In& x) { return x[0].exp(); }},
    {"log_positive", "x.log()", {{{45, 65}, 0.01, 10}}, [](const In& x) { return x[0].log(); }},
    {"relu_special", "x.relu()", {{{6}, {-kInf, -1, 0, 1, kInf, kNaN}}}, [](const In& x) { return x[0].relu(); },
     {.differences = false}},
    {"add_broadcast", "x + y", {{{45, 65}}, {{45, 1}}}, [](const In& x) { return x[0] + x[1]; }},
    {"mod_ints", "x % y", {{{45}, -50, 50, DType::I32}, {{45}, 1, 9, DType::I32}}, [](const In& x) { return x[0] % x[1]; }},
    {"add_f16", "x + y", {{{45}, -2, 2, DType::F16}, {{45}, -2, 2, DType::F16}}, [](const In& x) { return x[0] + x[1]; },
     {.forward = {1e-3, 1e-3}, .backward = Bound{1e-3, 1e-3}}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
