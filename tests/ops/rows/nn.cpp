// Normalisation, attention and other parts of networks.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

constexpr Checks kNorm = {};

// clang-format off: rows
const Family kNnRows("nn", {
    {"layernorm", "F.layer_norm(x, (64,))", {Input({8, 64})},
     [](const In& x) { return x[0].layernorm(); }, kNorm},
    {"layernorm_axes", "F.layer_norm(x, (5, 6))", {Input({3, 5, 6})},
     [](const In& x) { return layernorm(x[0], {-2, -1}); }, kNorm},
    {"layernorm_half", "F.layer_norm(x.float(), (64,)).half()", {Input({8, 64}, -2, 2, DType::F16)},
     [](const In& x) { return x[0].layernorm(); }, {.forward = {2e-3, 2e-3}, .backward = Bound{1e-2, 5e-3}, .differences = false}},
    {"layernorm_offset", "F.layer_norm(x, (64,))", {Input({8, 64}, 1000, 1001)},
     [](const In& x) { return x[0].layernorm(); }, {.forward = {2e-3, 2e-3}, .backward = Bound{1e-2, 5e-3}}},
    {"rmsnorm", "F.rms_norm(x, (32,), weight=y, eps=1e-6)", {Input({4, 7, 32}), Input({32})},
     [](const In& x) { return rmsnorm(x[0], x[1]); }, kNorm},
    {"rmsnorm_plain", "F.rms_norm(x, (7, 3), eps=1e-3)", {Input({4, 7, 3})},
     [](const In& x) { return rmsnorm(x[0], {}, 1e-3, {-2, -1}); }, kNorm},
    {"rmsnorm_bf16", "F.rms_norm(x.float(), (32,), eps=1e-6).bfloat16()", {Input({4, 32}, -2, 2, DType::BF16)},
     [](const In& x) { return rmsnorm(x[0]); }, {.forward = {1e-2, 1e-2}, .backward = Bound{3e-2, 3e-2}, .differences = false}},
    {"groupnorm", "F.group_norm(x, 3, y, z)", {Input({2, 6, 4, 5}), Input({6}), Input({6})},
     [](const In& x) { return groupnorm(x[0], 3, x[1], x[2]); }, kNorm},
    {"groupnorm_plain", "F.group_norm(x, 2)", {Input({3, 6, 5})},
     [](const In& x) { return groupnorm(x[0], 2); }, kNorm},
    {"groupnorm_no_sizes", "F.group_norm(x, 2)", {Input({3, 8})},
     [](const In& x) { return groupnorm(x[0], 2); }, kNorm},
    {"instancenorm", "F.instance_norm(x, weight=y, bias=z)", {Input({2, 3, 4, 5}), Input({3}), Input({3})},
     [](const In& x) { return instancenorm(x[0], x[1], x[2]); }, kNorm},
    {"instancenorm_1d", "F.instance_norm(x)", {Input({2, 3, 9})},
     [](const In& x) { return instancenorm(x[0]); }, kNorm},
    {"batchnorm", "F.batch_norm(x, y, z.abs() + 0.5, w, w)", {Input({4, 3, 5}), Input({3}).fixed(), Input({3}).fixed(), Input({3})},
     [](const In& x) { return batchnorm(x[0], x[3], x[3], x[1], (x[2].abs() + 0.5 + 1e-5).rsqrt()); }, kNorm},
    {"linear", "F.linear(x, y.T, z)", {Input({5, 4}), Input({4, 3}), Input({3})},
     [](const In& x) { return linear(x[0], x[1], x[2]); }, {.forward = {1e-5, 1e-3}}},
    {"sequential", "F.linear(x, y.T).relu().sin()", {Input({5, 4}), Input({4, 3})},
     [](const In& x) { return sequential(linear(x[0], x[1]), {[](const Tensor& t) { return t.relu(); }, [](const Tensor& t) { return t.sin(); }}); }, {.forward = {1e-5, 1e-3}}},
    {"attention", "F.scaled_dot_product_attention(x, y, z)", {Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 4, 16, 8})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, kNorm},
    {"attention_causal", "F.scaled_dot_product_attention(x, y, z, is_causal=True)", {Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 4, 16, 8})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], Tensor(), true); }, kNorm},
    {"attention_big", "F.scaled_dot_product_attention(x, y, z)", {Input({32, 8, 16, 64}), Input({32, 8, 16, 64}), Input({32, 8, 16, 64})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, {.forward = {1e-5, 1e-3}}},
    {"attention_added", "F.scaled_dot_product_attention(x, y, z, attn_mask=w)", {Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 1, 16, 16})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }, kNorm},
    {"attention_mask", "F.scaled_dot_product_attention(x, y, z, attn_mask=w)", {Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 1, 16, 16}, 0, 1, DType::Bool)},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }, kNorm},
    {"attention_mask_keys", "F.scaled_dot_product_attention(x, y, z, attn_mask=w[None])", {Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({16}, 0, 1, DType::Bool)},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }, kNorm},
    {"attention_nothing_takes_part", "F.scaled_dot_product_attention(x, y, z, attn_mask=w)", {Input({2, 3, 4}), Input({2, 5, 4}), Input({2, 5, 2}), Input({3, 5}, {1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, DType::Bool)},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }, kNorm},
    {"attention_lengths", "F.scaled_dot_product_attention(x, y, z)", {Input({2, 4, 5, 8}), Input({2, 4, 9, 8}), Input({2, 4, 9, 3})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, kNorm},
    {"attention_lengths_causal", "F.scaled_dot_product_attention(x, y, z, is_causal=True)", {Input({2, 4, 9, 8}), Input({2, 4, 5, 8}), Input({2, 4, 5, 8})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], Tensor(), true); }, kNorm},
    {"attention_gqa", "F.scaled_dot_product_attention(x, y, z, enable_gqa=True)", {Input({2, 32, 6, 8}), Input({2, 8, 7, 8}), Input({2, 8, 7, 8})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, false, 0.0, true); }, kNorm},
    {"attention_gqa_causal", "F.scaled_dot_product_attention(x, y, z, is_causal=True, enable_gqa=True)", {Input({2, 6, 6, 8}), Input({2, 1, 6, 8}), Input({2, 1, 6, 8})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, true, 0.0, true); }, kNorm},
    {"attention_scale", "F.scaled_dot_product_attention(x, y, z, scale=0.5)", {Input({2, 4, 16, 8}), Input({2, 4, 16, 8}), Input({2, 4, 16, 8})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, false, 0.0, false, 0.5); }, kNorm},
    {"attention_2d", "F.scaled_dot_product_attention(x, y, z)", {Input({5, 8}), Input({6, 8}), Input({6, 4})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, kNorm},
    {"attention_no_width", "F.scaled_dot_product_attention(x, y, z)", {Input({2, 3, 0}), Input({2, 4, 0}), Input({2, 4, 5})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, kNorm},
    {"attention_no_keys", "F.scaled_dot_product_attention(x, y, z)", {Input({2, 3, 4}), Input({2, 0, 4}), Input({2, 0, 5})},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, kNorm},
    {"attention_half", "F.scaled_dot_product_attention(x.float(), y.float(), z.float()).half()", {Input({2, 5, 8}, -2, 2, DType::F16), Input({2, 5, 8}, -2, 2, DType::F16), Input({2, 5, 8}, -2, 2, DType::F16)},
     [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }, {.forward = {1e-3, 1e-3}, .backward = Bound{5e-3, 5e-3}, .differences = false}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
