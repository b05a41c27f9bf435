#include "oracle/running.h"

#include <limits>

#include "base/check.h"
#include "oracle/alu.h"
#include "oracle/rounding.h"

namespace plugrad::oracle {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

Op op_named(std::string_view name) {
  for (const Op op : {Op::Add, Op::Mul, Op::Max})
    if (name.find(op_info(op).name) != name.npos) return op;
  fail(ErrorKind::Unsupported, "[evaluate] {}: a user's kernel is not evaluated", name);
}

/// One element of the result while terms join it.
class Total {
 public:
  Total(Op op, DType dtype) : op_(op), dtype_(dtype) {}

  void join(const Measured& from, size_t at) {
    const uint64_t term = from.value.bits[at];
    const uint64_t args[] = {bits_, term};
    bits_ = terms_.empty() ? term : apply(op_, dtype_, dtype_, args);
    terms_.push_back({from.value.real(at), from.error_of(at)});
    is_exact_ = is_exact_ && from.error_of(at) == 0;
  }
  uint64_t bits() const { return bits_; }

  double error() const {
    if (is_exact_) return 0;
    if (op_ == Op::Max) return maximum_error(terms_);
    if (!is_float(dtype_)) return kUnknown;
    return op_ == Op::Add ? sum_error(dtype_, terms_) : product_error(dtype_, terms_);
  }

 private:
  Op op_;
  DType dtype_;
  uint64_t bits_ = 0;
  bool is_exact_ = true;
  std::vector<Term> terms_;
};

void put(Measured& result, size_t at, const Total& total) {
  result.value.bits[at] = total.bits();
  result.error[at] = total.error();
}

Measured like(const Measured& x) {
  Measured result = x;
  result.error.assign(x.value.size(), 0.0);
  return result;
}

/// Of axis 1 of x (outer, length, inner), after `before` (outer, inner) where that is given.
Measured scan(Op op, const Measured& x, const Measured* before) {
  const auto size = [&](size_t axis) { return static_cast<size_t>(x.value.shape[axis]); };
  Measured result = like(x);
  for (size_t a = 0; a < size(0); ++a)
    for (size_t b = 0; b < size(2); ++b) {
      Total total(op, x.value.dtype);
      if (before) total.join(*before, a * size(2) + b);
      for (size_t i = 0; i < size(1); ++i) {
        const size_t at = (a * size(1) + i) * size(2) + b;
        total.join(x, at);
        put(result, at, total);
      }
    }
  return result;
}

}  // namespace

Measured running(std::string_view name, std::span<const Measured* const> sources) {
  if (name.starts_with("scan_"))
    return scan(op_named(name), *sources[0], sources.size() > 1 ? sources[1] : nullptr);
  fail(ErrorKind::Unsupported, "[evaluate] {}: a user's kernel is not evaluated", name);
}

}  // namespace plugrad::oracle
