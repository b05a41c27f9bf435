#include "nn/progress/series.h"

#include <algorithm>
#include <cmath>

namespace plugrad {

void Bucket::append(const Bucket& next) {
  if (points == 0) first_step = next.first_step;
  last_step = next.last_step;
  last_seconds = next.last_seconds;
  points += next.points;
  missing += next.missing;
  if (!next.has_value()) return;
  lowest = std::min(lowest, next.lowest);
  highest = std::max(highest, next.highest);
  weight += next.weight;
  mean += (next.mean - mean) * (next.weight / weight);
  mean = std::clamp(mean, lowest, highest);  // rounding must not move it out of the range
}

void Series::add(int64_t step, double seconds, double value, double weight) {
  Bucket point{.first_step = step, .last_step = step, .last_seconds = seconds, .points = 1};
  last_ = value;
  if (std::abs(value) <= kMostMagnitude) {
    point.lowest = point.highest = point.mean = value;
    point.weight = weight;
  } else {
    point.missing = 1;
  }
  if (!buckets_.empty() && buckets_.back().points < points_a_bucket_)
    return buckets_.back().append(point);
  if (buckets_.size() == kMostBuckets) {
    buckets_ = merge_buckets(buckets_, kMostBuckets / 2);
    points_a_bucket_ *= 2;
  }
  buckets_.push_back(point);
}

Bucket Series::total() const {
  return merge_buckets(buckets_, 1).front();
}

std::vector<Bucket> merge_buckets(std::span<const Bucket> buckets, size_t most) {
  const size_t each = std::max<size_t>(1, (buckets.size() + most - 1) / most);
  std::vector<Bucket> merged;
  merged.reserve(Series::kMostBuckets);
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (i % each == 0) merged.emplace_back();
    merged.back().append(buckets[i]);
  }
  return merged;
}

}  // namespace plugrad
