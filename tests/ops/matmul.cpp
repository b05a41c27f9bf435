// Products of matrices and what is made of them.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("matmul", {
    {"dot", "x.matmul(y)", {{{45, 65}}, {{65, 100}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"zero_inner", "x @ y", {{{2, 0}}, {{0, 3}}}, [](const In& x) { return x[0].matmul(x[1]); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
