// Reductions, scans and functions composed of them.
#include "programs/operations.h"

namespace plugrad::programs {
namespace {

using Result = std::vector<Tensor>;

// clang-format off: a table
#define REDUCE(kind, name) \
  {"reduce", #name, [](Args& a) -> Result { const Tensor& x = a.kind(); const Axes axes = a.axes(x); return {x.name(axes, a.chance(40))}; }}
#define ALONG(family, kind, name) \
  {family, #name, [](Args& a) -> Result { const Tensor& x = a.kind(); require_fit(x.ndim() > 0); return {x.name(a.axis(x))}; }}
#define PAIR(family, kind, name) \
  {family, #name, [](Args& a) -> Result { \
     const Tensor& x = a.kind(); require_fit(x.ndim() > 0); const auto [values, places] = x.name(a.axis(x)); return {values, places}; }}

const Operation kReductions[] = {
    REDUCE(tensor, sum), REDUCE(numeric, sum), REDUCE(numeric, max), REDUCE(numeric, min), REDUCE(numeric, mean), REDUCE(tensor, any),
    REDUCE(tensor, all), REDUCE(real, var), REDUCE(real, std), REDUCE(real, logsumexp), REDUCE(numeric, prod),
    {"reduce", "argmax", [](Args& a) -> Result { const Tensor& x = a.numeric(); require_fit(x.ndim() > 0); const int64_t axis = a.axis(x); return {x.argmax(axis, a.chance(30))}; }},
    {"reduce", "argmin", [](Args& a) -> Result { const Tensor& x = a.numeric(); require_fit(x.ndim() > 0); const int64_t axis = a.axis(x); return {x.argmin(axis, a.chance(30))}; }},
    {"reduce", "argmax of all", [](Args& a) -> Result { return {a.numeric().argmax()}; }},
    ALONG("scan", numeric, cumsum), ALONG("scan", real, softmax), ALONG("scan", real, log_softmax), ALONG("scan", real, layernorm),
    ALONG("scan", numeric, cumprod), ALONG("scan", real, logcumsumexp), ALONG("scan", real, softmin), ALONG("scan", numeric, argsort),
    PAIR("scan", numeric, cummax), PAIR("scan", numeric, cummin), PAIR("scan", numeric, sort),
    {"scan", "topk", [](Args& a) -> Result {
       const Tensor& x = a.numeric(); require_fit(x.ndim() > 0); const int64_t axis = a.axis(x);
       const auto [values, places] = x.topk(a.pick(0, x.size(axis)), axis, a.chance(50)); return {values, places}; }},
    {"reduce", "var_mean", [](Args& a) -> Result {
       const Tensor& x = a.real(); const Axes axes = a.axes(x); const auto [var, mean] = x.var_mean(axes, a.chance(40)); return {var, mean}; }},
};
// clang-format on

}  // namespace

std::span<const Operation> reduce_operations() {
  return kReductions;
}

}  // namespace plugrad::programs
