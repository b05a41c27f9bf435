#include "tensor/index/check_indices.h"

#include <algorithm>

#include "base/settings.h"
#include "engine/plan/index_report.h"
#include "ir/user.h"
#include "jit/trace.h"
#include "plugrad/functional.h"
#include "tensor/handles.h"
#include "tensor/index/index.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::tensor {

namespace {

using engine::IndexRange;

/// Checks the elements if the host knows them. Returns whether that covers every call.
bool is_checked_by_host(std::string_view function, const Tensor& indices, const IndexRange& range) {
  Recorder r(function);
  r.use(indices);
  if (const auto bytes = r.session().peek(*state_of(indices))) {
    range.require_of(*bytes);
    return true;
  }
  if (jit_detail::JitTrace* trace = jit_detail::JitTrace::active())
    trace->check(*state_of(indices), range);
  return false;
}

/// (number of the first element out of range, or kNoneOutside; its value).
Tensor report_of(const Tensor& indices, const IndexRange& range) {
  const Tensor p = as_signed(indices);
  Tensor outside = (p < range.low) | (p >= range.high);
  if (range.but) outside = outside & (p != *range.but);
  const Tensor flat = whole(p, 0).flatten(), flat_outside = whole(outside, false).flatten();
  const int64_t count = flat.numel();
  const DType dtype = count > INT32_MAX ? DType::I64 : p.dtype();
  const Tensor numbers = Tensor::arange(count, dtype);
  const Tensor first = where(flat_outside, numbers, count).min().reshape({1});
  const Tensor value = select(flat, 0, first).cast(dtype);
  const Tensor none = Tensor(engine::kNoneOutside).cast(dtype);
  const Tensor number = where(first == count, none, first.cast(dtype));
  return where(Tensor::arange(2) == 0, number, value);
}

/// `indices` as a new node with the report as a source: a read of a value computed from it checks
/// the report.
Tensor checked_by_device(const Tensor& indices, const IndexRange& range) {
  const Tensor report = report_of(indices, range);
  Recorder r("check_indices");
  const Id node = r.use(indices), found = r.use(report);
  const uint64_t number = r.session().index_ranges().number_of(range);
  return r.done(
      r.graph().add(Op::Function, r.dtype(node), {node, found}, function_arg(number, kRangeCheck)));
}

}  // namespace

Tensor in_range(std::string_view function, std::string_view what, const Tensor& indices,
                int64_t low, int64_t high, std::optional<int64_t> but) {
  const DType dtype = strong(indices.dtype());
  const IndexRange range{.function = std::string(function),
                         .what = std::string(what),
                         .low = is_unsigned(dtype) ? std::max<int64_t>(low, 0) : low,
                         .high = high,
                         .but = but,
                         .dtype = dtype};
  if (is_checked_by_host(function, indices, range)) return indices;
  if (!settings().check_indices || indices.numel() == 0) return indices;
  return checked_by_device(indices, range);
}

}  // namespace plugrad::tensor
