// Creation functions.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kCreateRows("create", {
    {"arange", "torch.arange(5, 12, 3).int()", {}, [](const In&) { return Tensor::arange(5, 12, 3); }},
    {"full", "torch.full((4, 3), 2.5)", {}, [](const In&) { return Tensor::full({4, 3}, 2.5); }},
    {"eye", "torch.eye(3, 5)", {}, [](const In&) { return Tensor::eye(3, 5); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
