#include "engine/views/overlap.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace plugrad::engine {
namespace {

struct StridedAxis {
  int64_t size, stride;
};

/// The places of a view's elements: `first` plus the sum of index * stride of each axis.
struct StridedPlaces {
  int64_t first = 0;
  std::vector<StridedAxis> axes;
};

StridedPlaces all_places(std::span<const int64_t> shape) {
  StridedPlaces all;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) all.axes.push_back({shape[i], stride});
  std::ranges::reverse(all.axes);
  return all;
}

// Joins neighbours that count on, then splits the groups. False if an axis does not count on.
bool reshape(StridedPlaces& places, std::span<const int64_t> shape) {
  std::vector<StridedAxis> groups, axes;
  for (const StridedAxis& axis : places.axes) {
    if (axis.size == 1) continue;
    if (!groups.empty() && groups.back().stride == axis.size * axis.stride)
      groups.back() = {groups.back().size * axis.size, axis.stride};
    else
      groups.push_back(axis);
  }
  for (size_t i = shape.size(); i-- > 0;) {
    axes.push_back({shape[i], 0});
    if (shape[i] == 1) continue;
    if (groups.empty() || groups.back().size % shape[i] != 0) return false;
    axes.back().stride = groups.back().stride;
    groups.back() = {groups.back().size / shape[i], groups.back().stride * shape[i]};
    if (groups.back().size == 1) groups.pop_back();
  }
  std::ranges::reverse(axes);
  places.axes = std::move(axes);
  return true;
}

bool apply(StridedPlaces& places, const ViewStep& step) {
  const auto arg = [&](size_t i) { return step.arg[i]; };
  std::vector<StridedAxis>& axes = places.axes;
  switch (step.op) {
    case Op::Detach:
    case Op::Bitcast:
      return true;
    case Op::Reshape:
      return reshape(places, step.arg);
    case Op::Expand:
      for (size_t i = 0; i < axes.size(); ++i)
        if (axes[i].size != arg(i)) axes[i] = {arg(i), 0};
      return true;
    case Op::Permute: {
      const std::vector<StridedAxis> before = axes;
      for (size_t i = 0; i < axes.size(); ++i) axes[i] = before[static_cast<size_t>(arg(i))];
      return true;
    }
    case Op::Flip:
      for (size_t i = 0; i < axes.size(); ++i) {
        if (arg(i) == 0) continue;
        places.first += (axes[i].size - 1) * axes[i].stride;
        axes[i].stride = -axes[i].stride;
      }
      return true;
    case Op::Shrink:
      for (size_t i = 0; i < axes.size(); ++i) {
        places.first += arg(2 * i) * axes[i].stride;
        axes[i].size = arg(2 * i + 1) - arg(2 * i);
      }
      return true;
    case Op::Pad:  // a view has none of the padding left in the end
      for (size_t i = 0; i < axes.size(); ++i) {
        places.first -= arg(2 * i) * axes[i].stride;
        axes[i].size += arg(2 * i) + arg(2 * i + 1);
      }
      return true;
    default:
      return false;
  }
}

std::optional<StridedPlaces> places_of(std::span<const int64_t> base,
                                       std::span<const ViewStep> path) {
  StridedPlaces places = all_places(base);
  for (const ViewStep& step : path)
    if (!apply(places, step)) return std::nullopt;
  return places;
}

/// Whether factors from 0 to most, times their strides, may add up to a number: by trying the factors
/// of the largest stride that leave something within reach of the others.
class StrideSums {
 public:
  void add(int64_t stride, int64_t most) {
    if (stride != 0 && most != 0) terms_.push_back({stride, most});
  }
  bool may_reach(int64_t target) {
    std::ranges::sort(terms_, std::ranges::greater{}, &Term::stride);
    for (size_t i = terms_.size(); i-- > 0;) {
      const bool is_last = i + 1 == terms_.size();
      terms_[i].reach = terms_[i].stride * terms_[i].most + (is_last ? 0 : terms_[i + 1].reach);
      terms_[i].divisor = std::gcd(terms_[i].stride, is_last ? 0 : terms_[i + 1].divisor);
    }
    return may_reach(0, target);
  }

 private:
  struct Term {
    int64_t stride, most;
    int64_t reach = 0, divisor = 0;  // of this and the smaller ones
  };
  static constexpr int kMostTries = 1000;  // slices of reshapes need some 10

  bool may_reach(size_t term, int64_t target) {
    if (target == 0 || ++tries_ > kMostTries) return true;
    if (term == terms_.size()) return false;
    const auto& [stride, most, reach, divisor] = terms_[term];
    if (target < 0 || target > reach || target % divisor != 0) return false;
    const int64_t rest = reach - stride * most;
    const int64_t least = target <= rest ? 0 : (target - rest + stride - 1) / stride;
    for (int64_t factor = std::min(most, target / stride); factor >= least; --factor)
      if (may_reach(term + 1, target - factor * stride)) return true;
    return false;
  }

  std::vector<Term> terms_;
  int tries_ = 0;
};

}  // namespace

bool may_overlap(std::span<const ViewStep> a, std::span<const ViewStep> b) {
  // Other movements than these lead from different elements to different ones.
  const auto [in_a, in_b] = std::ranges::mismatch(
      a, b, [](const ViewStep& x, const ViewStep& y) { return x.op != Op::Expand && x == y; });
  if (in_a == a.end() || in_b == b.end()) return true;  // one shows a part of the other
  const auto first = places_of(in_a->shape, {in_a, a.end()}),
             second = places_of(in_b->shape, {in_b, b.end()});
  if (!first || !second) return true;
  // first + the sum of i * stride = second + the sum of j * stride, all on one side with factors
  // from 0 on.
  StrideSums sums;
  int64_t target = second->first - first->first;
  for (const auto& [size, stride] : first->axes) {
    sums.add(std::abs(stride), size - 1);
    if (stride < 0) target -= stride * (size - 1);
  }
  for (const auto& [size, stride] : second->axes) {
    sums.add(std::abs(stride), size - 1);
    if (stride > 0) target += stride * (size - 1);
  }
  return sums.may_reach(target);
}

}  // namespace plugrad::engine
