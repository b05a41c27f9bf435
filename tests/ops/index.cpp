// Indexing by numbers, slices and tensors.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("index", {
    {"gather", "x.gather(1, y.long())", {{{4, 5}}, {{4, 3}, 0, 5, DType::I32}}, [](const In& x) { return x[0].gather(1, x[1]); }},
    {"slice_step", "x[1:7:2]", {{{7, 5}}}, [](const In& x) { return x[0][{Slice(1, 7, 2)}]; }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
