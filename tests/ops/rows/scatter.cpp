// Scattering, and selection by masks.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kScatterRows("index", {
    {"scatter", "x.scatter(1, y, z)", {{{3, 4}}, {{3, 4}, {0, 2, 1, 3, 3, 1, 0, 2, 2, 0, 3, 1}, DType::I64}, {{3, 4}}}, [](const In& x) { return x[0].scatter(1, x[1], x[2]); }},
    {"scatter_wide", "x.scatter(1, y, z)", {{{5, 9}}, {{3, 4}, {0, 2, 1, 3, 3, 1, 0, 2, 2, 0, 3, 1}, DType::I64}, {{4, 6}}}, [](const In& x) { return x[0].scatter(1, x[1], x[2]); }, kForwardOnly},
    {"scatter_axis0", "x.scatter(0, y, z)", {{{4, 6}}, {{2, 4}, {0, 2, 1, 0, 3, 1, 0, 2}, DType::I64}, {{2, 4}}}, [](const In& x) { return x[0].scatter(0, x[1], x[2]); }},
    {"scatter_negative_axis", "x.scatter(-1, y, z)", {{{3, 4}}, {{3, 4}, {0, 2, 1, 3, 3, 1, 0, 2, 2, 0, 3, 1}, DType::I64}, {{3, 4}}}, [](const In& x) { return x[0].scatter(-1, x[1], x[2]); }},
    {"scatter_number", "x.scatter(1, y, 3.)", {{{3, 4}}, {{3, 2}, 0, 4, DType::I64}}, [](const In& x) { return x[0].scatter(1, x[1], 3.0); }},
    {"scatter_nothing", "x.scatter(1, y, 3.)", {{{3, 4}}, {{3, 0}, 0, 4, DType::I64}}, [](const In& x) { return x[0].scatter(1, x[1], 3.0); }},
    {"scatter_int", "x.scatter(1, y, z)", {{{3, 4}, -9, 9, DType::I32}, {{3, 4}, {0, 2, 1, 3, 3, 1, 0, 2, 2, 0, 3, 1}, DType::I64}, {{3, 4}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter(1, x[1], x[2]); }, kForwardOnly},
    {"scatter_add", "x.scatter_add(0, y, z)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter(0, x[1], x[2], Combine::Sum); }},
    {"scatter_add_number", "x.scatter(0, y, 3., reduce='add')", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}}, [](const In& x) { return x[0].scatter(0, x[1], 3.0, Combine::Sum); }, kForwardOnly},
    {"scatter_multiply", "x.scatter(0, y, z, reduce='multiply')", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter(0, x[1], x[2], Combine::Prod); }, kForwardOnly},
    {"scatter_multiply_number", "x.scatter(0, y, 3., reduce='multiply')", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}}, [](const In& x) { return x[0].scatter(0, x[1], 3.0, Combine::Prod); }, kForwardOnly},
    {"scatter_sum", "x.scatter_reduce(0, y, z, 'sum', include_self=True)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Sum, true); }},
    {"scatter_sum_int", "x.scatter_reduce(0, y, z, 'sum', include_self=True)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Sum, true); }, kForwardOnly},
    {"scatter_sum_alone", "x.scatter_reduce(0, y, z, 'sum', include_self=False)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Sum, false); }},
    {"scatter_sum_alone_int", "x.scatter_reduce(0, y, z, 'sum', include_self=False)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Sum, false); }, kForwardOnly},
    {"scatter_prod", "x.scatter_reduce(0, y, z, 'prod', include_self=True)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Prod, true); }, kForwardOnly},
    {"scatter_prod_int", "x.scatter_reduce(0, y, z, 'prod', include_self=True)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Prod, true); }, kForwardOnly},
    {"scatter_prod_alone", "x.scatter_reduce(0, y, z, 'prod', include_self=False)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Prod, false); }, kForwardOnly},
    {"scatter_prod_alone_int", "x.scatter_reduce(0, y, z, 'prod', include_self=False)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Prod, false); }, kForwardOnly},
    {"scatter_mean", "x.scatter_reduce(0, y, z, 'mean', include_self=True)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Mean, true); }},
    {"scatter_mean_int", "x.scatter_reduce(0, y, z, 'mean', include_self=True)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Mean, true); }, kForwardOnly},
    {"scatter_mean_alone", "x.scatter_reduce(0, y, z, 'mean', include_self=False)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Mean, false); }},
    {"scatter_mean_alone_int", "x.scatter_reduce(0, y, z, 'mean', include_self=False)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Mean, false); }, kForwardOnly},
    {"scatter_amax", "x.scatter_reduce(0, y, z, 'amax', include_self=True)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Max, true); }},
    {"scatter_amax_int", "x.scatter_reduce(0, y, z, 'amax', include_self=True)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Max, true); }, kForwardOnly},
    {"scatter_amax_alone", "x.scatter_reduce(0, y, z, 'amax', include_self=False)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Max, false); }},
    {"scatter_amax_alone_int", "x.scatter_reduce(0, y, z, 'amax', include_self=False)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Max, false); }, kForwardOnly},
    {"scatter_amin", "x.scatter_reduce(0, y, z, 'amin', include_self=True)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Min, true); }},
    {"scatter_amin_int", "x.scatter_reduce(0, y, z, 'amin', include_self=True)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Min, true); }, kForwardOnly},
    {"scatter_amin_alone", "x.scatter_reduce(0, y, z, 'amin', include_self=False)", {{{4, 6}}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Min, false); }},
    {"scatter_amin_alone_int", "x.scatter_reduce(0, y, z, 'amin', include_self=False)", {{{4, 6}, -9, 9, DType::I32}, {{5, 6}, 0, 4, DType::I64}, {{5, 6}, -9, 9, DType::I32}}, [](const In& x) { return x[0].scatter_reduce(0, x[1], x[2], Combine::Min, false); }, kForwardOnly},
    {"masked_select", "x.masked_select(y)", {{{32, 10}}, {{32, 10}, 0, 2, DType::Bool}}, [](const In& x) { return x[0].masked_select(x[1]); }},
    {"masked_select_row", "x.masked_select(y)", {{{4, 10}}, {{10}, 0, 2, DType::Bool}}, [](const In& x) { return x[0].masked_select(x[1]); }},
    {"masked_select_more", "x.masked_select(y)", {{{10}}, {{4, 1}, 0, 2, DType::Bool}}, [](const In& x) { return x[0].masked_select(x[1]); }},
    {"nonzero_0", "x.nonzero()", {{{32}, -1, 2, DType::I32}}, [](const In& x) { return x[0].nonzero(); }, kForwardOnly},
    {"nonzero_1", "x.nonzero()", {{{5, 6}, -1, 2, DType::I32}}, [](const In& x) { return x[0].nonzero(); }, kForwardOnly},
    {"nonzero_2", "x.nonzero()", {{{2, 3, 4}, -1, 2, DType::I32}}, [](const In& x) { return x[0].nonzero(); }, kForwardOnly},
    {"nonzero_3", "x.nonzero()", {{{0, 3}, -1, 2, DType::I32}}, [](const In& x) { return x[0].nonzero(); }, kForwardOnly},
    {"nonzero_4", "x.nonzero()", {{{}, -1, 2, DType::I32}}, [](const In& x) { return x[0].nonzero(); }, kForwardOnly},
    {"nonzero_float", "(x > 0).nonzero()", {{{5, 6}}}, [](const In& x) { return (x[0] > 0).nonzero(); }, kForwardOnly},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
