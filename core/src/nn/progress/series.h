// A curve of any number of points in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace plugrad {

/// Adjacent points of a curve.
struct Bucket {
  int64_t first_step = 0, last_step = 0;
  double last_seconds = 0;  // since the start, at last_step
  int64_t points = 0;       // including the missing ones
  int64_t missing = 0;      // points whose value is NaN, infinite or beyond kMostMagnitude
  // Of the other points; meaningless if there are none:
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  double mean = 0, weight = 0;

  bool has_value() const { return points > missing; }
  /// The middle of the steps.
  double step() const {
    return static_cast<double>(first_step) + static_cast<double>(last_step - first_step) / 2;
  }
  /// Adds the points of the next bucket.
  void append(const Bucket& next);
};

/// Beyond it, the range of an axis could overflow.
inline constexpr double kMostMagnitude = 1e300;

/// Up to kMostBuckets points are kept exactly. After that, pairs of buckets are merged: the lowest
/// and the highest value of all points remain.
class Series {
 public:
  static constexpr size_t kMostBuckets = 512;  // one a pixel column of a plot

  /// Steps must not decrease. The mean of a bucket is weighted.
  void add(int64_t step, double seconds, double value, double weight = 1);
  std::span<const Bucket> buckets() const { return buckets_; }
  bool empty() const { return buckets_.empty(); }
  int64_t points_a_bucket() const { return points_a_bucket_; }
  /// All points in one bucket. Precondition: not empty.
  Bucket total() const;
  /// The value added last, even if it counts as missing.
  double last() const { return last_; }

 private:
  std::vector<Bucket> buckets_;
  int64_t points_a_bucket_ = 1;
  double last_ = 0;
};

/// At most `most` buckets: neighbours are merged.
std::vector<Bucket> merge_buckets(std::span<const Bucket> buckets, size_t most);

}  // namespace plugrad
