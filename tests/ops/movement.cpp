// Movement: views and what is composed of them.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("movement", {
    {"permute", "x.permute(2, 0, 1)", {{{3, 4, 5}}}, [](const In& x) { return x[0].permute({2, 0, 1}); }},
    {"cat_empty", "torch.cat([x, y], 1)", {{{3, 0}}, {{3, 2}}}, [](const In& x) { return cat({x[0], x[1]}, 1); }},
    {"split", "x.split(2, 1)", {{{3, 5}}}, [](const In& x) { return x[0].split(2, 1); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
