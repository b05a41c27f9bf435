// Normalisation, attention and other parts of networks.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kRows("nn", {
    {"layernorm", "F.layer_norm(x, (64,))", {{{8, 64}}}, [](const In& x) { return x[0].layernorm(); }},
    {"attention_causal", "F.scaled_dot_product_attention(x, y, z, is_causal=True)", {{{2, 4, 16, 8}}, {{2, 4, 16, 8}}, {{2, 4, 16, 8}}},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], Tensor(), true); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
