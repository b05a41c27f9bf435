// Matrix products.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kMatmulRows("matmul", {
    {"dot", "x.matmul(y)", {{{45, 65}}, {{65, 100}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"dot_1d", "x.matmul(y)", {{{65}}, {{65}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"dot_1d_2d", "x.matmul(y)", {{{65}}, {{65, 45}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"dot_2d_1d", "x.matmul(y)", {{{45, 65}}, {{65}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"dot_1d_batched", "x.matmul(y)", {{{65}}, {{8, 65, 45}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"dot_batched_1d", "x.matmul(y)", {{{8, 45, 65}}, {{65}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"dot_batched", "x.matmul(y)", {{{8, 45, 65}}, {{8, 65, 100}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"vector_matrix", "x.matmul(y)", {{{64}}, {{64, 99}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"small", "x @ y", {{{8, 8}}, {{8, 8}}}, [](const In& x) { return x[0].matmul(x[1]); }},
    {"nine", "x @ y", {{{9, 9}}, {{9, 9}}}, [](const In& x) { return x[0].matmul(x[1]); }},
    {"padded", "F.pad(x, (2, 3)) @ F.pad(y, (0, 0, 2, 3))", {{{9, 9}}, {{9, 9}}}, [](const In& x) { return x[0].pad({2, 3}).matmul(x[1].pad({0, 0, 2, 3})); }},
    {"identity", "x @ torch.eye(9)", {{{9, 9}}}, [](const In& x) { return x[0].matmul(Tensor::eye(9)); }},
    {"square_64", "x @ y", {{{64, 64}}, {{64, 64}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"square_64_f16", "x @ y", {{{64, 64}, -2, 2, DType::F16}, {{64, 64}, -2, 2, DType::F16}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {5e-3, 5e-3}, .backward = Bound{5e-3, 5e-3}}},
    {"square_256", "x @ y", {{{256, 256}}, {{256, 256}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-4, 1e-3}, .differences = false}},
    {"zero_0", "x @ y", {{{2, 0}}, {{0, 3}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"zero_1", "x @ y", {{{0, 2}}, {{2, 3}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"zero_2", "x @ y", {{{2, 3}}, {{3, 0}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"zero_3", "x @ y", {{{0, 2}}, {{2, 0}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"zero_4", "x @ y", {{{0, 0}}, {{0, 0}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"zero_5", "x @ y", {{{0}}, {{0}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"zero_6", "x @ y", {{{5, 0, 3}}, {{5, 3, 2}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-7, 1e-3}}},
    {"broadcast", "x @ y", {{{10, 45, 65}}, {{65, 45}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-4, 1e-3}, .differences = false}},
    {"multi", "x @ y", {{{3, 3, 45, 65}}, {{3, 3, 65, 45}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-4, 1e-3}, .differences = false}},
    {"multi_broadcast", "x @ y", {{{3, 1, 4, 6}}, {{2, 6, 5}}}, [](const In& x) { return x[0].matmul(x[1]); }},
    {"matvec", "x @ y", {{{1, 128}}, {{128, 128}}}, [](const In& x) { return x[0].matmul(x[1]); }, {.forward = {1e-5, 1e-3}}},
    {"int", "x @ y", {{{4, 6}, -9, 9, DType::I32}, {{6, 3}, -9, 9, DType::I32}}, [](const In& x) { return x[0].matmul(x[1]); }, kForwardOnly},
    {"dtype", "(x.double() @ y.double())", {{{4, 6}}, {{6, 3}}}, [](const In& x) { return x[0].matmul(x[1], DType::F64); }, {.forward = {1e-6, 1e-6}}},
    {"outer", "torch.outer(x, y)", {{{4}}, {{6}}}, [](const In& x) { return outer(x[0], x[1]); }},
    {"inner", "torch.inner(x, y)", {{{3, 4, 6}}, {{5, 6}}}, [](const In& x) { return inner(x[0], x[1]); }},
    {"tensordot", "torch.tensordot(x, y, 2)", {{{3, 4, 5}}, {{4, 5, 2}}}, [](const In& x) { return tensordot(x[0], x[1], 2); }},
    {"tensordot_axes", "torch.tensordot(x, y, ([2, 0], [1, 0]))", {{{3, 4, 5}}, {{3, 5, 2}}}, [](const In& x) { return tensordot(x[0], x[1], {2, 0}, {1, 0}); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
