// Matrix decompositions.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kDecomposeRows("matmul", {
    {"qr_0", "torch.linalg.qr(x)", {{{4, 4}}}, [](const In& x) { return std::pair(qr(x[0]).q, qr(x[0]).r); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"qr_1", "torch.linalg.qr(x)", {{{6, 3}}}, [](const In& x) { return std::pair(qr(x[0]).q, qr(x[0]).r); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"qr_2", "torch.linalg.qr(x)", {{{2, 5, 4}}}, [](const In& x) { return std::pair(qr(x[0]).q, qr(x[0]).r); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"qr_wide", "torch.linalg.qr(x)", {{{3, 5}}}, [](const In& x) { return std::pair(qr(x[0]).q, qr(x[0]).r); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"qr_full_q", "torch.linalg.qr(x, mode='complete')[1]", {{{5, 3}}}, [](const In& x) { return qr(x[0], true).r; }, kForwardOnly},
    {"svd_values_0", "torch.linalg.svdvals(x)", {{{4, 4}}}, [](const In& x) { return svd(x[0]).s; }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_low_rank_0", "(lambda u, s, v: (u[..., :2] * s[..., None, :2]) @ v[..., :2, :])(*torch.linalg.svd(x, full_matrices=False))", {{{4, 4}}}, [](const In& x) { return [&] { const SVD d = svd(x[0], false); return (d.u.slice(-1, {0, 2}) * d.s.slice(-1, {0, 2}).unsqueeze(-2)).matmul(d.vt.slice(-2, {0, 2})); }(); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_values_1", "torch.linalg.svdvals(x)", {{{6, 3}}}, [](const In& x) { return svd(x[0]).s; }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_low_rank_1", "(lambda u, s, v: (u[..., :2] * s[..., None, :2]) @ v[..., :2, :])(*torch.linalg.svd(x, full_matrices=False))", {{{6, 3}}}, [](const In& x) { return [&] { const SVD d = svd(x[0], false); return (d.u.slice(-1, {0, 2}) * d.s.slice(-1, {0, 2}).unsqueeze(-2)).matmul(d.vt.slice(-2, {0, 2})); }(); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_values_2", "torch.linalg.svdvals(x)", {{{3, 6}}}, [](const In& x) { return svd(x[0]).s; }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_low_rank_2", "(lambda u, s, v: (u[..., :2] * s[..., None, :2]) @ v[..., :2, :])(*torch.linalg.svd(x, full_matrices=False))", {{{3, 6}}}, [](const In& x) { return [&] { const SVD d = svd(x[0], false); return (d.u.slice(-1, {0, 2}) * d.s.slice(-1, {0, 2}).unsqueeze(-2)).matmul(d.vt.slice(-2, {0, 2})); }(); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_values_3", "torch.linalg.svdvals(x)", {{{2, 5, 4}}}, [](const In& x) { return svd(x[0]).s; }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
    {"svd_low_rank_3", "(lambda u, s, v: (u[..., :2] * s[..., None, :2]) @ v[..., :2, :])(*torch.linalg.svd(x, full_matrices=False))", {{{2, 5, 4}}}, [](const In& x) { return [&] { const SVD d = svd(x[0], false); return (d.u.slice(-1, {0, 2}) * d.s.slice(-1, {0, 2}).unsqueeze(-2)).matmul(d.vt.slice(-2, {0, 2})); }(); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 2e-3}}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
