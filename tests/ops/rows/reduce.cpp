// Reductions, scans and sorting.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kReduceRows("reduce", {
    {"sum", "x.sum()", {{{45, 3}}}, [](const In& x) { return x[0].sum(); }},
    {"sum_axis", "x.sum(1, keepdim=True)", {{{3, 4, 5, 6}}}, [](const In& x) { return x[0].sum(1, true); }},
    {"sum_empty", "x.sum(0)", {{{0, 4}}}, [](const In& x) { return x[0].sum(0); }},
    {"argmax", "x.argmax(1).int()", {{{10, 20}}}, [](const In& x) { return x[0].argmax(1); }},
    {"max_ties", "x.amax()", {{{4}, {1, 2, 2, 0}}}, [](const In& x) { return x[0].max(); }, {.differences = false}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
