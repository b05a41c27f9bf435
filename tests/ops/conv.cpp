// Convolutions and transposed convolutions.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("conv", {
    {"conv2d_3x3", "F.conv2d(x, y, z)", {{{1, 3, 5, 7}}, {{6, 3, 3, 3}}, {{6}}},
     [](const In& x) { return conv2d(x[0], x[1], x[2]); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
