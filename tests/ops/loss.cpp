// Losses.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("loss", {
    {"sparse_ce", "F.cross_entropy(x, y.long())", {{{12, 10}}, {{12}, 0, 10, DType::I32}},
     [](const In& x) { return sparse_categorical_crossentropy(x[0], x[1]); }},
    {"mse_none", "F.mse_loss(x, y, reduction=\"none\")", {{{4, 5}}, {{4, 5}}}, [](const In& x) { return mse_loss(x[0], x[1], Reduction::None); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
