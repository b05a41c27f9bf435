// Pooling and interpolation.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("pool", {
    {"max_pool2d", "F.max_pool2d(x, 2)", {{{3, 2, 11, 8}}}, [](const In& x) { return x[0].max_pool2d(2); }},
    {"avg_pool2d", "F.avg_pool2d(x, 2)", {{{3, 2, 11, 8}}}, [](const In& x) { return x[0].avg_pool2d(2); },
     {.forward = {1e-6, 1e-5}}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
